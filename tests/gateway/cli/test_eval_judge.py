"""`foldgate eval judge`: its table holds what its JSON does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.gateway.cli.conftest import Run

SPAN = [
    ["user", "Anna sold her boat to Boris in Lisbon, and Boris paid her with a silver key."],
    ["assistant", "Boris rowed away at once, and Anna kept the silver key in a tin box."],
]
GOOD = "Anna sold her boat to Boris in Lisbon. Boris paid with a silver key and rowed away."


def write(tmp_path: Path, *reasons: list[str]) -> str:
    """A row to be rejected for each list of reasons, cut off where `truncated` is among them."""
    rows: list[dict[str, Any]] = [
        {
            "output": GOOD,
            "span": SPAN,
            "finish_reason": "length" if "truncated" in named else "stop",
            "label": "reject",
            "reasons": named,
        }
        for named in reasons
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def test_the_table_shows_the_misattributed(run: Run, tmp_path: Path) -> None:
    """Three rows labelled so; one is rejected, because it is cut off, and none by that name."""
    cut = ["misattributed", "truncated"]
    file = write(tmp_path, ["misattributed"], ["misattributed", "thin"], cut)
    counts = json.loads(run("eval", "judge", file, "--json").stdout)
    names = ("misattributed_rejected", "misattributed_named", "misattributed_total")
    assert [counts[name] for name in names] == [1, 0, 3]
    lines = [line.split() for line in run("eval", "judge", file).stdout.splitlines()]
    assert ["hard", "(apart)", "0", "2", "0.0%"] in lines
    assert ["misattributed", "1", "3", "33.3%"] in lines
    assert ["named", "as", "such", "0", "3", "0.0%"] in lines
