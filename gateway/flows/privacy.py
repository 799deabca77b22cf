"""Whether a history tells what was said in a private conversation, under whatever name it comes.

A client's "clone chat" sends one history under another id, and a trimmed head hides where it began;
it may come into a conversation that exists already as well. So it is known by the replies in it,
wherever they are new. What was retold in other words is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection

from gateway.flows.align import Chain, find_by_contents, reply_contents
from gateway.flows.purges import withdraw_facts
from gateway.store import tails, transcript
from gateway.store.tails import HeldReply
from gateway.store.transcript import ConversationRow, Node
from policies.messages import message_text

_NEWEST = 50
"""Messages of a history that are looked for, from its end."""
_TELLING_BYTES = 16
"""A shorter reply says nothing by itself: only behind the message that it answered."""


def keep_private(
    connection: Connection,
    conversation: ConversationRow,
    chain: Chain,
    canonicals: Sequence[bytes],
    *,
    parent: Node | None,
    asides: Chain = (),
) -> ConversationRow:
    """A conversation that exists and now takes messages behind `parent`: private from now on where
    a reply among them was said in private. asides: what the client puts in for this turn alone."""
    before = None if parent is None else parent.content
    if conversation.private or not tells_private(
        connection, conversation.owner_pk, chain, canonicals, before=before, asides=asides
    ):
        return conversation
    transcript.settle_conversation(
        connection, conversation.pk, backend=conversation.backend, private=True
    )
    withdraw_facts(connection, conversation)
    return replace(conversation, private=True)


def tells_private(
    connection: Connection,
    owner_pk: int,
    chain: Chain,
    canonicals: Sequence[bytes],
    *,
    before: str | None = None,
    asides: Chain = (),
) -> bool:
    """Whether a history holds a reply of one of the owner's newest private conversations, which no
    conversation that is not private was given as well.

    before: the digest of the message before the first. asides: messages that stand apart, known by
    themselves alone. Nothing is read where no reply is told or the owner has nothing private.
    """
    if not any(message["role"] == "assistant" for message in (*chain, *asides)):
        return False
    if not tails.has_private(connection, owner_pk):
        return False
    told = _read_replies(chain, canonicals, before)
    for aside in asides:
        told += _read_replies([aside], [], None)
    contents = {reply.content for reply, _ in told}
    held = tails.find_replies(connection, owner_pk, contents, private=True)
    if not held:
        return False
    contents = {reply.content for reply in held}
    public = tails.find_replies(connection, owner_pk, contents, private=False)
    return _is_among(told, held, public)


def resembles_private(
    connection: Connection, owner_pk: int, chain: Chain, canonicals: Sequence[bytes]
) -> bool:
    """As tells_private, also by the questions alone: of what stands behind a history and is asked
    about it as a whole."""
    if tells_private(connection, owner_pk, chain, canonicals):
        return True
    if len(chain) < 2:
        return False
    pks = find_by_contents(connection, owner_pk, chain, canonicals)
    found = (transcript.conversation_by_pk(connection, owner_pk, pk) for pk in pks)
    return any(one is not None and one.private for one in found)


def _read_replies(
    chain: Chain, canonicals: Sequence[bytes], before: str | None
) -> list[tuple[HeldReply, bool]]:
    """The newest replies, in each form that they may be stored in, and whether each says something
    by itself."""
    replies: list[tuple[HeldReply, bool]] = []
    for at in range(max(0, len(chain) - _NEWEST), len(chain)):
        if chain[at]["role"] != "assistant":
            continue
        is_telling = len(message_text(chain[at]).encode(errors="replace")) >= _TELLING_BYTES
        befores = [before]
        if at > 0:
            befores = [transcript.content_digest(canonicals[at - 1])]
            if chain[at - 1]["role"] == "assistant":
                befores = [*reply_contents(chain[at - 1])]
        for content in reply_contents(chain[at]):
            replies += [(HeldReply(content, before), is_telling) for before in befores]
    return replies


def _is_among(
    told: list[tuple[HeldReply, bool]], held: set[HeldReply], public: set[HeldReply]
) -> bool:
    """Whether a reply was said in private: to the same message, or at all where it is long enough.
    A card's greeting, or what was said in public too, was not."""
    alone = {reply.content for reply in held} - {reply.content for reply in public}
    for reply, is_telling in told:
        if reply.before is not None and reply in held and reply not in public:
            return True
        if is_telling and reply.content in alone:
            return True
    return False
