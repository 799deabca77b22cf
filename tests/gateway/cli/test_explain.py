"""`foldgate policies explain`: where a conversation goes next, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.cli.conftest import Run, Seeded

POLICIES = """
version: 1
backends:
  rehearsal: {kind: scripted}
  local-glm: {kind: llama_cpp, url: "http://127.0.0.1:1", window: 65536 tokens}
policies:
  local-fold: {}
models:
  foldgate:
    tiers:
      - {backend: local-glm, policy: local-fold}
      - {backend: rehearsal, policy: local-fold}
    rules:
      - {name: 7-by-mood, when: {header: {X-Mood: dark}, tag: [work]}, tier: rehearsal}
      - {name: huge, when: {chars: {over: 1M chars}}, tier: rehearsal}
"""


@pytest.fixture
def explained(seeded: Seeded, tmp_path: Path) -> Seeded:
    (tmp_path / "policies.yaml").write_text(POLICIES)
    return seeded


def explain(run: Run, *arguments: str) -> dict[str, Any]:
    done = run("policies", "explain", "--json", *arguments)
    assert done.exit_code == 0
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_conversation_by_either_name(run: Run, explained: Seeded) -> None:
    found = explain(run, "--conversation", "chat-1")
    assert found == explain(run, "--conversation", explained.mine.id)
    assert found["conversation"] == explained.mine.id
    # Nobody listens at port 1.
    assert found["choice"] == {
        "backend": "rehearsal",
        "policy": "local-fold",
        "rule": "first-healthy",
    }
    usable = {one["backend"]: one["usable"] for one in found["backends"]}
    assert usable == {"local-glm": False, "rehearsal": True}
    assert [turn["rule"] for turn in found["turns"]] == [None]


def test_what_a_client_would_send_may_be_tried(run: Run, explained: Seeded) -> None:
    plain = ("--conversation", "chat-1", "--header", "X-MOOD = dark")
    ways = {way["rule"]: way for way in explain(run, *plain)["ways"]}
    assert ways["7-by-mood"]["misses"] == ["tag"]
    assert ways["huge"]["misses"] == ["chars"]
    assert explain(run, *plain, "--tag", "work")["choice"]["rule"] == "7-by-mood"


def test_for_people_it_is_told_in_lines(run: Run, explained: Seeded) -> None:
    done = run("policies", "explain", "--conversation", "chat-1")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0] == f"{explained.mine.id} (model foldgate)"
    assert lines[1] == "its next turn goes to rehearsal under local-fold: first-healthy"
    assert lines[2:8] == [
        "  no  route -> none",
        "  no  7-by-mood -> rehearsal (does not hold: header, tag)",
        "  no  huge -> rehearsal (does not hold: chars)",
        "  no  home -> local-glm (it cannot be used now)",
        "  no  first-healthy -> local-glm (it cannot be used now)",
        "  yes first-healthy -> rehearsal  [chosen]",
    ]
    assert lines[8].endswith("local-glm under local-fold: no rule (folded, done)")
    assert (len(lines), done.stderr) == (9, "")


def test_of_several_ways_that_hold_the_chosen_one_is_marked(run: Run, explained: Seeded) -> None:
    sent = ("--conversation", "chat-1", "--header", "X-Mood=dark", "--tag", "work")
    ways = explain(run, *sent)["ways"]
    assert [way["rule"] for way in ways if way["holds"]] == ["7-by-mood", "first-healthy"]
    assert [way["rule"] for way in ways if way["chosen"]] == ["7-by-mood"]
    lines = run("policies", "explain", *sent).stdout.splitlines()
    assert "  yes 7-by-mood -> rehearsal  [chosen]" in lines
    assert "  yes first-healthy -> rehearsal" in lines


def test_a_way_that_is_taken_for_want_of_another_is_marked_too(
    run: Run, explained: Seeded, tmp_path: Path
) -> None:
    lone = POLICIES.replace("      - {backend: rehearsal, policy: local-fold}\n", "")
    (tmp_path / "policies.yaml").write_text(lone[: lone.index("    rules:")])
    done = run("policies", "explain", "--conversation", "chat-1")
    assert done.stdout.splitlines()[1:-1] == [
        "its next turn goes to local-glm under local-fold: first-healthy",
        "  no  route -> none",
        "  no  home -> none",
        "  no  first-healthy -> local-glm (it cannot be used now)  [chosen]",
    ]


def test_wrong_use(run: Run, explained: Seeded) -> None:
    assert run("policies", "explain").exit_code == 2
    assert run("policies", "explain", "--conversation", "x", "--header", "Y").exit_code == 2
    unknown = run("policies", "explain", "--conversation", explained.hers.id)
    assert unknown.exit_code == 1
    assert "local has no conversation" in unknown.stderr
