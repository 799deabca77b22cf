"""Alembic migrations, run when the store is opened. A failed one stops the start."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text

from gateway.errors import ConfigurationError

# The newest revision; a test holds it equal to the newest file in versions/.
HEAD = "0006"


def current(engine: Engine) -> str | None:
    """The revision that the database is at; None for an empty one."""
    with engine.connect() as connection:
        if not inspect(connection).has_table("alembic_version"):
            return None
        found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
        return None if found is None else str(found)


def migrate(engine: Engine, migrating: Callable[[], AbstractContextManager[Connection]]) -> None:
    """Bring the tables to HEAD in one transaction, which `migrating` opens: two programs that start
    at once go one after the other there.

    Alembic is imported only where there is something to do: it costs a third of a second.
    Raises ConfigurationError for a database that a newer program has changed.
    """
    revision = current(engine)
    if revision == HEAD:
        return
    with _without("pygments"):
        from alembic import command
        from alembic.config import Config
        from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    try:
        with migrating() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    except CommandError as error:
        raise ConfigurationError(
            f"the database is at revision {revision}, which this program (newest: {HEAD}) does "
            "not know; start the newer program, or bring back a copy of the database"
        ) from error


@contextmanager
def _without(module: str) -> Iterator[None]:
    """Imports made inside do not find this module, unless it is there already. Alembic brings Mako,
    which takes in pygments where it can, to colour pages that nobody looks at: four megabytes."""
    if module in sys.modules:
        yield
        return
    sys.modules[module] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[module]
