"""Which conversations a command is about: whose they are, and which of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import click
from sqlalchemy import Connection

from gateway.cli.arguments import Text
from gateway.cli.lines import one_line, speakable
from gateway.cli.options import tell_progress
from gateway.errors import NotFound
from gateway.store.callings import find_called
from gateway.store.conversations import (
    Place,
    find_anywhere,
    list_conversations,
    owner_names,
    owners_named,
)
from gateway.store.engine import Store
from gateway.store.transcript import ConversationRow

F = TypeVar("F", bound=Callable[..., Any])

_PAGE = 500
_NAMES = 12


user_option = click.option(
    "--user", type=Text(), default="", help="A user that this owner's client forwards."
)
owner_option = click.option(
    "--owner",
    type=Text(),
    default="local",
    show_default=True,
    help="The owner, as FOLDGATE_KEYS names it.",
)


def owner_options(command: F) -> F:
    return owner_option(user_option(command))


def find_named(connection: Connection, owner: str, user: str, id: str) -> ConversationRow:
    """An owner's conversation by Foldgate's id or the client's. NotFound where there is none,
    Conflict where several of the owner's users call one so and none of them is named."""
    found = find_called(connection, owner, user, id)
    if found is None:
        of_whom = f"{owner}'s user {user}" if user else owner
        raise NotFound(f"{of_whom} has no conversation {id}")
    return found


def list_owned(
    connection: Connection, owner: str | None, user: str = "", limit: int | None = None
) -> list[dict[str, Any]]:
    """An owner's conversations (None: everybody's), the newest turn first; at most `limit`."""
    pks = None if owner is None else owners_named(connection, owner, user)
    found: list[dict[str, Any]] = []
    after: Place | None = None
    while True:
        wanted = _PAGE if limit is None else min(_PAGE, limit - len(found))
        page, after = list_conversations(connection, pks, limit=wanted, after=after)
        found += page
        if after is None or len(found) == limit:
            return found


def walk_chosen(
    store: Store, ids: Sequence[str], owner: str | None, user: str
) -> Iterator[ConversationRow]:
    """The conversations of an owner (None: "local") that were named; where none was, all of an
    owner's (None: everybody's). Tells how far it is; one that is gone meanwhile is passed."""
    if ids:
        chosen = [store.reading(find_named, owner or "local", user, id).id for id in ids]
    else:
        chosen = [one["id"] for one in store.reading(list_owned, owner, user)]
    for number, id in enumerate(chosen, start=1):
        conversation = store.reading(find_anywhere, id)
        if conversation is not None:
            yield conversation
        tell_progress(number, len(chosen), "conversations")


def tell_owners(store: Store, owner: str) -> None:
    """On standard error: whose names are known, where this is none of them and there are others."""
    known = store.reading(owner_names)
    if not known or owner in known:
        return
    shown = ", ".join(map(speakable, known[:_NAMES]))
    more = f" and {len(known) - _NAMES:,} more" if len(known) > _NAMES else ""
    said = f"there are owners {shown}{more}" if len(known) > 1 else f"there is the owner {shown}"
    what = "name one with --owner" if len(known) > 1 else f"name it with --owner {shown}"
    click.echo(f"there is no owner {one_line(owner)}; {said}: {what}", err=True)
