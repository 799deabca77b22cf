"""What several commands share: progress, told to whoever waits and to nobody else."""

from __future__ import annotations

import sys
from io import StringIO

import pytest

from gateway.cli.options import counted, tell_progress


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_one_line_is_written_over(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    for done in (1, 2, 3):
        tell_progress(done, 3, "conversations")
    said = "\r1 of 3 conversations\r2 of 3 conversations\r3 of 3 conversations\n"
    assert terminal.getvalue() == said
    assert capsys.readouterr().out == ""


def test_elsewhere_a_line_comes_in_a_while(capsys: pytest.CaptureFixture[str]) -> None:
    for done in range(1, 1_251):
        tell_progress(done, 1_250, "conversations")
    told = capsys.readouterr()
    lines = told.err.splitlines()
    assert (len(lines), lines[0], lines[-1]) == (
        12,
        "100 of 1,250 conversations",
        "1,200 of 1,250 conversations",
    )
    assert told.out == "" and "\r" not in told.err


@pytest.mark.parametrize(
    ("number", "told"), [(0, "0 memories"), (1, "1 memory"), (2_008, "2,008 memories")]
)
def test_a_number_with_its_noun(number: int, told: str) -> None:
    assert counted(number, "memory", "memories") == told
    assert counted(number, "job") == f"{number:,} job" + "s" * (number != 1)
