"""What several commands take: where the data and the policies are, and how to report."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

import gateway
from gateway.cli.arguments import Text
from gateway.cli.lines import printable_json
from gateway.errors import ConfigurationError
from gateway.settings import Settings, read_settings
from gateway.store.engine import Store

SHIPPED = Path(gateway.__file__).parent.parent / "policies.yaml"
"""The example in the checkout that the program runs from."""

_EVERY = 100

database_option = click.option(
    "--database-url",
    type=Text(),
    metavar="URL",
    help="The database [FOLDGATE_DATABASE_URL; default sqlite:///foldgate.db].",
)
policies_option = click.option(
    "--policies",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The policies file [FOLDGATE_POLICIES; default policies.yaml].",
)
files_argument = click.argument(
    "files",
    nargs=-1,
    required=True,
    metavar="FILE…",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)


class OutputFile(click.Path):
    """A file to be written, in a folder that is there: told before the work, not after it."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, writable=True, path_type=Path)

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not path.parent.is_dir():
            self.fail(f"There is no folder '{path.parent}'.", param, ctx)
        return path


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object and nothing else."
)


def settings_of(*, policies: Path | None = None, **flags: object) -> Settings:
    """Settings from the environment; flags that were given win. ConfigurationError as there.

    Where neither names a policies file and ./policies.yaml is not there, the shipped one is taken.
    """
    if policies is None and "FOLDGATE_POLICIES" not in os.environ:
        here = Settings().policies
        policies = here if here.exists() or not SHIPPED.exists() else SHIPPED
    return read_settings(os.environ, policies=policies, **flags)


def print_json(value: object) -> None:
    """One JSON object on standard output. Half a surrogate pair stays an escape."""
    click.echo(printable_json(json.dumps(value, ensure_ascii=False)))


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun: 1 message, 1,154 messages."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def tell_progress(done: int, total: int, what: str) -> None:
    """On standard error: a line that is written over on a terminal, elsewhere one now and then."""
    if sys.stderr.isatty():
        click.echo(f"\r{done:,} of {total:,} {what}", nl=done == total, err=True)
    elif done % _EVERY == 0:
        click.echo(f"{done:,} of {total:,} {what}", err=True)


@contextmanager
def opened_store(database_url: str | None) -> Iterator[Store]:
    """The store of an existing database, closed at the end.

    A command that reads makes no database: ConfigurationError where there is none.
    """
    settings = settings_of(database_url=database_url)
    store = Store(settings.database_url, synchronous=settings.synchronous)
    try:
        if not store.database.exists():
            raise ConfigurationError(
                f"there is no database at {store.database.place}; "
                "name it with --database-url or FOLDGATE_DATABASE_URL"
            )
        store.open()
        yield store
    finally:
        store.close()
