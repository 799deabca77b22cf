"""What people are told of a run: its figures, and what makes them worth little."""

from __future__ import annotations

import pytest

from gateway.cli.forgetting_table import print_table, tell_facts, warn
from gateway.evals.forgetting.examiner import Control
from gateway.evals.forgetting.report import Graded, ModeReport, Report

FACTS = {"policy": "p", "backend": "b", "examiner": "e", "keep": None, "repeats": 1, "seed": 0}


def report(**more: object) -> Report:
    grades = [Graded(1, 1, "stack", True), Graded(1, 2, "gist", False)]
    made = Report(modes={"rolling": ModeReport(grades)}, facts=FACTS, questions=2)
    made.fingerprint = {"code": "abcdef0123456789"}
    for name, value in more.items():
        setattr(made, name, value)
    return made


def test_a_grader_that_passes_everything_is_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    blind = report(control=Control(checked=3, wrong_passed=3))
    assert not warn(blind)
    told = capsys.readouterr()
    assert told.out == ""
    assert (
        "of 3 right and as many wrong answers the examiner graded 0 wrong and 3 right" in told.err
    )
    assert "graded 0 wrong and 3 right; code abcdef012345." in tell_facts(blind)


def test_nothing_is_told_of_a_good_one_and_no_questions_are_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert not warn(report(control=Control(checked=8, wrong_passed=1)))
    assert capsys.readouterr().err == ""
    assert warn(report(questions=0))
    assert "no question could be read" in capsys.readouterr().err
    assert warn(report(questions=0, facts={**FACTS, "keep": 0.5}))
    assert "nothing to ask: measure another conversation" in capsys.readouterr().err
    print_table(report(questions=0))
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("Policy p; ")


def test_a_place_that_a_mode_does_not_have_is_left_blank(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table(report(modes={"rolling": ModeReport([Graded(1, 1, "stack", True)])}))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Policy p; backend b, examiner e; ")
    assert lines[2].split() == ["rolling", "100.0%", "100.0%", "100.0%", "100.0%", "0"]
    assert lines[4].split()[:3] == ["1", "stack", "100.0%"]
