"""The background work, from the command line."""

from __future__ import annotations

import json

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
        "conversation": seeded.mine.id,
        "policy": "local-fold",
    }
    for arguments in (("--owner", "anna"), ("--owner", "nobody")):
        assert json.loads(run("jobs", "list", "--json", *arguments).stdout) == {"jobs": []}


def test_jobs_for_people(run: Run, seeded: Seeded) -> None:
    done = run("jobs", "list")
    assert done.stdout.startswith("2023-11-14T22:13:50.000Z  queued  chapter  attempts 1")
    assert done.stderr == "1 jobs\n"
