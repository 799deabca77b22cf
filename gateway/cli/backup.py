"""`foldgate backup`: copies of the database, made beside a running server, that expire."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from gateway.cli.arguments import DatabasePath, Duration
from gateway.cli.options import counted, database_option, json_option, print_json, settings_of
from gateway.clock import SystemClock, iso
from gateway.errors import ConfigurationError
from gateway.store.backups import (
    FOLDER,
    Manifest,
    check_source,
    list_backups,
    make_backup,
    name_backup,
    prune,
)
from gateway.store.engine import Store

_folder = click.argument(
    "folder", type=click.Path(exists=True, file_okay=False, path_type=Path), required=False
)


class _Target(click.ParamType[tuple[Path, bool]]):
    """Where a copy goes, and whether it is called a folder: by a separator at its end, which a Path
    does not keep."""

    name = "path"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Path, bool]:
        path = DatabasePath().convert(value, param, ctx)
        is_folder = os.fspath(value).endswith(os.sep)
        if is_folder and path.exists() and not path.is_dir():
            self.fail(f"'{path}' is no folder.", param, ctx)
        return path, is_folder


@click.group("backup", invoke_without_command=True)
@click.option(
    "--to",
    metavar="FILE|DIR",
    type=_Target(),
    help="Where the copy goes; in a folder it is named by its time [backups/ beside the database]. "
    "What is not there yet is a folder, unless its name has an ending, such as .db, and no slash.",
)
@click.option(
    "--expires",
    type=Duration(),
    default="30d",
    show_default=True,
    help="How long it may be kept: the next backup into its folder, and prune, remove it then.",
)
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    help="Remove all but the newest so many of this database's in the folder.",
)
@database_option
@json_option
@click.pass_context
def backup_group(
    context: click.Context,
    to: tuple[Path, bool] | None,
    expires: int,
    keep: int | None,
    database_url: str | None,
    as_json: bool,
) -> None:
    """Copy the database, while the server runs on it too.

    The copy is one file with a manifest beside it (FILE.json), was checked before it got its name,
    holds nothing that was deleted, and overwrites nothing.
    """
    if context.invoked_subcommand is not None:
        return
    source = check_source(database_path(database_url))
    now_ms = SystemClock().now_ms()
    target, in_folder = _choose(to, source, now_ms)
    if keep is not None and not in_folder:
        raise click.UsageError("--keep counts the backups of a folder: name one with --to.")
    manifest = make_backup(source, target, now_ms=now_ms, expires_ms=expires)
    gone = prune(target.parent, now_ms=now_ms, source=source, keep=keep) if in_folder else []
    if as_json:
        print_json(
            {"path": str(target), **manifest.as_json(), "removed": [str(path) for path in gone]}
        )
        return
    click.echo(f"{target}  {tell_size(manifest)}, expires {iso(manifest.expires_ms)}")
    _tell_gone(gone)


def database_path(database_url: str | None) -> Path:
    """The file of the database. Raises ConfigurationError for one that is no file."""
    url = settings_of(database_url=database_url).database_url
    try:
        kind = make_url(url).get_backend_name()
    except ArgumentError:
        kind = "sqlite"  # the store says what is wrong with it
    if kind in ("postgresql", "postgres"):
        raise ConfigurationError(
            "foldgate backup copies SQLite databases, not PostgreSQL ones yet: use pg_dump."
        )
    store = Store(url)
    try:
        return store.path
    finally:
        store.close()


def _choose(to: tuple[Path, bool] | None, source: Path, now_ms: int) -> tuple[Path, bool]:
    """(the copy's path, whether it is in a folder of backups)."""
    folder, is_folder = to or (source.parent / FOLDER, True)
    if not folder.exists() and not folder.parent.is_dir():
        raise ConfigurationError(f"there is no folder {folder.parent}; make it first")
    if not folder.exists() and (is_folder or not folder.suffix):
        folder.mkdir(mode=0o700)
    if folder.is_dir():
        return folder / name_backup(source, now_ms), True
    return folder, False


def tell_size(manifest: Manifest) -> str:
    """A backup in few words."""
    counts, size = manifest.counts, manifest.bytes
    messages = counted(counts.get("messages", 0), "message")
    conversations = counted(counts.get("conversations", 0), "conversation")
    told = f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.0f} kB"
    return f"{told}, {messages} in {conversations}, revision {manifest.revision}"


