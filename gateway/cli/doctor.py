"""`foldgate doctor`: whether the program could run as it is configured, and what is in the way."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import click

from gateway.backends.base import SlotCare
from gateway.backends.faults import UpstreamFault
from gateway.cli.doctor_integrity import check_integrity, print_integrity
from gateway.cli.doctor_machine import check_machine
from gateway.cli.doctor_server import check_server
from gateway.cli.options import (
    database_option,
    json_option,
    policies_option,
    print_json,
    settings_of,
)
from gateway.clock import SystemClock
from gateway.errors import ConfigurationError
from gateway.policy_file import PolicyFileError, find_cautions, load_policies
from gateway.settings import Settings
from gateway.store.engine import Store
from gateway.store.integrity import read_revision
from policies.budget import tell_narrowing
from policies.schema import PolicyFile

Finding = dict[str, Any]


@click.command("doctor")
@policies_option
@database_option
@click.option("--deep", is_flag=True, help="Read every row: some seconds for 100,000 messages.")
@json_option
def doctor_command(
    policies: Path | None, database_url: str | None, deep: bool, as_json: bool
) -> None:
    """Check the database, this machine, the policies file and every backend. Changes nothing.

    Ends with 0 where every model could be served, with 1 where something is in the way or found
    wanting. A backend that is off or down is told, and is in the way only where a model has no
    other. With --deep whether all that is stored is whole: digests, spans, what rows hang on.
    """
    settings = settings_of(policies=policies, database_url=database_url)
    if deep and not is_file(settings):
        raise ConfigurationError(
            "doctor --deep reads SQLite files, not PostgreSQL yet: use pg_amcheck for the server's "
            "files, and pg_dump to see that every row can be read"
        )
    database = _check_database(settings)
    machine, integrity = _examine(settings, database, deep)
    found, file = _check_policies(settings)
    backends = asyncio.run(_check_backends(file)) if file is not None else {}
    models = _check_models(file, backends) if file is not None else {}
    notes = _find_notes(file, backends) if file is not None else []
    wanted = [database, found, *models.values(), *machine.values(), integrity or {"ok": True}]
    ok = all(one["ok"] for one in wanted)
    report = {
        "ok": ok,
        "database": database,
        "machine": machine,
        "integrity": integrity,
        "policies": found,
        "backends": backends,
        "models": models,
        "notes": notes,
    }
    if as_json:
        print_json(report)
    else:
        _print(report)
    raise SystemExit(0 if ok else 1)


def _check_database(settings: Settings) -> Finding:
    """Looks at the database without making or migrating it."""
    try:
        store = Store(settings.database_url, synchronous=settings.synchronous)
    except ConfigurationError as error:
        return {"ok": False, "says": str(error)}
    try:
        if store.database.path is None:
            fine, says = store.examine()
            return {"ok": fine, "server": store.database.place, "says": says}
        path = store.path.resolve()
        if not path.exists():
            fine = path.parent.is_dir() and os.access(path.parent, os.W_OK)
            says = "will be made at the first start" if fine else "its folder cannot be written"
            return {"ok": fine, "file": str(path), "says": says}
        fine, says = store.examine()
        return {"ok": fine, "file": str(path), "says": says}
    finally:
        store.close()


def _examine(
    settings: Settings, database: Finding, deep: bool
) -> tuple[dict[str, Finding], Finding | None]:
    """(the machine, what every row says); the second is None where it was not asked for, or there
    is no database yet."""
    if "server" in database and database["ok"]:
        return _examine_server(settings), None
    if "file" not in database or not Path(database["file"]).exists():
        return {}, None
    path = Path(database["file"])
    is_read = not database["says"].startswith("cannot be read")
    machine = check_machine(settings, path, SystemClock().now_ms())
    return machine, check_integrity(settings) if deep and is_read else None


def _examine_server(settings: Settings) -> dict[str, Finding]:
    store = Store(settings.database_url)
    try:
        revision = store.reading(read_revision)
        return check_server(store, SystemClock().now_ms()) if revision is not None else {}
    finally:
        store.close()


def is_file(settings: Settings) -> bool:
    """Whether the database is a file, or said so badly that the store has to say it."""
    try:
        store = Store(settings.database_url)
    except ConfigurationError:
        return True
    store.close()
    return store.database.path is not None


def _check_policies(settings: Settings) -> tuple[Finding, PolicyFile | None]:
    name = str(settings.policies)
    try:
        loaded = load_policies(settings.policies, settings.environ)
    except PolicyFileError as error:
        problems = [problem.render(name) for problem in error.problems]
        return {"ok": False, "file": name, "problems": problems}, None
    return {"ok": True, "file": name, "revision": loaded.revision, "problems": []}, loaded.file


async def _check_backends(file: PolicyFile) -> dict[str, Finding]:
    from gateway.api.health import probe_backend
    from gateway.app import build_backends

    found: dict[str, Finding] = {}
    for name, backend in build_backends(file, SystemClock()).items():
        await backend.start()
        try:
            probed = await probe_backend(backend)
            window = await backend.window() if probed["ok"] else backend.window_tokens
            if probed["ok"] and backend.slot_care is not None:
                probed["cautions"] = await _check_slots(backend.slot_care)
        finally:
            await backend.aclose()
        # A provider is not called: nothing it offers for nothing says whether a turn would go well.
        asked = backend.kind != "litellm" and backend.off_reason is None
        found[name] = {"kind": backend.kind, "asked": asked, **probed, "window_tokens": window}
    return found


async def _check_slots(care: SlotCare) -> list[str]:
    """How the server was started; a slot is tried only where none ever used it."""
    try:
        return list(await care.check())
    except UpstreamFault as fault:
        return [f"how it was started cannot be checked: {fault.what}"]


def _check_models(file: PolicyFile, backends: dict[str, Finding]) -> dict[str, Finding]:
    """Which of a model's backends would answer now, in the order of its tiers."""
    found: dict[str, Finding] = {}
    for name, model in file.models.items():
        able = [tier.backend for tier in model.tiers if backends[tier.backend]["ok"]]
        found[name] = {"ok": bool(able), "backends": able}
    return found


