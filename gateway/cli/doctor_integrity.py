"""`foldgate doctor --deep`: whether all that is stored is whole, in words."""

from __future__ import annotations

from typing import Any

import click

from gateway.settings import Settings
from gateway.store.engine import Store
from gateway.store.integrity import examine, read_revision
from gateway.store.migrations import HEAD

Finding = dict[str, Any]


def check_integrity(settings: Settings) -> Finding:
    """{ok, says, looked, findings} of an existing database; a server may run on it."""
    store = Store(settings.database_url, synchronous=settings.synchronous)
    try:
        revision = store.reading(read_revision)
        if revision != HEAD:
            says = f"not looked at: at revision {revision}, the next start brings it to {HEAD}"
            return {"ok": True, "says": says, "looked": {}, "findings": []}
        found = store.reading(examine).as_json()
    finally:
        store.close()
    looked = ", ".join(f"{count:,} {table}" for table, count in found["looked"].items())
    wrong = sum(finding["count"] for finding in found["findings"])
    says = f"{looked}: whole" if found["ok"] else f"{looked or 'the file'}: {wrong:,} found wanting"
    return {**found, "says": says}


def print_integrity(found: Finding) -> None:
    """For people: each check with its first few examples, then what to do."""
    click.echo(f"{'ok' if found['ok'] else 'BAD':<4} integrity: {found['says']}")
    for finding in found["findings"]:
        click.echo(f"BAD  integrity of {finding['check']}: {finding['count']:,}")
        for one in finding["examples"]:
            click.echo(f"         {one['where']}: {one['says']}")
        click.echo(f"         {finding['advice']}")
