import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.cli.policies import policies_group

SHIPPED = Path(__file__).parents[3] / "policies.yaml"


def run(*arguments, **environ):
    return CliRunner().invoke(policies_group, list(map(str, arguments)), env=environ)


@pytest.fixture
def wrong(tmp_path):
    path = tmp_path / "policies.yaml"
    text = SHIPPED.read_text(encoding="utf-8")
    path.write_text(text.replace("start: 48_000", "start: 48,000"), encoding="utf-8")
    return path


def test_a_right_file_ends_with_0():
    result = run("check", SHIPPED)
    assert (result.exit_code, result.stdout) == (0, f"{SHIPPED}: nothing is wrong\n")


def test_a_right_file_as_json_is_one_object():
    result = run("check", SHIPPED, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"ok": True, "problems": [], "cautions": []}


NARROW = """\
version: 1
backends: {glm: {kind: llama_cpp, url: "http://127.0.0.1:8080"}}
policies:
  fold:
    recall: {budget: 9_000, between_folds: 599, tool: true}
    ledger: {length: 4_000}
    ttl: 365d
models: {chat: {tiers: [{backend: glm, policy: fold}]}}
...
"""


def test_cautions_are_told_and_fail_nothing(tmp_path):
    path = tmp_path / "policies.yaml"
    path.write_text(NARROW)
    told = json.loads(run("check", path, "--json").stdout)
    assert (told["ok"], told["problems"]) == (True, [])
    starts = (
        "policies.fold.ttl has no effect yet",
        "policies.fold.recall.budget 9,000 is above recall.between_folds",
        "policies.fold.ledger.length 4,000 is more than a tenth",
        "policies.fold.recall.tool is on, but from one fold to the next notes and searches may "
        "cost 599 characters together (recall.between_folds, and a third of view.headroom) and one "
        "search takes 600: no model is offered it",
    )
    assert len(told["cautions"]) == len(starts)
    assert all(one.startswith(start) for one, start in zip(told["cautions"], starts, strict=True))
    for_people = run("check", path)
    assert for_people.exit_code == 0
    assert for_people.stdout.splitlines() == [
        *(f"{path}: caution: {caution}" for caution in told["cautions"]),
        f"{path}: nothing is wrong",
    ]


def test_a_wrong_file_ends_with_1_and_is_told_for_people(wrong):
    result = run("check", wrong)
    assert result.exit_code == 1
    line = next(n for n, text in enumerate(wrong.read_text().splitlines(), 1) if "48,000" in text)
    assert result.stdout == (
        f'{wrong}:{line}:14: policies.local-fold.view.start: read "48,000"; allowed is a size '
        "such as 48000, 48_000, 48k chars or 30k tokens (write 48000)\n"
    )


def test_a_wrong_file_is_told_for_programs(wrong):
    result = run("check", "--json", wrong)
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert told["ok"] is False
    (problem,) = told["problems"]
    assert told["cautions"] == []
    assert set(problem) == {"line", "column", "path", "message", "hint"}
    assert problem["path"] == "policies.local-fold.view.start"
    assert problem["column"] == 14


def test_variables_come_from_the_environment(tmp_path):
    path = tmp_path / "policies.yaml"
    path.write_text(SHIPPED.read_text(encoding="utf-8").replace("XAI_API_KEY:-", "XAI_API_KEY"))
    assert run("check", path, XAI_API_KEY="geheim").exit_code == 0
    result = run("check", path, XAI_API_KEY="")
    assert result.exit_code == 1
    assert "the environment variable XAI_API_KEY is set but empty" in result.stdout


@pytest.mark.parametrize("arguments", [(), ("/no/such/file.yaml",), (SHIPPED, "--colour")])
def test_wrong_use_ends_with_2(arguments):
    assert run("check", *arguments).exit_code == 2
