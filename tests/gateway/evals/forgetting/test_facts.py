"""Distinctive statements: what they are, how they are told, asked and found again."""

from __future__ import annotations

import pytest

from gateway.evals.forgetting.facts import (
    Fact,
    ask_about,
    find_facts,
    fold_text,
    spread,
    tell,
    thin,
)
from policies.judge import judge_summary
from policies.language import language_of
from policies.values import Line
from tests.gateway.evals.long_talks import TONGUES, make_talk

ONE = [Line("Ann", "We met Harrow at Velmoor harbour. It rained in spring.")]
TWO = [Line("Bob", "The harbour was closed. My brother Tolland bought 4711 barrels in spring.")]


def test_a_statement_is_told_by_words_that_stand_nowhere_else() -> None:
    first, second = find_facts([ONE, TWO], ["en", "en"])
    # `harbour` and `spring` stand in both spans, and tell nothing.
    assert [(fact.who, fact.keys) for fact in first] == [
        ("Ann", ("Harrow", "Velmoor")),
        ("Ann", ("rained",)),
    ]
    assert [(fact.number, fact.keys) for fact in second] == [
        (2, ("closed",)),
        (3, ("brother", "Tolland", "bought")),
    ]
    assert [fact.is_askable for fact in second] == [False, True]
    # A lone key is told with a word beside it.
    assert first[1].words == ("rained", "spring")


def test_the_last_key_is_the_answer_and_the_other_words_say_what_it_is_about() -> None:
    fact = find_facts([ONE, TWO], ["en", "en"])[0][0]
    assert fact.question == "What did Ann say about Harrow and harbour?"
    assert fact.answer == "Velmoor"
    assert fact.stands_in(fold_text("… HARROW and Velmoor …"))
    assert not fact.stands_in(fold_text("… Harrow …"))


def test_words_of_the_phrases_themselves_are_no_keys() -> None:
    lines = [Line("Ann", "Hilda mentioned Quillon; nobody described it.")]
    assert find_facts([lines], ["en"])[0][0].keys == ("Hilda", "Quillon", "nobody")


def test_statements_of_one_speaker_are_told_together() -> None:
    facts = [Fact(n, who, (f"Aa{n}", f"Bb{n}"), ("x",), "en") for n, who in enumerate("AABAAAA")]
    told = tell(facts)
    assert told == (
        "A spoke of Aa0, Bb0, Aa1 and Bb1. Later B came to Aa2 and Bb2. "
        "A also brought up Aa3, Bb3, Aa4, Bb4, Aa5 and Bb5. "
        "A mentioned Aa6 and Bb6."
    )
    assert tell([]) == ""


def test_they_are_spread_evenly() -> None:
    facts = [Fact(n, "A", ("a", "b"), ("a", "b")[: 1 + n % 2], "en") for n in range(10)]
    assert [fact.number for fact in spread(facts, 4)] == [0, 2, 5, 7]
    assert spread(facts, 20) == facts
    assert [fact.number for fact in ask_about(facts, 2)] == [1, 5]
    assert [fact.number for fact in ask_about(facts, 9)] == [1, 3, 5, 7, 9]


def test_so_many_are_kept_that_the_kept_share_fills_four_fifths_of_a_chapter() -> None:
    facts = [Fact(n, "A", (f"Name{n:04}", f"Town{n:04}"), (f"n{n}", "x"), "en") for n in range(500)]
    cost = len(tell(facts)) / 500
    for keep in (0.25, 0.5, 1.0):
        (thinned,) = thin([facts], keep, 1_100)
        assert len(thinned) == int(0.8 * 1_100 / (keep * cost))
    assert thin([[]], 0.5, 1_100) == [[]]
    weak = [Fact(n, "A", ("aa", "bb"), ("aa",), "en") for n in range(500)]
    (mixed,) = thin([[*weak, *facts[:3]]], 0.5, 1_100)
    # Those that can be asked about are never left out for others.
    assert sum(fact.is_askable for fact in mixed) == 3


@pytest.mark.parametrize("language", TONGUES)
def test_what_is_told_of_a_span_is_a_chapter_that_the_judge_takes(language: str) -> None:
    talk = make_talk(9_000, seed=7, language=language)
    lines = [
        Line({"user": "Ann", "assistant": "Bob"}[role], text, role=role) for role, text in talk
    ]
    assert language_of("\n".join(line.text for line in lines)) == language
    (facts,) = thin(find_facts([lines], [language]), 1.0, 1_100)
    assert len(facts) > 8
    told = tell(facts)
    verdict = judge_summary(told, lines, finish_reason="stop", asked_chars=1_100, framed=False)
    assert verdict.reasons == ()
    assert all(fact.stands_in(fold_text(told)) for fact in facts)
