"""What several commands take: where the data and the policies are, and how to report."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from gateway.errors import ConfigurationError
from gateway.settings import Settings, read_settings
from gateway.store.engine import Store

F = TypeVar("F", bound=Callable[..., Any])

database_option = click.option(
    "--database-url",
    metavar="URL",
    help="The database [FOLDGATE_DATABASE_URL; default sqlite:///foldgate.db].",
)
policies_option = click.option(
    "--policies",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The policies file [FOLDGATE_POLICIES; default policies.yaml].",
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object and nothing else."
)


def settings_of(**flags: object) -> Settings:
    """Settings from the environment; flags that were given win. ConfigurationError as there."""
    return read_settings(os.environ, **flags)


def print_json(value: object) -> None:
    """One JSON object on standard output. Half a surrogate pair stays an escape."""
    try:
        text = json.dumps(value, ensure_ascii=False)
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(value)
    click.echo(text)


@contextmanager
def opened_store(database_url: str | None) -> Iterator[Store]:
    """The store of an existing database, closed at the end.

    A command that reads makes no database: ConfigurationError where there is none.
    """
    settings = settings_of(database_url=database_url)
    store = Store(settings.database_url, synchronous=settings.synchronous)
    try:
        if not store.path.exists():
            raise ConfigurationError(
                f"there is no database at {store.path}; "
                "name it with --database-url or FOLDGATE_DATABASE_URL"
            )
        store.open()
        yield store
    finally:
        store.close()
