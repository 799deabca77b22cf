"""The curve of forgetting as a picture, and as a page with its figures under it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from html import escape
from statistics import fmean
from typing import Any, NamedTuple

WIDTH, HEIGHT = 960, 460
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 24, 72, 392
_INK, _FAINT, _GREY = "#333", "#ddd", "#777"
_COLOURS = {
    "rolling": "#c62828",
    "rolling-long": "#d4762c",
    "generational": "#1f6feb",
    "generational+recall": "#2e7d32",
}
_MOST_TICKS = 20

Modes = Mapping[str, Mapping[str, Any]]


class _Point(NamedTuple):
    age: int
    share: float
    least: float
    most: float
    in_gist: bool


def draw(modes: Modes, *, title: str) -> str:
    """SVG text: the share of questions answered (mean of the repeats, with the band between the
    least and the most) by how many spans were folded since. A hollow dot: told by the gist."""
    lines = {name: _points(mode["by_span"]) for name, mode in modes.items()}
    oldest = max((points[-1].age for points in lines.values() if points), default=1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="system-ui, sans-serif" font-size="12" fill="{_INK}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="22" font-size="14">{escape(title)}</text>',
        *_legend(modes),
        *_grid(oldest),
    ]
    for name, points in lines.items():
        parts += _band(points, oldest, _COLOURS[name])
    for name, points in lines.items():
        parts += _line(points, oldest, _COLOURS[name], name)
    return "\n".join([*parts, "</svg>", ""])


def _points(rows: Sequence[Mapping[str, Any]]) -> list[_Point]:
    """One point an age; where conversations differ in what tells of it, the mean."""
    ages: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        ages[row["age"]].append(row)
    return [
        _Point(
            age,
            fmean(row["share"] for row in told),
            min(row["spread"]["min"] for row in told),
            max(row["spread"]["max"] for row in told),
            any(row["where"] == "gist" for row in told),
        )
        for age, told in sorted(ages.items())
    ]


def _x(age: int, oldest: int) -> float:
    """The newest on the left."""
    room = WIDTH - _LEFT - _RIGHT - 24
    return _LEFT + 12 + room * (age - 1) / max(1, oldest - 1)


def _y(share: float) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * share


def _legend(modes: Modes) -> list[str]:
    parts, x = [], _LEFT
    for name, mode in modes.items():
        told = f"{name} {mode['mean']:.0%}"
        parts.append(
            f'<rect x="{x}" y="37" width="18" height="4" fill="{_COLOURS[name]}"/>'
            f'<text x="{x + 24}" y="44">{escape(told)}</text>'
        )
        x += 56 + 7 * len(told)
    return parts


def _grid(oldest: int) -> list[str]:
    parts = []
    for tenths in range(0, 11, 2):
        y = _y(tenths / 10)
        parts.append(
            f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{WIDTH - _RIGHT}" y2="{y:.1f}" '
            f'stroke="{_FAINT}"/>'
            f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="{_GREY}">'
            f"{tenths * 10} %</text>"
        )
    step = -(-oldest // _MOST_TICKS)
    parts += [
        f'<text x="{_x(age, oldest):.1f}" y="{_BOTTOM + 18}" text-anchor="middle" '
        f'fill="{_GREY}">{age}</text>'
        for age in range(1, oldest + 1, step)
    ]
    parts.append(
        f'<text x="{_LEFT}" y="{HEIGHT - 28}" fill="{_GREY}">age in spans: 1 is the newest that '
        "was folded</text>"
        f'<text x="{WIDTH - _RIGHT}" y="{HEIGHT - 28}" text-anchor="end" fill="{_GREY}">'
        "full dot: told by its chapter; hollow: by the gist</text>"
        f'<text x="{_LEFT}" y="{HEIGHT - 10}" fill="{_GREY}">share of questions answered right '
        "from the final memory; band: least and most of the repeats</text>"
    )
    return parts


def _band(points: Sequence[_Point], oldest: int, colour: str) -> list[str]:
    if len(points) < 2 or all(point.least == point.most for point in points):
        return []
    upper = [f"{_x(p.age, oldest):.1f},{_y(p.most):.1f}" for p in points]
    lower = [f"{_x(p.age, oldest):.1f},{_y(p.least):.1f}" for p in reversed(points)]
    return [f'<polygon points="{" ".join(upper + lower)}" fill="{colour}" opacity="0.12"/>']


def _line(points: Sequence[_Point], oldest: int, colour: str, name: str) -> list[str]:
    path = " ".join(f"{_x(p.age, oldest):.1f},{_y(p.share):.1f}" for p in points)
    parts = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>']
    for point in points:
        fill = "white" if point.in_gist else colour
        parts.append(
            f'<circle cx="{_x(point.age, oldest):.1f}" cy="{_y(point.share):.1f}" r="3.5" '
            f'fill="{fill}" stroke="{colour}" stroke-width="1.5">'
            f"<title>{escape(name)}, age {point.age}: {point.share:.0%} "
            f"({point.least:.0%} to {point.most:.0%})</title></circle>"
        )
    return parts


_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; color: {ink}; max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; }}
svg {{ width: 100%; height: auto; border: 1px solid {faint}; }}
table {{ border-collapse: collapse; margin: 1.5rem 0; width: 100%; }}
th, td {{ padding: .3rem .6rem; border-bottom: 1px solid {faint}; text-align: right; }}
th:first-child, td:first-child {{ text-align: left; }}
caption {{ text-align: left; color: {grey}; padding: .3rem 0; }}
small {{ color: {grey}; }}
</style>
</head>
<body>
<h1>{title}</h1>
{svg}
{tables}
<p><small>{facts}</small></p>
</body>
</html>
"""


