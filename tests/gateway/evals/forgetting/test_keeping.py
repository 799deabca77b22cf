"""The summarizer that forgets at a known rate."""

from __future__ import annotations

import json

import pytest

from gateway.backends.base import Call
from gateway.evals.forgetting.facts import Fact
from gateway.evals.forgetting.keeping import Keeper
from gateway.prompts.summary import ask_chapter, ask_gist
from policies.values import Line

FACTS = [
    Fact(n, "Ann", (f"Aa{n:03}x", f"Bb{n:03}x"), (f"Aa{n:03}x", f"Bb{n:03}x"), "en")
    for n in range(400)
]
LINES = [Line("Ann", f"{fact.words[0]} met {fact.words[1]}.", role="user") for fact in FACTS]


def chapter(chars: int = 20_000, key: str = "k") -> Call:
    prompt = ask_chapter(LINES[:300], asked_chars=chars, language="en", form="grammar")
    return Call(prompt.messages, prompt.params, False, 4_096, "summary", key)


async def write(keeper: Keeper, call: Call) -> str:
    parsed = (await keeper.complete(call)).parsed
    assert parsed["choices"][0]["finish_reason"] == "stop"
    return str(json.loads(parsed["choices"][0]["message"]["content"])["chapter"])


def kept(text: str) -> set[int]:
    return {fact.number for fact in FACTS if fact.stands_in(text.casefold())}


@pytest.mark.parametrize("keep", [0.25, 0.5, 0.9, 1.0])
async def test_it_keeps_the_share_of_what_it_reads(keep: float) -> None:
    found = kept(await write(Keeper(FACTS, keep, 1), chapter()))
    # Of the 300 that it read, and none of the 100 that it did not; 3 deviations of chance.
    assert max(found) < 300
    assert abs(len(found) / 300 - keep) <= 3 * (keep * (1 - keep) / 300) ** 0.5


async def test_each_text_draws_anew_and_the_same_one_the_same() -> None:
    keeper = Keeper(FACTS, 0.5, 1)
    one = kept(await write(keeper, chapter()))
    assert kept(await write(keeper, chapter())) == one
    other = kept(await write(keeper, chapter(key="other")))
    assert 40 <= len(one & other) <= 110  # a quarter of 300
    assert kept(await write(Keeper(FACTS, 0.5, 2), chapter())) != one


async def test_what_is_told_on_is_halved_again_and_nothing_is_longer_than_asked() -> None:
    keeper = Keeper(FACTS, 0.5, 1)
    first = await write(keeper, chapter())
    prompt = ask_gist([first], asked_chars=20_000, language="en", form="grammar")
    second = await write(keeper, Call(prompt.messages, prompt.params, False, 4_096, "gist", "g"))
    assert kept(second) < kept(first)
    assert 0.35 <= len(kept(second)) / len(kept(first)) <= 0.65
    short = await write(keeper, chapter(500))
    assert 400 <= len(short) <= 500
    assert kept(short) < kept(first)


async def test_it_is_a_backend_like_any_other() -> None:
    keeper = Keeper(FACTS, 0.5, 1)
    await keeper.start()
    assert (await keeper.health()).ok
    assert await keeper.window() is None
    assert await keeper.count_tokens([b"{}"]) is None
    assert keeper.dropped_params({"seed": 1}) == ()
    assert not await keeper.prefill(chapter())
    (chunk,) = [chunk async for chunk in keeper.stream(chapter())]
    assert chunk.parsed == (await keeper.complete(chapter())).parsed
    await keeper.aclose()
