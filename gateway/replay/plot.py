"""A replay as a picture: prompt size and what was re-read, turn by turn, with the folds."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from gateway.replay.measure import TurnRecord

WIDTH, HEIGHT = 960, 420
_LEFT, _RIGHT, _TOP, _MIDDLE, _BOTTOM = 64, 16, 34, 262, 392
_INK, _FAINT, _PROMPT, _REREAD, _FOLD, _CUT = (
    "#333",
    "#ddd",
    "#1f6feb",
    "#d4762c",
    "#8fbf8f",
    "#c62828",
)


def draw(records: Sequence[TurnRecord], *, title: str, start: int, ceiling: int) -> str:
    """SVG text. start and ceiling (characters) are drawn as lines across the prompt sizes."""
    top = max([ceiling, *(record.prompt_chars for record in records)], default=1) * 1.05
    most = max((record.reread_chars for record in records), default=1) or 1
    across = (WIDTH - _LEFT - _RIGHT) / max(1, len(records))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="system-ui, sans-serif" font-size="12" fill="{_INK}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="20" font-size="14">{escape(title)}</text>',
    ]
    parts += _folds(records, across)
    for value, label in ((start, "start"), (ceiling, "ceiling")):
        parts.append(_line_across(_height(value, top), f"{label} {value:,}"))
    parts.append(_prompt_line(records, across, top))
    parts += _reread_bars(records, across, most)
    parts += _legend(len(records), most)
    return "\n".join([*parts, "</svg>", ""])


def _height(value: float, top: float) -> float:
    return _MIDDLE - (_MIDDLE - _TOP) * value / top


def _folds(records: Sequence[TurnRecord], across: float) -> list[str]:
    lines = []
    for index, record in enumerate(records):
        if record.folded:
            x = _LEFT + index * across
            colour = _CUT if record.view == "cut" else _FOLD
            lines.append(
                f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{_BOTTOM}" stroke="{colour}">'
                f"<title>turn {record.number}: {escape(record.view)}</title></line>"
            )
    return lines


def _line_across(y: float, label: str) -> str:
    return (
        f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{WIDTH - _RIGHT}" y2="{y:.1f}" stroke="{_FAINT}"/>'
        f'<text x="{_LEFT + 4}" y="{y - 4:.1f}" fill="#777">{label}</text>'
    )


def _prompt_line(records: Sequence[TurnRecord], across: float, top: float) -> str:
    points = " ".join(
        f"{_LEFT + index * across:.1f},{_height(record.prompt_chars, top):.1f}"
        for index, record in enumerate(records)
    )
    return f'<polyline points="{points}" fill="none" stroke="{_PROMPT}" stroke-width="1.5"/>'


def _reread_bars(records: Sequence[TurnRecord], across: float, most: int) -> list[str]:
    room = _BOTTOM - _MIDDLE - 20
    bars = []
    for index, record in enumerate(records):
        height = room * record.reread_chars / most
        x = _LEFT + index * across
        bars.append(
            f'<rect x="{x:.1f}" y="{_BOTTOM - height:.1f}" width="{max(0.8, across * 0.8):.1f}" '
            f'height="{height:.1f}" fill="{_REREAD}"/>'
        )
    return bars


def _legend(turns: int, most: int) -> list[str]:
    return [
        f'<text x="{_LEFT - 6}" y="{_MIDDLE}" text-anchor="end" fill="{_PROMPT}">prompt</text>',
        f'<text x="{_LEFT - 6}" y="{_BOTTOM}" text-anchor="end" fill="{_REREAD}">re-read</text>',
        f'<text x="{_LEFT - 6}" y="{_MIDDLE + 24}" text-anchor="end" fill="#777">{most:,}</text>',
        f'<text x="{_LEFT}" y="{HEIGHT - 10}" fill="#777">turn 1</text>',
        f'<text x="{WIDTH - _RIGHT}" y="{HEIGHT - 10}" text-anchor="end" fill="#777">'
        f"turn {turns}; green: fold, red: hard cut; characters</text>",
    ]
