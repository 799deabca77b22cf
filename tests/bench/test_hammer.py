"""The hammer's proof finds out what is foreign, and lets pass what a model may say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from bench.hammer import sum_up
from bench.hammer_proof import Proof, Reply, Token, _compare, _find_mark, _strangers, _swap

PROMPT = "<user>I am Ada.<assistant>"


class Quiet:
    """A model that says what it is told to, with a second choice for each token.

    says: (token, log-probability, second choice, its log-probability), and what it goes on with
    behind other words.
    """

    def __init__(self, *says: tuple[str, float, str, float], tokens: int = 9, **after: Any) -> None:
        self.says = says
        self.tokens = tokens
        self.after = after
        self.asked: list[tuple[str, int]] = []

    async def render(self, messages: Any) -> str:
        return PROMPT

    async def go_on(self, prompt: str, said: Sequence[int], count: int) -> dict[str, Any]:
        words = "".join(WORDS[number] for number in said)
        self.asked.append((words, count))
        says = self.after.get(words, self.says)
        told = [
            {
                "top_logprobs": [
                    {"bytes": list(text.encode()), "logprob": figure}
                    for text, figure in ((first, likely), (second, less))
                ]
            }
            for first, likely, second, less in says
        ]
        return {"completion_probabilities": told[:count], "tokens_evaluated": self.tokens}


WORDS: list[str] = []
"""The vocabulary: a word's number is its place."""


def number_of(word: str) -> int:
    if word not in WORDS:
        WORDS.append(word)
    return WORDS.index(word)


def reply(*tokens: tuple[str, float], mark: str = "Ada", prompt_tokens: int = 9) -> Reply:
    said = tuple(Token(text.encode(), figure, number_of(text)) for text, figure in tokens)
    return Reply(mark, ({"role": "user", "content": "I am Ada."},), said, prompt_tokens)


HELLO = ("Hi", -0.20, "Yo", -1.90), (" Ada", -0.50, " Bob", -1.00)


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        (reply(("Hi", -0.20), (" Ada", -0.50)), None),
        (reply(("Hi", -0.30), (" Ada", -0.40)), None),  # (0.10 + 0.10) / 2 = 0.10 ≤ 0.15
        (reply(("Hi", -0.45), (" Ada", -0.75)), "differ by 0.25 on the whole"),
        (reply(("Hi", -1.10), (" Ada", -0.50)), "token 0 b'Hi' had -1.10, and would have -0.20"),
        (
            reply(
                ("Yo", -1.90),
            ),
            "would have -1.90",
        ),  # 1.70 below the first choice
        (
            reply(
                ("雨", -0.20),
            ),
            None,
        ),  # part of a letter: not compared
        (
            reply(
                ("No", -0.20),
            ),
            "token 0 is b'No', and would be b'Hi'",
        ),
        (reply(("Hi", -0.20), prompt_tokens=12), "its prompt had 12 tokens, and would have 9"),
    ],
    ids=["same", "near", "all off", "one off", "unlikely", "letter", "other", "prompt"],
)
async def test_a_reply_is_held_against_the_model_alone(said: Reply, wrong: str | None) -> None:
    found = await _compare(Quiet(*HELLO), said, Proof())  # type: ignore[arg-type]
    assert (found is None) == (wrong is None)
    assert wrong is None or wrong in (found or "")


async def test_behind_a_near_tie_the_model_goes_on_with_what_was_said() -> None:
    quiet = Quiet(("Hi", -0.6, "Yo", -0.9), ("!", -0.1, "?", -3.0), Yo=[(" Ada", -0.5, "x", -2.0)])
    proof = Proof()
    said = reply(("Yo", -0.9), (" Ada", -0.5))
    assert await _compare(quiet, said, proof) is None  # type: ignore[arg-type]
    assert quiet.asked == [("", 2), ("Yo", 1)]
    assert (proof.tokens, proof.near_ties) == (2, 1)
    assert proof.largest_gap == pytest.approx(0.3)  # -0.6 less -0.9


def test_the_name_of_another_is_foreign_and_ones_own_is_not() -> None:
    said = reply(("Ada and Bob", -0.1))
    assert _find_mark(said, {"Ada"}) is None
    assert _find_mark(said, {"Ada", "Bob"}) == "names Bob"
    in_town = replace(said, messages=({"role": "user", "content": "Ada lives in Bob."},))
    assert _find_mark(in_town, {"Ada", "Bob"}) is None


def test_a_control_is_a_reply_over_anothers_history() -> None:
    short = reply(*[("x", -0.1)] * 4, mark="Ada")
    history = ({"role": "user", "content": "I am Bob."}, {"role": "assistant", "content": "Hi."})
    long = Reply("Bob", (*history, {"role": "user", "content": "?"}), (), 30)
    ((one, other),) = _strangers([short, long])
    swapped = _swap(one, other)
    assert swapped.messages == (*history, {"role": "user", "content": "I am Ada."})
    assert (swapped.tokens, swapped.prompt_tokens) == (short.tokens, 0)
    assert _strangers([short]) == []


def test_the_modes_are_added_up() -> None:
    keys = ("replies", "disconnects", "foreign_text", "leaked_slots", "refused_429")
    modes = {
        "pinned": {**dict.fromkeys(keys, 2), "rss_growth_mb": 0.4},
        "shared": {**dict.fromkeys(keys, 3), "rss_growth_mb": 0.1},
    }
    told = sum_up(modes, 16, 2, 120.0)
    assert [told[key] for key in keys] == [5] * 5
    assert (told["clients"], told["slots"], told["seconds"]) == (16, 2, 120.0)
    assert told["rss_growth_mb"] == 0.4
