"""``foldgate policies explain``: where a conversation goes next, and why."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from gateway.cli.arguments import Called, Text
from gateway.cli.options import (
    database_option,
    json_option,
    opened_store,
    policies_option,
    print_json,
    settings_of,
)
from gateway.cli.selection import find_named, owner_options
from gateway.clock import SystemClock
from gateway.settings import Settings


@click.command("explain")
@click.option(
    "--conversation",
    "id",
    type=Called("conversation"),
    required=True,
    metavar="ID",
    help="Foldgate's or the client's.",
)
@owner_options
@click.option(
    "--header",
    "headers",
    type=Text(),
    multiple=True,
    metavar="NAME=VALUE",
    help="As if it were sent.",
)
@click.option(
    "--tag", "tags", type=Text(), multiple=True, metavar="TAG", help="As if it were sent."
)
@policies_option
@database_option
@json_option
def explain_command(
    id: str,
    owner: str,
    user: str,
    headers: tuple[str, ...],
    tags: tuple[str, ...],
    policies: Path | None,
    database_url: str | None,
    as_json: bool,
) -> None:
    """Tell which backend a conversation's next turn goes to, and why.

    Changes nothing. Servers are asked whether they answer; a provider in the cloud is not called
    and taken to. What the running gateway knows of failures (a circuit that is open) it keeps to
    itself.
    """
    settings = settings_of(policies=policies, database_url=database_url)
    sent = dict(_read_header(header) for header in headers)
    found = asyncio.run(_explain(settings, owner, user, id, sent, frozenset(tags)))
    if as_json:
        print_json(found)
    else:
        _print_explanation(found)


def _read_header(text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found:
        raise click.UsageError("--header is written NAME=VALUE")
    return name.strip().lower(), value.strip()


async def _explain(
    settings: Settings,
    owner: str,
    user: str,
    id: str,
    headers: Mapping[str, str],
    tags: frozenset[str],
) -> dict[str, Any]:
    from gateway.app import build_context
    from gateway.flows.offers import Demand, find_offer
    from gateway.flows.reroute import explain_route

    find = partial(find_named, owner=owner, user=user, id=id)
    with opened_store(settings.database_url) as store:
        conversation = store.reading(find)
        context = build_context(settings, SystemClock())
        try:
            for backend in context.backends.values():
                await backend.start()
            offer = await find_offer(context, conversation.model, Demand())
        finally:
            for backend in context.backends.values():
                await backend.aclose()
            context.store.close()
        now_ms = context.clock.now_ms()
        return store.reading(explain_route, find, offer, headers=headers, tags=tags, now_ms=now_ms)


def _print_explanation(found: dict[str, Any]) -> None:
    choice = found["choice"]
    private = ", private" if found["private"] else ""
    click.echo(f"{found['conversation']} (model {found['model']}{private})")
    if choice is None:
        click.echo("no backend may serve its next turn")
    else:
        click.echo(
            f"its next turn goes to {choice['backend']} under {choice['policy']}: {choice['rule']}"
        )
    if found["migration"] is not None:
        move = found["migration"]
        click.echo(
            f"it waits for {move['ready']} of {move['total']} texts before it moves to "
            f"{move['backend']}"
        )
    for way in found["ways"]:
        taken = "  [chosen]" if way["chosen"] else ""
        holds = "yes" if way["holds"] else "no"
        click.echo(f"  {holds:<4}{way['rule']} -> {_tell_way(way)}{taken}")
    for turn in found["turns"]:
        click.echo(
            f"{turn['at']}  {turn['backend']} under {turn['policy']}: {turn['rule'] or 'no rule'} "
            f"({turn['view']}, {turn['state']})"
        )


def _tell_way(way: dict[str, Any]) -> str:
    if way["tier"] is None:
        return "none"
    against = [way["blocked"]] if way["blocked"] else []
    if way["misses"]:
        against.insert(0, f"does not hold: {', '.join(way['misses'])}")
    return f"{way['tier']} ({'; '.join(against)})" if against else way["tier"]
