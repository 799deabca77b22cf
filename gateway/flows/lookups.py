"""Asking other sources for notes, before a question is stored.

A source hears what was asked, so of a private conversation only those on this machine do: where it
cannot be known in time whose conversation a request belongs to, it counts as private. A source that
fails takes nothing from a turn but its own notes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection

from gateway.backends.lookups import Found, LookupFailed
from gateway.flows.context import Context
from gateway.flows.offers import Offer
from gateway.flows.privacy import resembles_private, tells_private
from gateway.flows.reconcile import Incoming
from gateway.store import tails, transcript
from policies.messages import message_text
from policies.schema import Lookup

log = logging.getLogger("foldgate.turn")


@dataclass(frozen=True, slots=True)
class Answers:
    """What sources told about a question: notes by source, the names of those that failed, how
    many characters each may have."""

    notes: Mapping[str, tuple[Found, ...]] = field(default_factory=dict)
    failed: tuple[str, ...] = ()
    budgets: Mapping[str, int] = field(default_factory=dict, compare=False)

    def of(self, names: Iterable[str]) -> list[tuple[str, int, tuple[Found, ...]]]:
        """What these of them told: name, budget, notes."""
        return [
            (name, self.budgets[name], self.notes[name]) for name in names if name in self.notes
        ]


NOTHING = Answers()


async def ask_lookups(ctx: Context, incoming: Incoming, offer: Offer) -> Answers:
    """What the sources tell that the policies on offer name; all are asked at once.

    Nothing is asked about what is no person's message. Never raises for a source's sake.
    """
    named = _named(ctx, offer)
    if not named or incoming.chain[-1]["role"] != "user":
        return NOTHING
    place = await ctx.store.read(find_place, incoming, is_private=offer.is_private)
    hearing = {name: one for name, one in named.items() if one.is_local or not place.is_private}
    question = {
        "query": message_text(incoming.chain[-1]),
        "conversation": place.conversation,
        "owner": incoming.owner,
        "user": incoming.user,
    }
    told = await asyncio.gather(*(_ask(ctx, name, one, question) for name, one in hearing.items()))
    answers = dict(zip(hearing, told, strict=True))
    return Answers(
        notes={name: found for name, found in answers.items() if found},
        failed=tuple(name for name, found in answers.items() if found is None),
        budgets={name: one.budget for name, one in hearing.items()},
    )


def _named(ctx: Context, offer: Offer) -> dict[str, Lookup]:
    names: Iterable[str] = dict.fromkeys(
        name for setting in offer.settings for name in setting.policy.recall.lookups
    )
    return {name: ctx.policies.file.lookups[name] for name in names}


async def _ask(
    ctx: Context, name: str, lookup: Lookup, question: Mapping[str, object]
) -> tuple[Found, ...] | None:
    """One source's notes; None where it failed, which is counted and logged without a word of what
    was asked or told."""
    began = ctx.clock.monotonic()
    outcome = "done"
    try:
        return await ctx.lookups.ask(lookup, question)
    except LookupFailed as failure:
        outcome = failure.kind
        log.warning("the lookup %s failed: %s", name, outcome)
        return None
    finally:
        ctx.meters.lookup_ended(name, outcome, ctx.clock.monotonic() - began)


@dataclass(frozen=True, slots=True)
class Place:
    """Whose conversation a request belongs to, as far as is known before it is placed: its id, and
    whether it must count as private."""

    conversation: str | None
    is_private: bool


def find_place(connection: Connection, incoming: Incoming, *, is_private: bool) -> Place:
    """The conversation that a request names. is_private: its model is."""
    owner_pk = transcript.find_owner(connection, incoming.owner, incoming.user)
    name = incoming.conversation
    if owner_pk is None:
        return Place(None, is_private)
    found = transcript.find_conversation(connection, owner_pk, name) if name else None
    known = None if found is None else found.id
    if is_private or (found is not None and found.private):
        return Place(known, True)
    if not tails.has_private(connection, owner_pk):
        return Place(known, False)
    history = (connection, owner_pk, incoming.chain, incoming.canonicals)
    if found is not None:
        return Place(known, tells_private(*history))
    if name is not None:
        return Place(None, resembles_private(*history))
    # A history without an id may be any of the owner's conversations, and so may what a key
    # repeats; only a first message begins one for sure.
    return Place(None, len(incoming.chain) > 1 or incoming.idempotency_key is not None)
