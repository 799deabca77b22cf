"""Files and pieces of files that people are shown can be used as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gateway.demo.policy import write_policies
from gateway.policy_file import find_cautions, load_policies

ROOT = Path(__file__).parents[3]
SHIPPED = (ROOT / "policies.yaml").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
PIECES = re.findall(r"^```yaml\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def whole(piece: str) -> str:
    """The shipped file with a top-level key as the piece writes it."""
    (key,) = re.findall(r"^(\w+):", piece, re.MULTILINE)
    text, count = re.subn(
        rf"^{key}:.*?(?=^\w+:|^\.\.\.$)", lambda _: piece, SHIPPED, flags=re.DOTALL | re.MULTILINE
    )
    assert count == 1
    return text


@pytest.mark.parametrize(
    "text",
    [
        *map(whole, PIECES),
        write_policies("http://127.0.0.1:4567"),
        SHIPPED,
    ],
)
def test_nothing_is_wrong_with_what_is_shown(tmp_path: Path, text: str) -> None:
    path = tmp_path / "policies.yaml"
    path.write_text(text, encoding="utf-8")
    assert find_cautions(load_policies(path, {}).file) == []


def test_a_piece_takes_the_place_of_its_key() -> None:
    assert PIECES
    for piece in PIECES:
        text = whole(piece)
        assert piece in text and text != SHIPPED
