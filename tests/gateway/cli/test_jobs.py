"""The background work, from the command line."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gateway.store.engine import Store
from tests.gateway.cli.conftest import Run, Seeded
from tests.gateway.flows.stage import setup_chapter


def test_jobs_are_listed(run: Run, seeded: Seeded) -> None:
    (job,) = json.loads(run("jobs", "list", "--json").stdout)["jobs"]
    assert job.pop("id").startswith("chapter:")
    assert job == {
        "kind": "chapter",
        "state": "queued",
        "attempts": 1,
        "run_at": "2023-11-14T22:13:50.000Z",
        "error": "refusal",
        "waits_for": "a running gateway and a quiet moment of local-glm",
        "conversation": seeded.mine.id,
        "policy": "local-fold",
    }
    for arguments in (("--owner", "anna"), ("--owner", "nobody")):
        assert json.loads(run("jobs", "list", "--json", *arguments).stdout) == {"jobs": []}


def test_jobs_for_people(run: Run, seeded: Seeded) -> None:
    done = run("jobs", "list")
    assert done.stdout.startswith("2023-11-14T22:13:50.000Z  queued  chapter  attempts 1")
    assert "  waits for a running gateway and a quiet moment of local-glm  refusal" in done.stdout
    assert done.stderr == "1 job\n"


def test_one_job_is_shown(run: Run, seeded: Seeded) -> None:
    with closing(sqlite3.connect(seeded.path)) as connection:
        connection.execute("UPDATE jobs SET payload = json_object('chapter', 2)")
        connection.commit()
    (listed,) = json.loads(run("jobs", "list", "--json").stdout)["jobs"]
    told = json.loads(run("jobs", "show", listed["id"], "--json").stdout)
    assert (told["conversation"], told["cause"]) == (seeded.mine.id, "refusal")
    shown = run("jobs", "show", listed["id"]).stdout.splitlines()
    assert f"{'id':<14}{listed['id']}" in shown
    assert shown[-1] == "2023-11-14T22:13:20.000Z  refused  local-glm  refusal"
    assert any(line.startswith("chapter       id chap_") for line in shown)
    hers = run("jobs", "show", listed["id"], "--owner", "anna")
    assert hers.exit_code == 1 and "There is no job" in hers.stderr


def test_a_job_is_cancelled_and_tried_again(run: Run, seeded: Seeded) -> None:
    (listed,) = json.loads(run("jobs", "list", "--json").stdout)["jobs"]
    id = listed["id"]
    assert run("jobs", "cancel", id, "chapter:99").exit_code == 1
    assert json.loads(run("jobs", "list", "--json").stdout)["jobs"] == [listed]  # all or none
    assert run("jobs", "cancel", id, "--owner", "anna").exit_code == 1
    assert run("jobs", "cancel", id).stdout == f"parked  {id}\n"
    (parked,) = json.loads(run("jobs", "list", "--json").stdout)["jobs"]
    assert (parked["state"], parked["error"]) == ("parked", "cancelled by its owner")
    (again,) = json.loads(run("jobs", "retry", id, "--json").stdout)["jobs"]
    assert (again["state"], again["attempts"], again["cause"]) == ("queued", 0, None)


RUN = """
version: 1
backends:
  scribe: {kind: scripted, latency: 0ms, refusals: 0, truncations: 0}
policies:
  alone: {chapters: {length: 500}, summaries: {backends: [scribe], delay: 30s}}
models:
  foldgate: {tiers: [{backend: scribe, policy: alone}]}
"""


@pytest.fixture
def two(tmp_path: Path, run: Run) -> list[str]:
    """Two chapters that are due, by the ids of their jobs."""
    (tmp_path / "policies.yaml").write_text(RUN)
    store = Store(f"sqlite:///{tmp_path}/foldgate.db")
    store.open()
    made = [store.writing(setup_chapter, policy="alone", delay_ms=delay) for delay in (0, 10**13)]
    store.close()
    return [f"chapter:{chapter}" for _, chapter in made]


def test_what_is_due_is_done_here(run: Run, two: list[str]) -> None:
    done = run("jobs", "run", "--json")
    assert json.loads(done.stdout) == {"ran": 1, "written": 1, "parked": 0, "left": 1}
    assert done.exit_code == 0
    listed = json.loads(run("jobs", "list", "--all", "--json").stdout)["jobs"]
    assert {job["id"]: job["state"] for job in listed} == {two[0]: "done", two[1]: "queued"}


def test_work_that_is_named_is_done_before_its_time(run: Run, two: list[str]) -> None:
    done = run("jobs", "run", two[1], "--until-idle")
    assert (done.exit_code, done.stdout) == (
        0,
        "1 job ran: 1 text written, 0 given up; 0 jobs left\n",
    )
    again = run("jobs", "run", two[1])
    assert again.exit_code == 1 and "it is done" in again.stderr
    assert "There is no job" in run("jobs", "run", "chapter:99").stderr


def test_until_idle_ends_with_what_was_given_up(run: Run, two: list[str], tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "foldgate.db")) as connection:
        connection.execute("UPDATE jobs SET run_at_ms = 0, kind = 'dream' WHERE key = ?", (two[1],))
        connection.commit()
    done = run("jobs", "run", "--until-idle", "--json")
    assert json.loads(done.stdout) == {"ran": 1, "written": 1, "parked": 0, "left": 0}
    shown = json.loads(run("jobs", "show", two[1], "--json").stdout)
    assert (shown["state"], shown["cause"]) == ("parked", "poisoned")


def test_no_database_is_made_to_run_work_in(run: Run, tmp_path: Path) -> None:
    (tmp_path / "policies.yaml").write_text(RUN)
    done = run("jobs", "run")
    assert (done.exit_code, "there is no database" in done.stderr) == (2, True)