def write_page(modes: Modes, *, title: str, facts: str) -> str:
    """HTML with the picture and its figures; nothing is loaded from elsewhere."""
    return _PAGE.format(
        title=escape(title),
        svg=draw(modes, title=title),
        tables=_sums(modes) + _ages(modes),
        facts=escape(facts),
        ink=_INK,
        faint=_FAINT,
        grey=_GREY,
    )


def _sums(modes: Modes) -> str:
    rows = []
    for name, mode in modes.items():
        spread, where = mode["spread"], mode["by_where"]
        cells = (
            f"{mode['mean']:.1%}",
            f"{spread['min']:.1%} – {spread['max']:.1%}",
            f"{spread['stdev']:.3f}",
            *(f"{where[at]:.1%}" if at in where else "" for at in ("stack", "gist")),
            f"{mode['questions']:,}",
            f"{mode['malformed']:,}",
            f"{mode['memory_chars']:,}",
        )
        rows.append(_row("td", name, *cells))
    names = ("mean", "repeats", "stdev", "in the stack", "in the gist")
    head = _row("th", "mode", *names, "questions", "malformed", "memory")
    return _table("Questions answered right from the final memory", head, rows)


def _ages(modes: Modes) -> str:
    found: dict[int, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, mode in modes.items():
        for row in mode["by_span"]:
            spread = row["spread"]
            told = f"{row['share']:.0%} {row['where']}"
            if spread["min"] != spread["max"]:
                told += f" ({spread['min']:.0%} – {spread['max']:.0%})"
            found[row["age"]][name].append(told)
    rows = [
        _row("td", str(age), *("; ".join(told[name]) for name in modes))
        for age, told in sorted(found.items())
    ]
    head = _row("th", "age in spans", *modes)
    return _table("By age: 1 is the newest span that was folded", head, rows)


def _table(caption: str, head: str, rows: Sequence[str]) -> str:
    body = "\n".join(rows)
    return f"<table>\n<caption>{escape(caption)}</caption>\n{head}\n{body}\n</table>\n"


def _row(tag: str, *cells: str) -> str:
    told = "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells)
    return f"<tr>{told}</tr>"
