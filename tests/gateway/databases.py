"""The database that a test runs on: a file in its folder, or one of the run's PostgreSQL server.

Who says nothing gets SQLite, or what HOUSE_ENGINE in the environment names.
"""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.store.engine import Store
from tests import postgres

ENGINES = ("sqlite", "postgresql")


class _Current:
    """What the test that runs is given, and the databases on the server that it has so far."""

    def __init__(self) -> None:
        self.engine = os.environ.get("HOUSE_ENGINE", "sqlite")
        assert self.engine in ENGINES, f"HOUSE_ENGINE is one of {', '.join(ENGINES)}"
        self.made: dict[Path, tuple[str, bool]] = {}


_current = _Current()


def engine() -> str:
    """The kind of database that the test that runs is given."""
    return _current.engine


@contextmanager
def using(engine: str) -> Iterator[None]:
    """Databases of this kind until the end."""
    before, _current.engine = _current.engine, engine
    try:
        yield
    finally:
        _current.engine = before


@contextmanager
def dropping() -> Iterator[None]:
    """At the end no database is left on the server that was made in here."""
    before = dict(_current.made)
    try:
        yield
    finally:
        for place in _current.made.keys() - before.keys():
            url, is_clean = _current.made.pop(place)
            (postgres.give_back if is_clean else postgres.drop_database)(url)


def database_url(place: Path, *, migrated: bool = True) -> str:
    """The URL of the database at a place, a file's path: on PostgreSQL the one that stands for it
    (migrated: with its tables from the start), made where it is asked for first."""
    if _current.engine == "sqlite":
        return f"sqlite:///{place}"
    if place not in _current.made:
        made = postgres.take_database() if migrated else postgres.make_database()
        _current.made[place] = made, migrated
    return _current.made[place][0]


def house_url(place: Path) -> str:
    """As database_url, with the tables in it."""
    if _current.engine == "sqlite":
        place.write_bytes(empty_database())
    return database_url(place)


@functools.cache
def empty_database() -> bytes:
    """A migrated database: made once, because Alembic takes its time."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(f"sqlite:///{folder}/empty.db")
        store.open()
        store.close()
        return Path(folder, "empty.db").read_bytes()


def engines_of(item: pytest.Item) -> tuple[str, ...]:
    """The kinds that a test runs on: every one, unless it is marked with some of their names."""
    named = tuple(name for name in ENGINES if item.get_closest_marker(name) is not None)
    return named or ENGINES