def _find_notes(file: PolicyFile, backends: dict[str, Finding]) -> list[str]:
    """What is in nobody's way and still good to know: servers that were started unwisely, views
    that shrink in their window, settings that do less than they say."""
    found = find_cautions(file)
    found += [
        f"backend {name}: {caution}"
        for name, one in backends.items()
        for caution in one.get("cautions", ())
    ]
    for name, model in file.models.items():
        for tier in model.tiers:
            window = backends[tier.backend]["window_tokens"]
            sentence = tell_narrowing(file.policies[tier.policy], window)
            if sentence is not None:
                found.append(f"model {name} on {tier.backend}: {sentence}")
    return found


def _print(report: dict[str, Any]) -> None:
    _line("database", report["database"]["ok"], report["database"]["says"])
    for name, one in report["machine"].items():
        _line(name, one["ok"], one["says"])
        if one["advice"]:
            click.echo(f"         {one['advice']}")
    if report["integrity"] is not None:
        print_integrity(report["integrity"])
    policies = report["policies"]
    _line("policies", policies["ok"], policies["file"])
    for problem in policies["problems"]:
        click.echo(f"         {problem}")
    for name, one in report["backends"].items():
        window = f"window {one['window_tokens']:,} tokens" if one["window_tokens"] else ""
        unasked = "has what it needs, was not called" if one["ok"] and not one["asked"] else ""
        says = ", ".join(part for part in (unasked, window) if part)
        _line(f"backend {name}", one["ok"], one["reason"] or says)
    for name, one in report["models"].items():
        _line(f"model {name}", one["ok"], ", ".join(one["backends"]) or "no backend answers")
    for note in report["notes"]:
        click.echo(f"note {note}")


def _line(name: str, ok: bool, says: str) -> None:
    """One finding. A backend that is off by its configuration is no fault of the machine."""
    off = says.startswith("off: ")
    mark = "ok" if ok else "off" if off else "BAD"
    text = says.removeprefix("off: ") if off else says
    click.echo(f"{mark:<4} {name}: {text}" if text else f"{mark:<4} {name}")
