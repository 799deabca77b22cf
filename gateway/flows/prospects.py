"""Whom to ask about a question before it is stored: what the turn will come to is found out first,
by the turn's own code, in a transaction of which nothing stays.

So a source hears only what is new to a view of the policy that names it, and nothing of a private
conversation unless it is on this machine.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, text

from gateway.flows.context import Context
from gateway.flows.incoming import Incoming
from gateway.flows.lookups import NOTHING, Answers, Question, ask_lookups
from gateway.flows.sites import Offer
from gateway.flows.turn_rows import place_question
from gateway.store.notes import was_shown
from gateway.store.prepared import Prepared
from policies.messages import message_text

_SAVE = Prepared(text("SAVEPOINT prospect"))
_UNDO = Prepared(text("ROLLBACK TO prospect"))
_END = Prepared(text("RELEASE prospect"))


@dataclass(frozen=True, slots=True)
class Prospect:
    """What a request will come to. conversation: its id, None for a new one; lookups: what the
    policy names that will serve it; was_shown: a view of that policy has shown the message."""

    conversation: str | None
    is_private: bool
    lookups: tuple[str, ...]
    was_shown: bool


def foresee_turn(connection: Connection, incoming: Incoming, offer: Offer, now_ms: int) -> Prospect:
    """Place a request and choose its tier, as `turn_rows.begin_turn` will, and take it back.

    Raises as begin_turn.
    """
    _SAVE.run(connection)
    try:
        question, decision = place_question(connection, incoming, offer, now_ms)
        conversation, asked = question.placement.conversation, question.placement.asked
        policy = decision.setting.policy
        return Prospect(
            conversation=None if conversation.head_pk is None else conversation.id,
            is_private=conversation.private or offer.is_private,
            lookups=policy.recall.lookups,
            was_shown=was_shown(connection, conversation.pk, policy.name, asked),
        )
    finally:
        _UNDO.run(connection)
        _END.run(connection)


async def consult(ctx: Context, incoming: Incoming, offer: Offer) -> Answers:
    """What other sources tell about a question. Costs nothing where no policy on offer names one,
    and asks nobody about what is no person's message. Raises as begin_turn."""
    names_any = any(setting.policy.recall.lookups for setting in offer.settings)
    if not names_any or incoming.chain[-1]["role"] != "user":
        return NOTHING
    prospect = await ctx.store.write(foresee_turn, incoming, offer, ctx.clock.now_ms())
    if not prospect.lookups or prospect.was_shown:
        return NOTHING
    known = ctx.policies.file.lookups
    named = {name: known[name] for name in prospect.lookups}
    if prospect.is_private:
        named = {name: lookup for name, lookup in named.items() if lookup.is_local}
    question = Question(
        query=message_text(incoming.chain[-1]),
        conversation=prospect.conversation,
        owner=incoming.owner,
        user=incoming.user,
    )
    return await ask_lookups(ctx, named, question)
