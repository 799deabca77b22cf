"""Commands over a database on a server: what they say of it, and what they leave to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, make_url, text

from gateway.cli.doctor_server import check_server
from gateway.clock import SystemClock
from gateway.store.engine import Store
from gateway.store.migrations import HEAD
from tests.gateway.cli.conftest import Run
from tests.gateway.databases import database_url, using
from tests.gateway.seeds import POLICIES, add_conversation, talk


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "policies.yaml").write_text(POLICIES)
    with using("postgresql"):
        yield hide(database_url(tmp_path / "foldgate.db"))


def hide(url: str) -> str:
    """The same database with a password, which its server does not ask for."""
    return make_url(url).set(password="geheim").render_as_string(hide_password=False)


def report(run: Run, url: str, *arguments: str) -> tuple[int, dict[str, Any], str]:
    done = run("doctor", "--json", "--database-url", url, *arguments)
    return done.exit_code, json.loads(done.stdout), done.output


def test_a_server_that_answers(run: Run, url: str) -> None:
    _, found, output = report(run, url)
    assert found["database"]["ok"]
    assert found["database"]["says"] == f"answers, at revision {HEAD}"
    assert found["database"]["server"].startswith("postgresql://foldgate:***@/")
    assert found["machine"]["clock"]["ok"]
    assert "a gateway takes up to 5" in found["machine"]["connections"]["says"]
    settings = found["machine"]["settings"]
    assert not settings["ok"] and "fsync = on" in settings["advice"], "the tests' own has it off"
    assert "geheim" not in output


def test_a_server_that_has_no_tables_yet(run: Run, tmp_path: Path) -> None:
    (tmp_path / "policies.yaml").write_text(POLICIES)
    with using("postgresql"):
        url = database_url(tmp_path / "empty.db", migrated=False)
        _, found, _ = report(run, url)
        assert found["database"]["says"] == "empty: its tables are made at the first start"
        assert found["machine"] == {}
        listed = run("conversations", "list", "--database-url", url)
        assert (listed.exit_code, listed.stdout) == (2, "")
        assert "there is no database at postgresql://" in listed.stderr


def test_a_server_that_does_not_answer(run: Run, tmp_path: Path) -> None:
    (tmp_path / "policies.yaml").write_text(POLICIES)
    url = "postgresql://ann:geheim@127.0.0.1:1/chats"
    code, found, output = report(run, url)
    assert code == 1 and not found["database"]["ok"]
    assert found["database"]["says"].startswith("cannot be read: ")
    assert "geheim" not in output
    listed = run("conversations", "list", "--database-url", url)
    assert listed.exit_code == 2
    assert "postgresql://ann:***@127.0.0.1:1/chats cannot be reached" in listed.stderr


@pytest.mark.parametrize(
    ("command", "instead"),
    [(("doctor", "--deep"), "pg_amcheck"), (("backup",), "pg_dump")],
)
def test_what_is_left_to_the_servers_own_tools(
    run: Run, url: str, command: tuple[str, ...], instead: str
) -> None:
    done = run(*command, "--database-url", url)
    assert done.exit_code == 2
    assert instead in done.stderr and "geheim" not in done.output


def test_commands_read_and_change_what_is_there(run: Run, url: str) -> None:
    store = Store(url)
    chat, _ = store.writing(add_conversation, talk(2), alias="灯台")
    listed = run("conversations", "list", "--json", "--database-url", url)
    assert [one["id"] for one in json.loads(listed.stdout)["conversations"]] == [chat.id]
    told = json.loads(run("vacuum", "--json", "--database-url", url).stdout)
    assert told["wiped"] and told["bytes_before"] >= told["bytes_after"] > 0
    gone = run("conversations", "delete", "灯台", "--yes", "--database-url", url)
    assert gone.exit_code == 0
    assert store.reading(lambda c: c.execute(text("SELECT id FROM conversations")).all()) == []
    store.close()


def test_a_clock_that_differs_from_the_servers(run: Run, url: str) -> None:
    store = Store(url)
    now_ms = SystemClock().now_ms()
    behind = check_server(store, now_ms - 60_000)["clock"]
    assert (behind["ok"], behind["says"]) == (
        False,
        "the server's clock is 60 s ahead of this machine's",
    )
    ahead = check_server(store, now_ms + 60_000)["clock"]
    assert (ahead["ok"], ahead["says"]) == (
        False,
        "the server's clock is 60 s behind this machine's",
    )

    def write_ahead(connection: Connection) -> None:
        add_conversation(connection, talk(1), now_ms=now_ms + 3_600_000)

    store.writing(write_ahead)
    found = check_server(store, now_ms)["clock"]
    assert not found["ok"] and "the newest row was written at" in found["says"]
    store.close()
