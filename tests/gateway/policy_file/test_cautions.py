"""What is good to know of a policies file before it is used."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.policy_file import find_cautions, load_policies

FILE = """
version: 1
backends:
  rehearsal: {{kind: scripted}}
policies:
  small:
    view: {{start: {start}, ceiling: {ceiling}, headroom: 4_000, keep: 10_000}}
    {more}
models:
  foldgate:
    tiers: [{{backend: rehearsal, policy: small}}]
"""
SIZES = "chapters: {length: 400, stack: 2_600}\n    gist: {length: 400}"
WITH_RULES = SIZES + "\n    documents: [rules.md]"


def cautions(tmp_path: Path, start: int, more: str) -> list[str]:
    path = tmp_path / "policies.yaml"
    (tmp_path / "rules.md").write_text("Rule 1: whisper.")
    path.write_text(FILE.format(start=start, ceiling=start + 4_000, more=more))
    return find_cautions(load_policies(path, {}).file)


@pytest.mark.parametrize("more", ["", WITH_RULES])
def test_a_view_that_can_show_no_document_is_told(tmp_path: Path, more: str) -> None:
    """16,000 − 10,000: by default 1,500 for the gist, 4,500 for chapters, 2,000 beside them; with
    what is written 400 + 2,600 + 2,000."""
    (told,) = cautions(tmp_path, 20_000 if not more else 19_000, more)
    assert told.startswith("policies.small.view has no room for documents, and so never shows one")
    goal, rest = ("16,000", "8,000") if not more else ("15,000", "5,000")
    assert f"a fold leaves {goal} characters" in told
    takes = "view.keep takes 10,000 of them, gist, chapters, profile and ledger up to"
    assert told.endswith(f"{takes} {rest}")


def test_sizes_written_for_a_small_view_are_known_to_whoever_wrote_them(tmp_path: Path) -> None:
    assert cautions(tmp_path, 19_000, SIZES) == []


def test_a_view_with_room_is_not_told(tmp_path: Path) -> None:
    assert cautions(tmp_path, 40_000, "") == []