def _choose_folder(folder: Path | None, database_url: str | None) -> Path:
    """The folder that was named, else the one beside the database, which may not be there yet."""
    return folder or database_path(database_url).parent / FOLDER


def _tell_gone(gone: list[Path]) -> None:
    for path in gone:
        click.echo(f"removed {path}")


@backup_group.command("list")
@_folder
@database_option
@json_option
def list_command(folder: Path | None, database_url: str | None, as_json: bool) -> None:
    """List the backups of a folder (backups/ beside the database), oldest first.

    Does not read the copies themselves.
    """
    now_ms = SystemClock().now_ms()
    folder = _choose_folder(folder, database_url)
    found = list_backups(folder) if folder.is_dir() else []
    if as_json:
        print_json(
            {
                "backups": [
                    {
                        "path": str(one.path),
                        "expired": one.manifest is not None and one.manifest.expires_ms <= now_ms,
                        "manifest": None if one.manifest is None else one.manifest.as_json(),
                    }
                    for one in found
                ]
            }
        )
        return
    for one in found:
        if one.manifest is None:
            click.echo(f"{one.path}  its manifest cannot be read")
            continue
        until = iso(one.manifest.expires_ms)
        state = f"EXPIRED {until}" if one.manifest.expires_ms <= now_ms else f"expires {until}"
        click.echo(f"{one.path}  {tell_size(one.manifest)}, {state}")
    click.echo(f"{counted(len(found), 'backup')} in {folder}", err=True)


@backup_group.command("prune")
@_folder
@database_option
@json_option
def prune_command(folder: Path | None, database_url: str | None, as_json: bool) -> None:
    """Remove the backups of a folder (backups/ beside the database) that have expired, and halves
    that a kill left."""
    folder = _choose_folder(folder, database_url)
    gone = prune(folder, now_ms=SystemClock().now_ms()) if folder.is_dir() else []
    if as_json:
        print_json({"removed": [str(path) for path in gone]})
        return
    _tell_gone(gone)
    click.echo(f"{counted(len(gone), 'backup')} removed", err=True)


@backup_group.command("restore")
@click.argument("file", type=DatabasePath(dir_okay=False))
@click.option(
    "--to",
    metavar="FILE",
    required=True,
    type=DatabasePath(dir_okay=False),
    help="Where the database is to stand.",
)
@click.option(
    "--replace",
    is_flag=True,
    help="Set aside what stands there, and delete in the copy what was deleted there since.",
)
@click.option("--expired", is_flag=True, help="Also a backup that is past its date.")
@json_option
def restore_command(file: Path, to: Path, replace: bool, expired: bool, as_json: bool) -> None:
    """Put a backup in a database's place. The server must not run on it."""
    from gateway.store.restores import restore

    if not to.parent.is_dir():
        raise ConfigurationError(f"there is no folder {to.parent}; make it first")
    now_ms = SystemClock().now_ms()
    done = restore(file, to, now_ms=now_ms, replace=replace, expired=expired)
    if as_json:
        replaced = None if done.replaced is None else str(done.replaced)
        told = {"path": str(to), "replaced": replaced, "deleted_again": done.deleted}
        print_json({**told, "manifest": done.manifest.as_json()})
        return
    click.echo(f"{to}  {tell_size(done.manifest)}, as of {iso(done.manifest.created_ms)}")
    if done.replaced is None:
        click.echo("What was deleted since then is in it again: delete it before you serve it.")
        return
    click.echo(f"what stood there: {done.replaced} (remove it when you do not need it)")
    click.echo(f"deleted again, as it was deleted there: {done.deleted:,}")
