"""The figures of bench-fold: which turns are compared, and what is divided by what."""

from __future__ import annotations

from typing import Any

import yaml

from bench.fold import POLICIES, Person, sum_up
from gateway.policy_file import parse_policies


def turn(cause: str | None, prompt: int, cached: int | None) -> dict[str, Any]:
    return {"moved_by": cause, "prompt_tokens": prompt, "cached_tokens": cached}


def test_the_medians_of_ordinary_turns_and_of_those_after_a_fold() -> None:
    person = Person("person", iter(()))
    told = [
        ("new", 400, 0, 9.0),  # there was nothing to use again: in neither median, not in reuse
        (None, 800, 600, 1.0),
        (None, 1_200, 1_000, 3.0),
        ("fold", 900, 600, 2.0),
        (None, 1_100, 900, 1.2),
        ("fold", 900, 700, 1.6),
        ("fold", 1_000, None, 1.7),
    ]
    for cause, prompt, cached, seconds in told:
        person.turns.append(turn(cause, prompt, cached))
        person.waits.append(seconds)
    figures = sum_up(person, Person("other", iter(())), 60.4, prefill=True)
    assert figures["folds"] == 3
    assert figures["ordinary_ttft_ms"] == 1_200  # of 1.0, 1.2, 3.0
    assert figures["after_fold_ttft_ms"] == 1_700  # of 1.6, 1.7, 2.0
    assert figures["ratio"] == 1.417  # 1.7 / 1.2
    assert figures["reuse"] == 0.6441  # 3,800 / 5,900
    assert figures["moved_by"] == {"fold": 3, "new": 1}
    assert (figures["turns"], figures["seconds"]) == (7, 60)


def test_nothing_is_divided_by_nothing() -> None:
    figures = sum_up(Person("a", iter(())), Person("b", iter(())), 1.0, prefill=False)
    assert (figures["folds"], figures["ratio"], figures["reuse"]) == (0, None, None)


def test_its_policies_are_valid_and_pinned() -> None:
    text = POLICIES.format(url="http://127.0.0.1:1", prefill="true")
    parse_policies(text, name="fold.yaml", environ={})
    assert yaml.safe_load(text)["backends"]["smollm2"]["slots"] == "pinned"
