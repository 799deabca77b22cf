"""`foldgate scrub` over a database with two owners' conversations."""

from __future__ import annotations

import json

import pytest

from gateway.store import chapter_rows
from gateway.store.engine import Store
from tests.gateway.cli.conftest import Run, Seeded
from tests.gateway.seeds import NOW

REFUSAL = "I'm sorry, but I can't help with summarizing this conversation."


@pytest.fixture
def refused(seeded: Seeded) -> Seeded:
    """The chapter of `mine` is a refusal, written before the judge knew it."""
    store = Store(f"sqlite:///{seeded.path}")
    store.open()
    (chapter, _) = store.reading(chapter_rows.all_chapters, seeded.mine.pk)
    store.writing(
        chapter_rows.add_version,
        seeded.mine.pk,
        chapter.pk,
        text=REFUSAL,
        origin="model",
        backend="local-glm",
        prompt="1",
        now_ms=NOW,
    )
    store.close()
    return seeded


def test_bad_memory_is_told_and_then_quarantined(run: Run, refused: Seeded) -> None:
    dry = run("scrub", "chat-1", "--dry-run", "--json")
    told = json.loads(dry.stdout)
    assert (dry.exit_code, told["dry_run"], told["conversations"]) == (1, True, 1)
    assert [(one["kind"], one["reasons"][0]) for one in told["bad"]] == [("chapter", "refusal")]
    assert told["looked"] == {"chapter": 1, "gist": 1, "entry": 0, "fact": 0}
    before = json.loads(run("conversations", "show", "chat-1", "--json").stdout)["memory"]
    assert before["chapters"][0]["text"] == REFUSAL
    done = run("scrub", "chat-1", "--json")
    assert (done.exit_code, json.loads(done.stdout)["bad"]) == (0, told["bad"])
    after = json.loads(run("conversations", "show", "chat-1", "--json").stdout)["memory"]
    assert after["chapters"][0]["origin"] == "stand-in"
    assert len(after["quarantine"]) == len(before["quarantine"]) + 1
    assert [job["state"] for job in after["jobs"]] == ["queued", "queued"]
    clean = run("scrub", "--all", "--dry-run", "--json")
    assert (clean.exit_code, json.loads(clean.stdout)["bad"]) == (0, [])
    assert json.loads(clean.stdout)["conversations"] == 2


def test_progress_is_no_part_of_what_is_found(run: Run, refused: Seeded) -> None:
    done = run("scrub", "--all", "--dry-run", "--json")
    assert list(json.loads(done.stdout)) and done.stdout.count("\n") == 1
    assert done.stderr == ""
    told = run("scrub", "--all", "--dry-run")
    assert " of 2 " not in told.output and "\r" not in told.output


def test_it_is_told_to_people(run: Run, refused: Seeded) -> None:
    done = run("scrub", refused.mine.id, "--dry-run")
    assert f"{refused.mine.id}  chapter  chap_" in done.stdout
    assert "  refusal" in done.stdout
    assert done.stdout.endswith(f": {REFUSAL}\n")
    assert "1 conversation (1 chapter, 1 gist, 0 entries, 0 facts): 1 is bad" in done.stderr
    assert "1 is in quarantine now" in run("scrub", "--all").stderr


def test_all_are_an_owners_where_one_is_named(run: Run, refused: Seeded) -> None:
    done = run("scrub", "--all", "--owner", "anna", "--json")
    assert json.loads(done.stdout)["conversations"] == 1
    assert json.loads(done.stdout)["bad"] == []
    assert run("scrub", refused.mine.id, "--owner", "anna").exit_code == 1


@pytest.mark.parametrize(
    "arguments", [(), ("--all", "chat-1"), ("--all", "--user", "u"), ("chat-1", "--what")]
)
def test_wrong_use_is_told(run: Run, refused: Seeded, arguments: tuple[str, ...]) -> None:
    done = run("scrub", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
