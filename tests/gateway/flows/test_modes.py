"""Other ways to keep a memory: one summary that is rewritten at each fold, and views that count
messages."""

from __future__ import annotations

from pathlib import Path

from tests.gateway.house import House

ROLLING = """
version: 1
backends:
  local: {kind: scripted}
policies:
  small:
    memory: rolling
    view: {start: 2400, ceiling: 3200, headroom: 900, keep: 300}
    chapters: {split: 900, length: 60, stack: 700}
    gist: {length: 100}
models:
  foldgate: {tiers: [{backend: local, policy: small}]}
"""
COUNTED = """
version: 1
backends:
  local: {kind: scripted}
  wide: {kind: scripted}
policies:
  small:
    view: {start: 10 messages, ceiling: 16 messages, headroom: 4 messages, keep: 2 messages}
    chapters: {length: 60}
    keep_warm: true
  large:
    view: {start: 90 messages, ceiling: 99 messages, headroom: 20 messages, keep: 9 messages}
    chapters: {length: 60}
    keep_warm: true
models:
  foldgate: {tiers: [{backend: local, policy: small}]}
  both: {tiers: [{backend: wide, policy: large}, {backend: local, policy: small}]}
"""


async def test_a_rolling_memory_is_one_summary_and_the_newest_chapters(tmp_path: Path) -> None:
    """After each fold what it showed joins the gist, whatever the stack may hold."""
    house = House(tmp_path, ROLLING)
    shown: list[tuple[str | None, int]] = []
    for number in range(60):
        said = await house.say(f"{number} " + "ab " * 120, id="c")
        house.write_chapters()
        house.write_gists()
        fold = said.turn.prepared.begun.fold
        if fold is not None and fold.at_pk == said.turn.prepared.begun.asked.pk:
            gist = house.rows("SELECT text FROM gists WHERE pk = :pk", pk=fold.gist_pk)
            shown.append((gist[0][0] if gist else None, len(fold.memory)))
    assert len(shown) > 5
    chapters = [count for _, count in shown]
    assert shown[0][0] is None
    gists = [gist for gist, _ in shown[1:]]
    assert None not in gists and len(set(gists)) == len(gists), "rewritten at each fold"
    assert max(chapters) <= 2, "only what the newest fold took in stands beside it"
    house.store.close()


async def test_a_view_of_messages_folds_by_their_number(tmp_path: Path) -> None:
    house = House(tmp_path, COUNTED)
    tails: list[int] = []
    for number in range(30):
        said = await house.say(f"{number} " + "wort " * (number * 7 % 50), id="c")
        house.write_chapters()
        begun = said.turn.prepared.begun
        tails.append(begun.asked.depth - begun.border)
    # the debt is asked for at 12, with the reply; a fold leaves 5 and the newest
    assert max(tails) == 11
    assert min(tails[10:]) == 7
    assert {kind for _, _, _, kind, _ in house.folds()} == {"fold"}
    house.store.close()


async def test_a_view_of_messages_is_cut_by_their_number(tmp_path: Path) -> None:
    house = House(tmp_path, COUNTED)
    views = [(await house.say(f"{number}", id="c")).view for number in range(9)]
    # 1, 3, … 15 messages go out whole; the seventeenth is one too many
    assert views == ["verbatim"] * 8 + ["cut"]
    house.store.close()


async def test_a_smaller_view_of_messages_is_kept_warm(tmp_path: Path) -> None:
    house = House(tmp_path, COUNTED)
    house.models["wide"] = type(house.local)("wide")
    house.restart()
    for number in range(12):
        await house.say(f"{number} of many", id="c", model="both")
        house.write_chapters()
    spans = house.rows("SELECT first_depth, last_depth FROM chapters ORDER BY pk")
    assert spans[0][0] == 1
    assert 24 - spans[-1][1] <= 10, "what is not told yet fits the view"
    assert house.folds() == [], "and the larger one is shown whole"
    house.store.close()
