"""What `foldgate doctor` says of a PostgreSQL server: clock, room for connections, its settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, text

from gateway.cli.doctor_machine import NEWEST, SLACK_MS, tell_clock, told
from gateway.store.engine import READERS, WRITERS, Store

Finding = dict[str, Any]

_CLOCK = text("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)")
_SIZE = text("SELECT pg_database_size(current_database())")
_ROOM = text(
    "SELECT CAST(current_setting('max_connections') AS integer)"
    " - CAST(current_setting('superuser_reserved_connections') AS integer) AS most,"
    " (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS used"
)
_SETTING = text("SELECT current_setting(:name)")


def check_server(store: Store, now_ms: int) -> dict[str, Finding]:
    """clock, connections and settings of a server that answers, each {ok, says, advice}. Changes
    nothing. Raises StorageFailed where it does not answer any more."""
    return store.reading(_look, now_ms)


def _look(connection: Connection, now_ms: int) -> dict[str, Finding]:
    return {
        "clock": _check_clock(connection, now_ms),
        "connections": _check_connections(connection),
        "settings": _check_settings(connection),
    }


def _check_clock(connection: Connection, now_ms: int) -> Finding:
    """Rows are dated by the gateways' clocks: two machines that differ put them out of order."""
    ahead = int(connection.execute(_CLOCK).scalar_one()) - now_ms
    if abs(ahead) > SLACK_MS:
        return told(
            False,
            f"the server's clock is {abs(ahead) / 1000:,.0f} s "
            f"{'ahead of' if ahead > 0 else 'behind'} this machine's",
            "Set both right (NTP): work of several gateways is taken up by what clocks say.",
        )
    return tell_clock(_newest(connection), now_ms)


def _newest(connection: Connection) -> Iterator[int | None]:
    for sql in NEWEST:
        yield connection.execute(text(sql)).scalar()


def _check_connections(connection: Connection) -> Finding:
    most, used = connection.execute(_ROOM).one()
    wanted = READERS + WRITERS
    says = f"{used:,} of {most:,} in use; a gateway takes up to {wanted}"
    if most - used < wanted:
        return told(False, says, "Raise max_connections, or run fewer programs on this server.")
    return told(True, says)


def _check_settings(connection: Connection) -> Finding:
    names = ("server_version", "fsync", "synchronous_commit")
    version, fsync, commit = (
        str(connection.execute(_SETTING, {"name": name}).scalar_one()) for name in names
    )
    size = int(connection.execute(_SIZE).scalar_one())
    says = f"PostgreSQL {version}, {size / 1e6:,.1f} MB, synchronous_commit {commit}"
    if fsync == "off":
        return told(
            False,
            f"{says}, fsync off",
            "A loss of power leaves a database that may be damaged for good: fsync = on.",
        )
    if commit == "off":
        says += " (a crash of the server may lose the last commits, which clients were told of)"
    return told(True, says)
