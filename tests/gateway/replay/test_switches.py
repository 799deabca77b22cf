"""Moves played through the whole program on a virtual clock, also with a summarizer that fails."""

from __future__ import annotations

import pytest

from gateway.policy_file import parse_policies
from gateway.replay import Options, Recording, Switch, Totals, play

POLICIES = """
version: 1
backends:
  actor: {kind: scripted}
policies:
  small:
    view: {start: 12_000, ceiling: 16_000, headroom: 4_000, keep: 2_000}
    chapters: {split: 6_000, length: 400, stack: 800}
    gist: {length: 500}
  large:
    view: {start: 200_000, ceiling: 240_000, headroom: 40_000, keep: 100_000}
models:
  foldgate: {tiers: [{backend: actor, policy: large}]}
  little: {tiers: [{backend: actor, policy: small}]}
"""

PLACES = ("Hakodate", "Владивосток", "釜山", "Vigo", "Lisbon", "Ålesund", "高雄", "Cork", "Oulu")
THINGS = ("map", "compass", "鍵", "ledger", "lamp", "письмо", "rope", "bell", "mirror", "coat")


def voyage(turns: int, size: int) -> Recording:
    """So many turns of twice `size` characters."""
    messages: list[tuple[str, str]] = []
    for day in range(turns):
        place, thing = PLACES[day % 9], THINGS[day % 10]
        asked = f"Day {day}: at {place} Ольга bought a {thing} for {day * 7}."
        told = f"田中 hid the {thing} of {place} in cabin {day * 3}."
        messages += [("user", f"{asked:…<{size}}"), ("assistant", f"{told:…<{size}}")]
    return Recording("voyage", tuple(messages))


def sail(refusals: float, size: int, there: int, back: int, turns: int) -> Totals:
    options = Options(
        policies=parse_policies(POLICIES, name="sail", environ={}),
        policy="large",
        refusals=refusals,
        switches=(Switch(there, "small"), Switch(back, "large")),
    )
    totals, _ = play([voyage(turns, size)], options)
    return totals


@pytest.mark.parametrize(
    ("refusals", "size", "start", "end"),
    [
        (0, 144, 40_000, 100_000),
        (30, 144, 40_000, 100_000),
        # three rounds for each chapter, two answers in each: it takes its time
        (100, 60, 28_800, 60_000),
    ],
)
def test_a_move_with_its_gists_ahead(refusals: int, size: int, start: int, end: int) -> None:
    """More than four chapters of 400 are more than twice the stack: their gist comes first."""
    last = -(-end // (2 * size))
    totals = sail(refusals, size, start, end, turns=last + 20)
    assert totals.switches is not None
    there, back = totals.switches
    assert there["backlog_chars"] >= start - 8_000
    assert there["chapters"] >= 4
    assert there["largest_span"] <= 6_000
    # 12,000 but for the newest message
    assert 2_000 <= there["verbatim_chars"] < there["first_prompt_chars"] <= 12_000 + size
    assert back["verbatim_chars"] == 2 * size * last + size
    assert totals.lost_messages == there["lost_messages"] == back["lost_messages"] == 0
    assert totals.majors > 0
    if refusals == 100:
        assert totals.chapters == totals.stand_ins
    if refusals == 0:
        spans = -(-there["backlog_chars"] // 6_000)
        assert spans <= there["chapters"] <= spans + 2
        assert totals.hard_cuts == 0


def test_the_same_voyage_gives_the_same_figures() -> None:
    once, again = (sail(11, 144, 40_000, 50_000, turns=190) for _ in range(2))
    assert once.as_json() == again.as_json()
