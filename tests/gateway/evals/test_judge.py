"""eval judge: which rows count where, and how the command ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.errors import ConfigurationError
from gateway.evals.judge import measure_judge, read_rows

SPAN = [
    ["Mara", "Keep your voice down. The night watch passes every quarter of an hour."],
    ["Finn", "I brought the lockpicks. Which window is the jeweller's?"],
    ["Mara", "The second one, with the green shutters. The necklace lies in the desk."],
]
GOOD = "Finn brought the lockpicks; Mara told him that the necklace lies in the jeweller's desk."
REFUSAL = "I'm sorry, but I can't summarise this conversation."
KEYS = {
    *("refuse_total", "refuse_rejected", "accept_total", "accept_rejected"),
    *("by_reason", "wrong", "hard_total", "hard_rejected"),
    *("misattributed_total", "misattributed_rejected", "misattributed_named"),
}


def _text(text: str, label: str, role: str = "summary") -> dict[str, Any]:
    return {"text": text, "label": label, "as": role, "lang": "en"}


def _output(output: str, label: str, *reasons: str, finish: str | None = "stop") -> dict[str, Any]:
    return {
        "output": output,
        "span": SPAN,
        "finish_reason": finish,
        "label": label,
        "reasons": list(reasons),
    }


def _measure(*rows: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    report, passed = measure_judge(read_rows(map(json.dumps, rows), "rows"))
    return report.as_json(), passed


def test_texts_meet_the_refusal_rule_alone() -> None:
    counts, passed = _measure(
        _text(REFUSAL, "refuse"),
        _text("Mara waits with the", "accept"),
        _text("I can't find that file.", "accept", "chat"),
        _text("Nothing wrong with chat.", "refuse", "chat"),
    )
    assert set(counts) == KEYS
    assert passed
    assert counts["refuse_total"] == counts["refuse_rejected"] == 1
    assert (counts["accept_total"], counts["accept_rejected"]) == (1, 0)
    assert counts["by_reason"] == {"refusal": [1, 1]}
    assert counts["wrong"] == []


def test_outputs_meet_the_whole_judge() -> None:
    counts, passed = _measure(
        _output(GOOD, "accept"),
        _output(json.dumps({"chapter": GOOD}), "accept"),
        _output(GOOD, "reject", "truncated", "loop", finish="length"),
        _output(GOOD, "reject", "truncated", finish=None),
    )
    assert passed
    assert (counts["accept_total"], counts["accept_rejected"]) == (2, 0)
    assert (counts["refuse_total"], counts["refuse_rejected"]) == (2, 2)
    assert counts["by_reason"] == {"truncated": [2, 2], "loop": [1, 1]}


def test_hard_rows_stand_apart() -> None:
    counts, passed = _measure(
        _output(GOOD, "reject", "misattributed"),
        _output(GOOD, "reject", "misattributed", "thin", finish="length"),
        _output(REFUSAL, "reject", "thin", "refusal"),
    )
    assert passed
    assert (counts["hard_total"], counts["hard_rejected"]) == (2, 1)
    assert (counts["refuse_total"], counts["refuse_rejected"]) == (1, 1)
    assert counts["by_reason"] == {"thin": [1, 1], "refusal": [1, 1]}


def test_misattributed_rows_are_counted_apart_whatever_else_is_wrong() -> None:
    talk = [["Mara", "The necklace lies in the desk of the jeweller, and I know the window."]] * 3
    talk += [["Finn", "I brought the lockpicks and I will whistle in the night."]] * 3
    swapped = "Finn has the necklace in the desk of the jeweller. Mara brought the lockpicks."
    rows = [
        {**_output(swapped, "reject", "misattributed"), "span": talk},
        {**_output(swapped, "reject", "ungrounded", "misattributed"), "span": talk},
        _output(GOOD, "reject", "misattributed", "truncated", finish="length"),
        _output(GOOD, "reject", "misattributed"),
        _output(GOOD, "reject", "truncated", finish="length"),
    ]
    counts, _ = _measure(*rows)
    assert (counts["misattributed_total"], counts["misattributed_rejected"]) == (4, 3)
    assert counts["misattributed_named"] == 2, "a cut text is rejected for another reason"
    assert (counts["hard_total"], counts["hard_rejected"]) == (2, 1)
    assert counts["by_reason"]["misattributed"] == [2, 2]


def test_wrong_rows_are_listed_with_their_line() -> None:
    counts, passed = _measure(
        _text("Mara waits.", "accept"),
        _text(GOOD * 9, "refuse"),
        _output(REFUSAL, "accept"),
    )
    assert not passed
    assert [(row["line"], row["label"], row["reasons"]) for row in counts["wrong"]] == [
        (2, "refuse", ["refusal"]),
        (3, "accept", []),
    ]
    assert counts["wrong"][0]["got"] == []
    assert "refusal" in counts["wrong"][1]["got"]
    assert len(counts["wrong"][0]["text"]) == 120


@pytest.mark.parametrize(
    ("missed", "of", "passed"),
    [(5, 100, True), (6, 100, False), (0, 0, True)],
)
def test_the_bar_for_refusals_is_95_of_100(missed: int, of: int, passed: bool) -> None:
    rows = [_text(GOOD, "refuse")] * missed + [_text(REFUSAL, "refuse")] * (of - missed)
    assert _measure(*rows)[1] is passed


@pytest.mark.parametrize(("lost", "passed"), [(1, True), (2, False)])
def test_the_bar_for_good_outputs_is_10_of_100(lost: int, passed: bool) -> None:
    rows = [_output(REFUSAL, "accept")] * lost + [_output(GOOD, "accept")] * (10 - lost)
    assert _measure(*rows)[1] is passed


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "rows, line 3: "),
        ("[1]", "rows, line 3: neither {text, label, as} nor {output"),
        ('{"a": 1}', "rows, line 3: neither"),
        ('{"text": "x", "label": "reject", "as": "summary"}', "rows, line 3 at text.label: "),
        ('{"text": "x", "label": "refuse"}', "rows, line 3 at text.as: "),
        ('{"output": "x", "span": [["a"]], "finish_reason": "stop", "label": "accept"}', "span.0"),
        ('{"output": "x", "span": [], "label": "accept"}', "line 3 at output.finish_reason"),
    ],
)
def test_a_malformed_row_is_told_with_its_line(line: str, told: str) -> None:
    lines = [json.dumps(_text(GOOD, "accept")), "", line]
    with pytest.raises(ConfigurationError) as caught:
        list(read_rows(lines, "rows"))
    assert told in str(caught.value)


def _run(*arguments: str) -> Any:
    return CliRunner().invoke(main, ["eval", "judge", *arguments])


def _write(path: Path, *rows: dict[str, Any]) -> str:
    path.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    return str(path)


def test_the_command_prints_one_json_object(tmp_path: Path) -> None:
    rows = [_text(REFUSAL, "refuse")] * 120
    result = _run(_write(tmp_path / "rows.jsonl", *rows), "--json")
    assert result.exit_code == 0
    assert set(json.loads(result.stdout)) == KEYS
    assert result.stderr.splitlines() == ["100 of 120 rows judged", "120 of 120 rows judged"]


def test_the_command_prints_a_table_for_people(tmp_path: Path) -> None:
    rows = [_text(GOOD, "refuse"), _output(GOOD, "reject", "thin")]
    result = _run(_write(tmp_path / "rows.jsonl", *rows))
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[1].split() == ["to", "be", "rejected", "0", "1", "0.0%"]
    assert lines[2].split()[-1] == "–"
    assert f"line 1: refuse, but accepted: {GOOD}" in lines
    assert lines[-1] == "below the bars"


def test_wrong_use_ends_with_2(tmp_path: Path) -> None:
    assert _run(str(tmp_path / "missing.jsonl")).exit_code == 2
    (tmp_path / "bytes.jsonl").write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in _run(str(tmp_path / "bytes.jsonl")).stderr
    (tmp_path / "bad.jsonl").write_text('{"a": 1}\n')
    result = _run(str(tmp_path / "bad.jsonl"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "line 1" in result.stderr


def test_a_file_without_rows_reaches_no_bar(tmp_path: Path) -> None:
    result = _run(_write(tmp_path / "rows.jsonl"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "no rows" in result.stderr
