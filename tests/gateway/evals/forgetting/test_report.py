"""Shares by mode, place and age, and what repeats differ by."""

from __future__ import annotations

from gateway.evals.forgetting.report import Graded, ModeReport, Report


def graded(repeat: int, age: int, where: str, right: int, of: int) -> list[Graded]:
    return [Graded(repeat, age, where, number < right) for number in range(of)]


def test_shares_and_their_spread_over_repeats() -> None:
    mode = ModeReport(
        [
            *graded(1, 1, "stack", 3, 4),
            *graded(1, 2, "gist", 1, 4),
            *graded(2, 1, "stack", 1, 4),
            *graded(2, 2, "gist", 0, 4),
        ]
    )
    figures = mode.as_json()
    # Repeats: 4 of 8 and 1 of 8.
    assert figures["mean"] == round((0.5 + 0.125) / 2, 4)
    assert figures["spread"] == {"min": 0.125, "max": 0.5, "stdev": 0.2652}
    assert figures["by_where"] == {"gist": 0.125, "stack": 0.5}
    assert figures["by_span"] == [
        {
            "age": 1,
            "where": "stack",
            "share": 0.5,
            "spread": {"min": 0.25, "max": 0.75, "stdev": 0.3536},
            "questions": 8,
        },
        {
            "age": 2,
            "where": "gist",
            "share": 0.125,
            "spread": {"min": 0.0, "max": 0.25, "stdev": 0.1768},
            "questions": 8,
        },
    ]
    assert figures["questions"] == 16


def test_of_one_repeat_no_deviation_is_known() -> None:
    figures = ModeReport(graded(1, 1, "stack", 1, 2)).as_json()
    assert figures["spread"] == {"min": 0.5, "max": 0.5, "stdev": 0.0}


def test_an_age_may_be_told_in_two_places() -> None:
    mode = ModeReport([*graded(1, 3, "stack", 2, 2), *graded(1, 3, "gist", 0, 2)])
    rows = [(row["age"], row["where"], row["share"]) for row in mode.by_span()]
    assert rows == [(3, "gist", 0.0), (3, "stack", 1.0)]


def test_a_report_without_questions_is_all_zeros() -> None:
    report = Report(modes={"rolling": ModeReport()})
    figures = report.as_json()
    assert figures["modes"]["rolling"]["mean"] == 0.0
    assert figures["modes"]["rolling"]["spread"] == {"min": 0.0, "max": 0.0, "stdev": 0.0}
    assert (figures["span_chars"], figures["questions"]) == (0, 0)
