"""Where an incoming request stands in the transcript.

In this order: an explicit id; the chain of digests, deepest known message first; alignment from
the tail for a client that trims its head; otherwise a new conversation. Never from the opening
words alone: a history is recognised only by a message that the gateway itself produced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection

from gateway.errors import BadRequest, Conflict
from gateway.flows.align import Aligned, Fresh
from gateway.flows.incoming import Incoming
from gateway.flows.new_messages import to_new_message
from gateway.flows.privacy import keep_private
from gateway.flows.recognition import find_head, find_known, find_or_begin
from gateway.store import attempts, transcript
from gateway.store.transcript import ConversationRow, Node
from gateway.wire.json_text import NotJson


@dataclass(frozen=True, slots=True)
class Placement:
    """The conversation, the message that is asked now, and what the request told of its place.

    offset: how many messages of the path stand before the request's first chain message (what
    the client trimmed or never sends); 0: the request told the whole path. moves_head: whether
    the conversation's newest head follows; not for a late repeat of what was answered long ago.
    depths: of each chain message, the depth of what it stands for, or after which it stands, where
    the history was aligned. notes: (index in the chain, depth, message) of those that are the
    client's own: shown to the model at their place for this turn, and not stored. known_chars: of
    the path before the first message that the request told anew; None where it told none.
    """

    conversation: ConversationRow
    asked: Node
    offset: int
    moves_head: bool = True
    depths: Sequence[int] | None = None
    notes: Sequence[tuple[int, int, dict[str, Any]]] = ()
    known_chars: int | None = None

    @property
    def chars_before(self) -> int:
        """Characters of the path before the turn: without all that the client added in it."""
        if self.known_chars is None:
            return self.asked.cum_chars - self.asked.chars
        return self.known_chars

    def place_system(
        self, system: Sequence[tuple[int, dict[str, Any]]]
    ) -> list[tuple[int, dict[str, Any]]]:
        """System texts and the client's own notes in the order in which they came, each with the
        depth after which it stands; 0: before everything."""
        placed = [(before, 0, self._depth(before), message) for before, message in system]
        placed += [(at, 1, depth, message) for at, depth, message in self.notes]
        placed.sort(key=lambda item: item[:2])
        return [(depth, message) for _, _, depth, message in placed]

    def _depth(self, before: int) -> int:
        if before == 0:
            return 0
        return self.offset + before if self.depths is None else self.depths[before - 1]


def place(
    connection: Connection, incoming: Incoming, owner_pk: int, *, image_chars: int, now_ms: int
) -> Placement:
    """Find or begin the conversation and store what is new. Raises Conflict for a key re-used."""
    if (again := _same_key(connection, incoming, owner_pk)) is not None:
        return again
    conversation, is_new, aligned = find_or_begin(connection, incoming, owner_pk, now_ms)
    known = -1
    parent: Node | None = None
    if aligned is None and not is_new:
        known, parent, aligned = find_known(connection, incoming, conversation)
    if aligned is not None:
        return _place_aligned(connection, conversation, aligned, image_chars, now_ms)
    if not is_new:
        rest, canonicals = incoming.chain[known + 1 :], incoming.canonicals[known + 1 :]
        conversation = keep_private(connection, conversation, rest, canonicals, parent=parent)
    new = _new_messages(incoming, known + 1, image_chars)
    nodes = transcript.append_messages(connection, conversation, parent, new, now_ms)
    asked = nodes[-1] if nodes else parent
    assert asked is not None
    offset = asked.depth - len(incoming.chain)
    # A lone message is told twice by a mere retry, and says nothing about the client's habits.
    if known >= 0 and offset == 0 and len(incoming.chain) > 1 and not conversation.resends:
        transcript.mark_resending(connection, conversation.pk)
    return Placement(conversation, asked, offset, known_chars=_known_chars(nodes, parent))


def _place_aligned(
    connection: Connection,
    conversation: ConversationRow,
    aligned: Aligned,
    image_chars: int,
    now_ms: int,
) -> Placement:
    """Store what an aligned history told that was new, or anew on another branch."""
    conversation = keep_private(
        connection,
        conversation,
        [fresh.message for fresh in aligned.fresh],
        [fresh.canonical for fresh in aligned.fresh],
        parent=aligned.parent,
        asides=[message for _, _, message in aligned.notes],
    )
    new = [_to_stored(fresh, image_chars) for fresh in aligned.fresh]
    nodes = transcript.append_messages(connection, conversation, aligned.parent, new, now_ms)
    asked = nodes[-1] if nodes else aligned.parent
    assert asked is not None
    if aligned.offset == 0 and not conversation.resends:
        transcript.mark_resending(connection, conversation.pk)
    placement = _placement(conversation, asked, aligned)
    return replace(placement, known_chars=_known_chars(nodes, aligned.parent))


def _placement(conversation: ConversationRow, asked: Node, aligned: Aligned) -> Placement:
    return Placement(
        conversation, asked, aligned.offset, depths=aligned.depths, notes=aligned.notes
    )


def _known_chars(new: Sequence[Node], parent: Node | None) -> int | None:
    """Characters of the path to what the new messages stand under; None: there are none."""
    if not new:
        return None
    return 0 if parent is None else parent.cum_chars


def _to_stored(fresh: Fresh, image_chars: int) -> transcript.NewMessage:
    stored = fresh.stored
    try:
        if stored is None:
            return to_new_message(fresh.message, fresh.canonical, image_chars)
        return to_new_message(
            fresh.message,
            fresh.canonical,
            image_chars,
            produced=bool(stored.produced),
            backend=stored.backend,
            finish_reason=stored.finish_reason,
            partial=bool(stored.partial),
        )
    except NotJson as error:
        raise BadRequest(f"A message cannot be stored: {error}.", param="messages") from None


def _new_messages(incoming: Incoming, start: int, image_chars: int) -> list[transcript.NewMessage]:
    try:
        return [
            to_new_message(incoming.chain[index], incoming.canonicals[index], image_chars)
            for index in range(start, len(incoming.chain))
        ]
    except NotJson as error:
        raise BadRequest(f"A message cannot be stored: {error}.", param="messages") from None


def _same_key(connection: Connection, incoming: Incoming, owner_pk: int) -> Placement | None:
    """The place of an earlier request with the same Idempotency-Key."""
    if incoming.idempotency_key is None:
        return None
    asked_pk = attempts.asked_by_key(connection, owner_pk, incoming.idempotency_key)
    if asked_pk is None:
        return None
    conversation_pk, message_pk = asked_pk
    conversation = transcript.conversation_by_pk(connection, owner_pk, conversation_pk)
    assert conversation is not None
    asked = transcript.node_by_pk(connection, message_pk)
    found = None
    if _is_named(connection, incoming, conversation):
        found = _same_question(connection, incoming, conversation, asked)
    if found is None:
        raise Conflict(
            "This Idempotency-Key was used for another message; choose a new key.",
            code="idempotency_key_reused",
        )
    head = find_head(connection, conversation)
    return replace(found, moves_head=head is None or asked.pk in (head.pk, head.parent_pk))


def _same_question(
    connection: Connection, incoming: Incoming, conversation: ConversationRow, asked: Node
) -> Placement | None:
    """The place of a request that asks what this message asked; None where it asks another."""
    same = asked.content == transcript.content_digest(incoming.canonicals[-1])
    if not (same and asked.chain == incoming.chains[-1]):
        _, _, aligned = find_known(connection, incoming, conversation)
        if aligned is not None and not aligned.fresh and aligned.parent == asked:
            return _placement(conversation, asked, aligned)
    if not same:
        return None
    return Placement(conversation, asked, max(0, asked.depth - len(incoming.chain)))


def _is_named(connection: Connection, incoming: Incoming, conversation: ConversationRow) -> bool:
    """Whether the request names this conversation, or none."""
    if incoming.conversation is None:
        return True
    found = transcript.find_conversation(connection, conversation.owner_pk, incoming.conversation)
    return found is not None and found.pk == conversation.pk
