"""Law: a write that did not stand leaves nothing behind, in no memory of the program either.

On PostgreSQL a transaction may be told to step back, and its function is called again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from gateway.store.conversations import delete_conversation
from tests.gateway.house import House, Say, assistant, user

ROWS = (
    "SELECT depth, role, raw FROM messages ORDER BY pk",
    "SELECT policy, at_depth, border_depth, kind, memory_chars FROM folds ORDER BY pk",
    "SELECT first_depth, last_depth, source_chars FROM chapters ORDER BY pk",
    "SELECT version, text FROM chapter_versions ORDER BY pk",
    "SELECT last_depth, text FROM gists ORDER BY pk",
    "SELECT backend, policy, view_kind, state, memory_chars, verbatim_chars FROM attempts"
    " ORDER BY pk",
    "SELECT kind, state, run_at_ms, attempts FROM jobs ORDER BY pk",
)


def call_twice(house: House) -> list[str]:
    """Every write of this house is called once for nothing. Which they were."""
    called: list[str] = []
    write, writing = house.store.write, house.store.writing

    def twice(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(connection: Connection, *args: Any, **kwargs: Any) -> Any:
            called.append(getattr(function, "__name__", "?"))
            connection.exec_driver_sql("SAVEPOINT again")
            with suppress(Exception):
                function(connection, *args, **kwargs)
            connection.exec_driver_sql("ROLLBACK TO again")
            connection.exec_driver_sql("RELEASE again")
            return function(connection, *args, **kwargs)

        return run

    async def write_twice(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await write(twice(function), *args, **kwargs)

    def write_twice_now(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return writing(twice(function), *args, **kwargs)

    house.store.write = write_twice  # type: ignore[method-assign]
    house.store.writing = write_twice_now  # type: ignore[method-assign]
    return called


async def live(house: House) -> tuple[list[list[Any]], list[Any]]:
    """A conversation that folds, an edit, a swipe, a chat that goes. All rows, and prompts."""
    history: list[Say] = [{"role": "system", "content": "S"}]
    while not house.rows("SELECT pk FROM gists") or len(house.folds()) < 3:
        history.append(user(f"{len(history)}: 灯台の鍵 🗝️ " + "word " * 60))
        house.local.answers = [f"Reply {len(history)}."]
        said = await house.say(*history, id="c")
        history.append(assistant(said.text))
        for chapter, conversation, _ in house.pending():  # no row's number in it
            house.write(chapter, conversation, "They spoke of many things.")
        house.write_gists()
    await house.say(*history[:-1], id="c")
    await house.say(*history[:-4], user("Otra vez, ¿dónde?"), id="c")
    await house.say("lone", id="d", owner="bob")
    house.store.writing(
        delete_conversation, house.conversation("d", "bob"), elsewhere=(), now_ms=house.clock.ms
    )
    return [house.rows(sql) for sql in ROWS], [list(prompt) for prompt in house.local.seen]


async def test_what_is_called_twice_is_as_if_called_once(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("once", "twice")]
    for folder in folders:
        folder.mkdir()
    houses = [House(folder) for folder in folders]
    called = call_twice(houses[1])
    once, twice = [await live(house) for house in houses]
    assert twice == once
    assert {"begin_turn", "finish_turn", "delete_conversation"} <= set(called)
    for house in houses:
        house.store.close()
