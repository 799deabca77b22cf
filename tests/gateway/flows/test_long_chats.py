"""Forty turns with clients of the field, while chapters come and views fold and are cut."""

from __future__ import annotations

import pytest

from tests.gateway.house import House
from tests.policies.told import FILLER, Client, Note, Said, reply, user

NOTE = Note(4, "user", "[Author's note: the storm is near, keep it tense.]")
CLIENTS = {
    "plain": Client(),
    "note": Client(notes=[NOTE]),
    "notes": Client(notes=[NOTE, Note(1, "user", "[Remember: be brief.]")]),
    "lore": Client(notes=[Note(3, "user", "[Lore of the tower, floor {turn}: a door.]")]),
    "trims": Client(budget=14, filler=FILLER),
    "names": Client(names=True, budget=20),
    "joins": Client(notes=[NOTE], squashes=True),
    "rewrites": Client(rewrites=True, notes=[NOTE]),
    "retrieves": Client(retrieval=True, budget=20),
    "all": Client(names=True, rewrites=True, notes=[NOTE], budget=16),
}
SWIPES = {9, 17, 18, 30}


@pytest.mark.parametrize("id", ["c", None])
@pytest.mark.parametrize("habit", CLIENTS)
async def test_the_transcript_is_what_was_said(house: House, habit: str, id: str | None) -> None:
    shape = CLIENTS[habit]
    client = Client(**{name: getattr(shape, name) for name in shape.__dataclass_fields__})
    client.history, truth = [], []
    for turn in range(40):
        if turn in SWIPES:
            client.history.pop()
            truth.pop()
        else:
            words = f"Question {turn}: what of the tower on hill {turn * 37}, and who lives there?"
            client.history.append(user(words))
            truth.append(user(f"Ann: {words}" if client.names else words))
        said = reply(
            f'<think>Well.</think>*She nods.*  "Hill {turn * 37} it is."\r\nThen  {turn}. '
        )
        house.local.answers = [said[1]]
        told = [{"role": role, "content": text} for role, text in client.tell(turn)]
        last = await house.say(*told, id=id)
        client.history.append(said)
        truth.append(said)
        _check_prompt(last.prompt[-1]["content"], told, turn)
        house.write_chapters()
        house.write_gists()
    stored = [(role, content) for role, content in house.told(last.conversation)]
    assert _bare(stored) == _bare(truth)
    assert house.one("SELECT count(*) FROM conversations") == 1
    assert house.folds(), "it was long enough to fold"


def _bare(said: list[Said]) -> list[Said]:
    """Without the thinking, which is stored apart."""
    return [(role, text.removeprefix("<think>Well.</think>")) for role, text in said]


def _check_prompt(newest: str, told: list[dict[str, str]], turn: int) -> None:
    """The model is asked what the client asked last, in the client's own words."""
    if turn > 2:
        assert newest == told[-1]["content"]
