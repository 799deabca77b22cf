"""What `foldgate stats` found, laid out for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

Cells = Sequence[str]


def lay_out(told: dict[str, Any]) -> list[str]:
    """What `stats.sum_up` returns, as lines of text."""
    lines = [f"since {told['since'] or 'the beginning'}", ""]
    lines += _columns([(name, words) for name, words in _summary(told)])
    if told["by_tier"]:
        lines += ["", *_columns([_TIER_HEAD, *map(_tier_cells, told["by_tier"])], 2)]
    if told["by_summarizer"]:
        rows = map(_summarizer_cells, told["by_summarizer"])
        lines += ["", *_columns([_SUMMARIZER_HEAD, *rows], 2)]
    if told["by_policy"]:
        lines += ["", *_columns([_POLICY_HEAD, *map(_policy_cells, told["by_policy"])], 1)]
    return lines


def _summary(told: dict[str, Any]) -> list[tuple[str, str]]:
    asked, turns, folds = told["questions"], told["turns"], told["folds"]
    states = told["jobs"]["states"]
    parked = sum(counts.get("parked", 0) for counts in states.values())
    return [
        (
            "turns",
            f"{asked['answered']:,} answered, {asked['broken_off']:,} broken off, "
            f"{asked['failed']:,} failed, {asked['cancelled']:,} cancelled",
        ),
        (
            "attempts at them",
            f"{turns['attempts']:,}, {turns['fallbacks']:,} of a fallback; "
            f"{_counted(told['faults'], 'fault')} failed",
        ),
        ("replies cut by length", f"{turns['cut_by_length']:,}"),
        (
            "reuse of prompts",
            f"{_percent(turns['reuse'])}, expected {_percent(turns['reuse_expected'])}",
        ),
        ("chapters", _text_line(told["chapters"])),
        ("major GCs", _text_line(told["majors"])),
        ("rejections", _tell_rejections(told["rejections"])),
        (
            "folds",
            f"{folds['count']:,}, mean span {_or_dash(folds['mean_span_chars'])} characters, "
            f"{_plural(folds['migrations'], 'migration')}, "
            f"{folds['with_stand_in']:,} with a stand-in",
        ),
        ("hard cuts", f"{told['hard_cuts']:,}"),
        (
            "stand-ins",
            f"{_plural(told['stand_ins']['chapters'], 'chapter')}, "
            f"{_plural(told['stand_ins']['gists'], 'gist')}",
        ),
        ("prompts that moved", _listed(told["moved_by"]).strip(" ()") or "none"),
        ("auxiliary calls", _tell_auxiliary(told["auxiliary"])),
        ("background work", f"{parked:,} parked" + _listed(_sums(told["jobs"]["parked"], "cause"))),
    ]


def _tell_rejections(out: dict[str, Any]) -> str:
    if not out["judged"]:
        return "nothing was judged"
    return (
        f"of {_plural(out['judged'], 'output')} {out['refusals_per_hundred']} % were refusals and "
        f"{out['others_per_hundred']} % others" + _listed(out["other_reasons"])
    )


def _tell_auxiliary(rows: Sequence[dict[str, Any]]) -> str:
    answered = sum(row["answered"] for row in rows)
    return f"{_counted(rows, 'kind')}, {answered:,} answered" if rows else "0"


def _counted(rows: Iterable[dict[str, Any]], name: str) -> str:
    sums = _sums(rows, name)
    return f"{sum(sums.values()):,}" + _listed(sums)


def _sums(rows: Iterable[dict[str, Any]], name: str) -> dict[str, int]:
    """Rows with the same `name` put together, the most frequent first."""
    sums: Counter[str] = Counter()
    for row in rows:
        sums[row[name]] += row["count"]
    return dict(sums.most_common())


def _text_line(measured: dict[str, Any]) -> str:
    return (
        f"{measured['count']:,}, median {_or_dash(measured['median_seconds'])} s, "
        f"mean {_or_dash(measured['mean_chars'])} characters"
    )


def _listed(counts: dict[str, int]) -> str:
    if not counts:
        return ""
    return " (" + ", ".join(f"{name} {count:,}" for name, count in counts.items()) + ")"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _or_dash(number: float | None) -> str:
    return "-" if number is None else f"{number:,}"


_TIER_HEAD = (
    "backend", "policy", "answered", "failed", "length", "cuts", "tokens in", "out", "reuse",
    "expected", "first token ms", "95 %",
)  # fmt: skip


def _tier_cells(row: dict[str, Any]) -> Cells:
    names = ("answered", "failed", "cut_by_length", "shown_cut", "prompt_tokens")
    return (
        row["backend"],
        row["policy"],
        *(f"{row[name]:,}" for name in names),
        f"{row['completion_tokens']:,}",
        _percent(row["reuse"]),
        _percent(row["reuse_expected"]),
        _or_dash(row["first_token_ms_median"]),
        _or_dash(row["first_token_ms_p95"]),
    )


_SUMMARIZER_HEAD = (
    "summarizer", "kind", "written", "median s", "mean chars", "refusals %", "others %",
)  # fmt: skip


def _summarizer_cells(row: dict[str, Any]) -> Cells:
    names = (
        "count", "median_seconds", "mean_chars", "refusals_per_hundred", "others_per_hundred",
    )  # fmt: skip
    return row["backend"], row["kind"], *(_or_dash(row[name]) for name in names)


_POLICY_HEAD = ("policy", "folds", "mean span", "hard cuts", "migrations", "chapters", "majors")


def _policy_cells(row: dict[str, Any]) -> Cells:
    folds = row["folds"]
    return (
        row["policy"] or "(gone)",
        f"{folds['count']:,}",
        _or_dash(folds["mean_span_chars"]),
        f"{row['hard_cuts']:,}",
        f"{folds['migrations']:,}",
        f"{row['chapters']['count']:,}",
        f"{row['majors']['count']:,}",
    )


def _columns(rows: Sequence[Cells], left: int = 2) -> list[str]:
    """Rows with their cells under each other: the first `left` ones flush left, numbers right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if at < left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines
