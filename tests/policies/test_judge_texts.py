"""How much of our own texts the judge gets right, in six languages, tuned on and held out."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from policies.judge import is_refusal
from policies.judge.heard import Heard
from policies.judge.inventions import is_invented
from policies.judge.withheld import is_withheld
from tests.policies.judge_spans import judge, read_texts

LANGUAGES = {"en", "es", "ja", "ko", "ru", "zh"}


def _wrong_refusals(name: str) -> list[str]:
    return [row["text"] for row in read_texts(name) if not is_refusal(row["text"])]


def test_there_are_enough_texts_in_every_language() -> None:
    good = Counter(row["lang"] for half in ("dev", "held") for row in read_texts(f"good_{half}"))
    refusals = Counter(
        row["lang"] for half in ("dev", "held") for row in read_texts(f"refusals_{half}")
    )
    assert set(good) == set(refusals) == LANGUAGES
    assert good.total() >= 100 and min(good.values()) >= 17
    assert refusals.total() >= 120 and min(refusals.values()) >= 17


@pytest.mark.parametrize(("half", "lost"), [("dev", 0), ("held", 1)])
def test_refusals_are_told(half: str, lost: int) -> None:
    assert len(_wrong_refusals(f"refusals_{half}")) <= lost, _wrong_refusals(f"refusals_{half}")


@pytest.mark.parametrize("half", ["dev", "held"])
def test_good_chapters_pass_the_refusal_rule(half: str) -> None:
    assert [row["text"] for row in read_texts(f"good_{half}") if is_refusal(row["text"])] == []


def test_tellings_that_look_like_refusals_pass() -> None:
    rows = read_texts("tellings")
    wrong = [row["text"] for row in rows if is_refusal(row["text"])]
    # 2 % of 333 are 6; a name that begins with the Chinese word for `I` is among them.
    assert len(rows) == 333
    assert len(wrong) <= 2, wrong


@pytest.mark.parametrize("half", ["dev", "held"])
def test_good_chapters_pass_the_whole_judge(half: str) -> None:
    for row in read_texts(f"good_{half}"):
        verdict = judge(row["text"], row["span"])
        assert (verdict.reasons, verdict.text) == ((), row["text"])


@pytest.mark.parametrize("half", ["dev", "held"])
def test_bad_outputs_are_rejected(half: str) -> None:
    good = read_texts(f"good_{half}")
    rows = read_texts(f"bad_{half}")
    accepted = [
        row["output"] for row in rows if judge(row["output"], good[row["of"]]["span"]).accepted
    ]
    assert {row["lang"] for row in rows} == LANGUAGES
    assert accepted == []


@pytest.mark.parametrize(("half", "lost"), [("dev", 0), ("held", 1)])
def test_refusals_never_become_chapters(half: str, lost: int) -> None:
    span = read_texts("good_dev")[0]["span"]
    rows = read_texts(f"refusals_{half}")
    assert sum(judge(row["text"], span).accepted for row in rows) <= lost


def _noticed(row: dict[str, Any]) -> tuple[str, ...]:
    """The reasons against a whole notice, or against a good chapter with one before or behind."""
    good = read_texts("good_dev")[row["of"]]
    told = " ".join(filter(None, [row.get("head"), good["text"], row.get("tail")]))
    return judge(row.get("text", told), good["span"]).reasons


@pytest.mark.parametrize("half", ["dev", "held"])
def test_notices_are_refusals(half: str) -> None:
    """Law 7: the third person, the span's own names and a good chapter beside it hide none."""
    rows = read_texts(f"notices_{half}")
    assert {row["lang"] for row in rows} == LANGUAGES
    reasons = [_noticed(row) for row in rows]
    assert [row for row, found in zip(rows, reasons, strict=True) if not found] == []
    # The others hold so little of this short talk that they are rejected for that alone.
    assert sum("refusal" in found for found in reasons) >= 0.94 * len(rows)


def test_notices_written_later_are_mostly_refusals() -> None:
    """Written before everyday words were told apart, and never tuned on."""
    rows = read_texts("notices_later")
    assert (len(rows), {row["lang"] for row in rows}) == (28, LANGUAGES)
    missed = [row for row in rows if not _noticed(row)]
    assert len(missed) <= 3, missed


@pytest.mark.parametrize(("half", "rows", "lost"), [("dev", 51, 6), ("held", 30, 4)])
def test_what_was_said_in_other_words_is_told(half: str, rows: int, lost: int) -> None:
    """Rejected chapters, kept records and removed scenes of which the span spoke otherwise."""
    told = read_texts(f"retold_{half}")
    assert (len(told), {row["lang"] for row in told}) == (rows, LANGUAGES)
    wrong = [row["text"] for row in told if "refusal" in judge(row["text"], row["span"]).reasons]
    assert len(wrong) <= lost, wrong


def test_refusals_that_are_told_pass_the_whole_judge() -> None:
    told = [(text, row["span"]) for row in read_texts("told_refusals") for text in row["good"]]
    assert len(told) == 23
    assert [text for text, span in told if not judge(text, span).accepted] == []


def test_tellings_are_no_notices() -> None:
    nothing = Heard([("Ada", "Good morning.")])
    wrong = [row["text"] for row in read_texts("tellings") if is_withheld(row["text"], nothing)]
    # Their sources are not written down; what these three tell of stood in them.
    assert len(wrong) <= 3, wrong
    untold = read_texts("untold")
    assert {row["lang"] for row in untold} == LANGUAGES
    assert [row["text"] for row in untold if is_withheld(row["text"], nothing)] == []


@pytest.mark.parametrize("half", ["dev", "held"])
def test_paraphrases_pass_the_whole_judge(half: str) -> None:
    told = [(text, row["span"]) for row in read_texts(f"fluent_{half}") for text in row["good"]]
    assert len(told) == 11
    assert [text for text, span in told if not judge(text, span).accepted] == []


@pytest.mark.parametrize(("half", "lost"), [("dev", 3), ("held", 2)])
def test_fluent_inventions_are_rejected(half: str, lost: int) -> None:
    told = [(text, row["span"]) for row in read_texts(f"fluent_{half}") for text in row["bad"]]
    accepted = [text for text, span in told if judge(text, span).accepted]
    # Exchanged people behind `excited` may be a listener's answer; a lone invented sentence in a
    # short span may be a paraphrase.
    assert len(told) == 14
    assert len(accepted) <= lost, accepted


def test_free_paraphrases_are_no_inventions() -> None:
    told = [(text, row["span"]) for row in read_texts("paraphrases") for text in row["good"]]
    assert len(told) == 14
    assert [text for text, span in told if is_invented(text, Heard(span))] == []
