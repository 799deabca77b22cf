"""The background work, from the command line."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

from tests.gateway.cli.conftest import Run, Seeded


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
