"""What is good to know of a policies file before it is used."""

from __future__ import annotations

from pathlib import Path

from gateway.policy_file import find_cautions, load_policies

FILE = """
version: 1
backends:
  rehearsal: {{kind: scripted}}
policies:
  small:
    view: {view}
    {more}
models:
  foldgate:
    tiers: [{{backend: rehearsal, policy: small}}]
"""
SIZES = "chapters: {length: 400, stack: 2_600}\n    gist: {length: 400}"
CHARACTERS = "{{start: {start}, ceiling: {ceiling}, headroom: 4_000, keep: 10_000}}"
MESSAGES = "{{start: 30 messages, ceiling: 40 messages, headroom: 8 messages, keep: 20 messages}}"


def cautions(tmp_path: Path, start: int, more: str, view: str = CHARACTERS) -> list[str]:
    path = tmp_path / "policies.yaml"
    view = view.format(start=start, ceiling=start + 4_000)
    path.write_text(FILE.format(view=view, more=more))
    return find_cautions(load_policies(path, {}).file)


def test_a_view_that_can_show_no_document_is_told(tmp_path: Path) -> None:
    """16,000 − 10,000: by default 1,500 for the gist, 4,500 for chapters, 2,000 beside them."""
    assert cautions(tmp_path, 20_000, "") == [
        "policies.small.view has no room for documents, and so never shows one: a fold leaves "
        "16,000 characters (view.start − view.headroom), and view.keep takes 10,000 of them, gist, "
        "chapters, profile and ledger up to 8,000"
    ]


def test_a_view_in_messages_is_told_without_sums(tmp_path: Path) -> None:
    (told,) = cautions(tmp_path, 0, "", view=MESSAGES)
    assert told.endswith("take all that a fold leaves")


def test_sizes_written_for_a_small_view_are_known_to_whoever_wrote_them(tmp_path: Path) -> None:
    assert cautions(tmp_path, 19_000, SIZES) == []


def test_a_view_with_room_is_not_told(tmp_path: Path) -> None:
    assert cautions(tmp_path, 40_000, "") == []


CLOUDS = """
version: 1
backends:
  local: {kind: llama_cpp, url: "http://127.0.0.1:8080"}
  one: {kind: litellm, model: deepseek/x, api_key: k}
  two: {kind: litellm, model: xai/x, api_key: k}
policies:
  open: {}
  hiding: {privacy: {mask: [mail, card]}}
  hiding-too: {privacy: {mask: [card, mail]}}
models:
  alike: {tiers: [{backend: local, policy: open}, {backend: one, policy: hiding}]}
  same: {tiers: [{backend: one, policy: hiding}, {backend: two, policy: hiding-too}]}
  apart: {tiers: [{backend: one, policy: hiding}, {backend: two, policy: open}]}
"""


def test_a_fallback_that_would_show_what_is_hidden_is_told(tmp_path: Path) -> None:
    path = tmp_path / "policies.yaml"
    path.write_text(CLOUDS)
    (told,) = find_cautions(load_policies(path, {}).file)
    assert told.startswith("models.apart: ")
    assert told.endswith("hiding mail, card, open nothing")
