"""`foldgate stats`: how it has been going, from the database."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import click
from sqlalchemy import Connection

from gateway.cli.arguments import parse_moment
from gateway.cli.options import database_option, json_option, opened_store, print_json
from gateway.cli.stats_table import lay_out
from gateway.clock import SystemClock, iso
from gateway.store import figures
from gateway.store.figures import Folded, Rejection, Written
from policies.schema import parse_duration


def read_moment(_ctx: click.Context, _param: click.Parameter, value: str | None) -> int:
    """How long ago (`7d`, `12h`) or when (ISO 8601; UTC where no zone is given), as milliseconds
    since 1970; 0 where nothing is said."""
    if value is None:
        return 0
    try:
        return max(0, SystemClock().now_ms() - int(parse_duration(value) * 1000))
    except ValueError:
        pass
    try:
        return parse_moment(value)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is neither a duration such as 7d nor a date and time."
        ) from None


@click.command("stats")
@click.option(
    "--since",
    callback=read_moment,
    metavar="7d|ISO",
    help="Only what happened since then: a duration or a date and time; ever without it.",
)
@database_option
@json_option
def stats_command(since: int, database_url: str | None, as_json: bool) -> None:
    """Chapters, folds, rejections, hard cuts, replies cut by length, reuse."""
    with opened_store(database_url) as store:
        told = store.reading(sum_up, since)
    if as_json:
        print_json(told)
        return
    for line in lay_out(told):
        click.echo(line)


def sum_up(connection: Connection, since_ms: int) -> dict[str, Any]:
    """Everything that is told, as one object. Shares are from 0 to 1, null where nothing is known;
    `…_per_hundred` are of a hundred outputs of summarizers that came to be judged. `questions` are
    user messages, `turns` the calls that were made for them."""
    turns = figures.count_turns(connection, since_ms)
    written = figures.list_written(connection, since_ms)
    folds = figures.list_folds(connection, since_ms)
    rejections = figures.list_rejections(connection, since_ms)
    return {
        "since": iso(since_ms) if since_ms else None,
        "questions": figures.count_questions(connection, since_ms),
        "turns": _total(turns),
        "chapters": _measure(one for one in written if one.kind == "chapter"),
        "majors": _measure(one for one in written if one.kind == "gist"),
        "rejections": _rate(rejections, written),
        "folds": _sum_folds(folds),
        "hard_cuts": sum(fold.kind == "cut" for fold in folds),
        "stand_ins": figures.count_stand_ins(connection, since_ms),
        "moved_by": figures.count_moves(connection, since_ms),
        "faults": figures.count_faults(connection, since_ms),
        "auxiliary": figures.count_auxiliary(connection, since_ms),
        "jobs": figures.count_work(connection),
        "by_tier": [_tier(row) for row in turns],
        "by_policy": _by_policy(folds, written),
        "by_summarizer": _by_summarizer(written, rejections),
    }


def _share(part: float | None, whole: float | None) -> float | None:
    return round(part / whole, 4) if part is not None and whole else None


def _sum(rows: Iterable[dict[str, Any]], name: str) -> Any:
    known = [row[name] for row in rows if row[name] is not None]
    return sum(known) if known else None


_COUNTED = (
    "attempts",
    "answered",
    "broken_off",
    "failed",
    "cancelled",
    "fallbacks",
    "cut_by_length",
    "shown_cut",
    "shown_stand_in",
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
)


def _total(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    summed = {name: _sum(rows, name) or 0 for name in _COUNTED}
    parts = ("told_tokens", "compared_chars", "expected_chars")
    return {**summed, **_reuse({**summed, **{name: _sum(rows, name) for name in parts}})}


def _reuse(row: dict[str, Any]) -> dict[str, float | None]:
    return {
        "reuse": _share(row["cached_tokens"], row["told_tokens"]),
        "reuse_expected": _share(row["expected_chars"], row["compared_chars"]),
    }


def _tier(row: dict[str, Any]) -> dict[str, Any]:
    waits = {
        f"{name}_{part}": row[f"{name}_{part}"]
        for name in ("first_token_ms", "queued_ms")
        for part in ("median", "p95")
    }
    named = {"backend": row["backend"], "policy": row["policy"]}
    return {**named, **{name: row[name] for name in _COUNTED}, **_reuse(row), **waits}


def _measure(written: Iterable[Written]) -> dict[str, Any]:
    """Count, median seconds and mean characters of texts that models wrote."""
    found = list(written)
    took = [ms for one in found for ms in one.took_ms]
    chars = [length for one in found for length in one.chars]
    return {
        "count": len(chars),
        "median_seconds": round(statistics.median(took) / 1000, 1) if took else None,
        "mean_chars": round(statistics.fmean(chars)) if chars else None,
    }


def _rate(rejections: Sequence[Rejection], written: Iterable[Written]) -> dict[str, Any]:
    """Refusals and other rejections of a hundred outputs: those accepted and those judged out."""
    accepted = sum(len(one.chars) for one in written)
    judged = accepted + len(rejections)
    refused = sum(one.is_refusal for one in rejections)

    def per_hundred(count: int) -> float | None:
        return round(100 * count / judged, 1) if judged else None

    reasons = Counter(one.main for one in rejections if not one.is_refusal)
    return {
        "judged": judged,
        "refusals": refused,
        "others": len(rejections) - refused,
        "refusals_per_hundred": per_hundred(refused),
        "others_per_hundred": per_hundred(len(rejections) - refused),
        "other_reasons": dict(reasons.most_common()),
    }


def _sum_folds(folds: Sequence[Folded]) -> dict[str, Any]:
    """Folds that moved a border (cuts and migrations among them), and their mean span."""
    spans = [fold.span for fold in folds if fold.span > 0]
    return {
        "count": len(spans),
        "mean_span_chars": round(statistics.fmean(spans)) if spans else None,
        "renewals": len(folds) - len(spans),
        "migrations": sum(fold.kind == "migration" for fold in folds),
        "with_stand_in": sum(fold.stand_ins > 0 for fold in folds),
    }


def _by_policy(folds: Sequence[Folded], written: Sequence[Written]) -> list[dict[str, Any]]:
    names = sorted({fold.policy for fold in folds} | {one.policy for one in written})
    told = []
    for name in names:
        own = [fold for fold in folds if fold.policy == name]
        texts = [one for one in written if one.policy == name]
        told.append(
            {
                "policy": name,
                "folds": _sum_folds(own),
                "hard_cuts": sum(fold.kind == "cut" for fold in own),
                "chapters": _measure(one for one in texts if one.kind == "chapter"),
                "majors": _measure(one for one in texts if one.kind == "gist"),
            }
        )
    return told


def _by_summarizer(
    written: Sequence[Written], rejections: Sequence[Rejection]
) -> list[dict[str, Any]]:
    places = {(one.backend, one.kind) for one in written}
    places |= {(one.backend, one.kind) for one in rejections}
    told = []
    for backend, kind in sorted(places):
        texts = [one for one in written if (one.backend, one.kind) == (backend, kind)]
        out = [one for one in rejections if (one.backend, one.kind) == (backend, kind)]
        told.append({"backend": backend, "kind": kind, **_measure(texts), **_rate(out, texts)})
    return told
