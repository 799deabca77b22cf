"""Where an incoming request stands in the transcript.

In this order: an explicit id; the chain of digests, deepest known message first; alignment from
the tail for a client that trims its head; otherwise a new conversation. Never from the opening
words alone: a history is recognised only by a message that the gateway itself produced.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from gateway.errors import BadRequest, Conflict
from gateway.store import attempts, transcript
from gateway.store.transcript import ConversationRow, Node
from gateway.wire.json_text import NotJson, dumps
from gateway.wire.requests import ChatRequest, split_system
from policies.messages import (
    canonical_message,
    count_images,
    is_of_tools,
    message_chars,
    message_text,
)


@dataclass(frozen=True, slots=True)
class Incoming:
    """A request made ready for the store.

    chain are its messages without system texts; system holds (number of chain messages before
    it, message). canonicals and chains run along chain. headers (names in lower case) and tags are
    what rules may look at.
    """

    request: ChatRequest
    owner: str
    user: str
    conversation: str | None
    idempotency_key: str | None
    retried: bool
    chain: Sequence[dict[str, Any]]
    system: Sequence[tuple[int, dict[str, Any]]]
    canonicals: Sequence[bytes]
    chains: Sequence[str]
    headers: Mapping[str, str] = field(default_factory=dict)
    tags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Placement:
    """The conversation, the message that is asked now, and what the request told of its place.

    offset: how many messages of the path stand before the request's first chain message (what
    the client trimmed or never sends); 0: the request told the whole path. moves_head: whether
    the conversation's newest head follows; not for a late repeat of what was answered long ago.
    """

    conversation: ConversationRow
    asked: Node
    offset: int
    moves_head: bool = True


def prepare(
    request: ChatRequest,
    *,
    owner: str,
    user: str = "",
    conversation: str | None = None,
    idempotency_key: str | None = None,
    retried: bool = False,
    headers: Mapping[str, str] | None = None,
    tags: Collection[str] = (),
) -> Incoming:
    """Digest a request (CPU only; a megabyte of history takes some milliseconds).

    Raises BadRequest for a message whose parts are nested too deeply to be compared.
    """
    chain, system = split_system(request.messages)
    try:
        canonicals = [canonical_message(message) for message in chain]
    except RecursionError:
        raise BadRequest("A message is nested too deeply.", param="messages") from None
    return Incoming(
        request=request,
        owner=owner,
        user=user,
        conversation=conversation or request.conversation,
        idempotency_key=idempotency_key,
        retried=retried,
        chain=chain,
        system=system,
        canonicals=canonicals,
        chains=transcript.chain_digests(canonicals),
        headers=headers or {},
        tags=request.tags.union(tags),
    )


def place(
    connection: Connection, incoming: Incoming, owner_pk: int, *, image_chars: int, now_ms: int
) -> Placement:
    """Find or begin the conversation and store what is new. Raises Conflict for a key re-used."""
    if (again := _same_key(connection, incoming, owner_pk)) is not None:
        return again
    conversation, is_new = _conversation(connection, incoming, owner_pk, now_ms)
    known = -1
    parent: Node | None = None
    if not is_new:
        known, parent = _known(connection, incoming, conversation)
    new = _new_messages(incoming, known + 1, image_chars)
    nodes = transcript.append_messages(connection, conversation, parent, new, now_ms)
    asked = nodes[-1] if nodes else parent
    assert asked is not None
    offset = asked.depth - len(incoming.chain)
    # A lone message is told twice by a mere retry, and says nothing about the client's habits.
    if known >= 0 and offset == 0 and len(incoming.chain) > 1 and not conversation.resends:
        transcript.mark_resending(connection, conversation.pk)
    return Placement(conversation, asked, offset)


def _new_messages(incoming: Incoming, start: int, image_chars: int) -> list[transcript.NewMessage]:
    try:
        return [
            to_new_message(incoming.chain[index], incoming.canonicals[index], image_chars)
            for index in range(start, len(incoming.chain))
        ]
    except NotJson as error:
        raise BadRequest(f"A message cannot be stored: {error}.", param="messages") from None


def to_new_message(
    message: dict[str, Any],
    canonical: bytes,
    image_chars: int,
    *,
    produced: bool = False,
    backend: str | None = None,
    finish_reason: str | None = None,
    partial: bool = False,
) -> transcript.NewMessage:
    """A client's or model's message as the store takes it."""
    text = message_text(message)
    role = str(message["role"])
    return transcript.NewMessage(
        role=role,
        raw=dumps(message),
        canonical=canonical,
        text=None if text == message.get("content") and "\x00" not in text else _storable(text),
        chars=message_chars(message, image_chars),
        opens=role == "user",
        produced=produced,
        backend=backend,
        finish_reason=finish_reason,
        partial=partial,
        images=count_images(message),
        tools=int(is_of_tools(message)),
    )


def _storable(text: str) -> str:
    return text.replace("\x00", "\ufffd")


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
    if asked.content != transcript.content_digest(incoming.canonicals[-1]) or not _is_named(
        connection, incoming, conversation
    ):
        raise Conflict(
            "This Idempotency-Key was used for another message; choose a new key.",
            code="idempotency_key_reused",
        )
    head = _head(connection, conversation)
    is_newest = head is None or asked.pk in (head.pk, head.parent_pk)
    return Placement(conversation, asked, max(0, asked.depth - len(incoming.chain)), is_newest)


def _is_named(connection: Connection, incoming: Incoming, conversation: ConversationRow) -> bool:
    """Whether the request names this conversation, or none."""
    if incoming.conversation is None:
        return True
    found = transcript.find_conversation(connection, conversation.owner_pk, incoming.conversation)
    return found is not None and found.pk == conversation.pk


def _conversation(
    connection: Connection, incoming: Incoming, owner_pk: int, now_ms: int
) -> tuple[ConversationRow, bool]:
    found: ConversationRow | None = None
    if incoming.conversation is not None:
        found = transcript.find_conversation(connection, owner_pk, incoming.conversation)
    else:
        found = _by_chain(connection, incoming, owner_pk)
    if found is not None:
        return found, False
    return transcript.create_conversation(
        connection,
        owner_pk,
        alias=incoming.conversation,
        model=incoming.request.model,
        now_ms=now_ms,
    ), True


def _by_chain(connection: Connection, incoming: Incoming, owner_pk: int) -> ConversationRow | None:
    """The conversation whose own replies this history holds; a retried first turn finds itself."""
    last = len(incoming.chains) - 1
    for pk, index, anchored in transcript.conversations_by_chain(
        connection, owner_pk, incoming.chains
    ):
        if not anchored and not (incoming.retried and index == last):
            continue
        found = transcript.conversation_by_pk(connection, owner_pk, pk)
        if found is not None and (anchored or _ends_there(connection, found, incoming.chains[-1])):
            return found
    return None


def _ends_there(connection: Connection, conversation: ConversationRow, chain: str) -> bool:
    """Whether nothing was said behind this message but its reply: what a retry asks again. An
    older chat with the same opening has gone on."""
    if conversation.head_pk is None:
        return False
    head = transcript.node_by_pk(connection, conversation.head_pk)
    if head.chain != chain and head.parent_pk is not None:
        head = transcript.node_by_pk(connection, head.parent_pk)
    return head.chain == chain


def _known(
    connection: Connection, incoming: Incoming, conversation: ConversationRow
) -> tuple[int, Node | None]:
    """(index of the last incoming message that is stored already or -1, what new ones go under)."""
    if len(incoming.chain) == 1:
        return _known_alone(connection, incoming, conversation)
    found = transcript.deepest_known(connection, conversation, incoming.chains)
    if found is not None:
        return found
    head = _head(connection, conversation)
    if head is None:
        return -1, None
    if (asked := _asked_again(connection, incoming, head)) is not None:
        return len(incoming.chain) - 1, asked
    aligned = _align_tail(connection, incoming, conversation, head)
    return aligned if aligned is not None else (-1, head)


def _known_alone(
    connection: Connection, incoming: Incoming, conversation: ConversationRow
) -> tuple[int, Node | None]:
    """A message sent alone follows the newest one, unless it is tried again or is, from a client
    that sends its history, the first one of it."""
    head = _head(connection, conversation)
    if head is None:
        return -1, None
    if (asked := _asked_again(connection, incoming, head)) is not None:
        return 0, asked
    found = None
    if conversation.resends:
        found = transcript.deepest_known(connection, conversation, incoming.chains)
    return (-1, head) if found is None else found


def _head(connection: Connection, conversation: ConversationRow) -> Node | None:
    if conversation.head_pk is None:
        return None
    return transcript.node_by_pk(connection, conversation.head_pk)


def _asked_again(connection: Connection, incoming: Incoming, head: Node) -> Node | None:
    """The last question, where the client says that it tries again and asks just that.

    Messages sent without the history before them are new otherwise: a person may say "yes" twice.
    """
    if not incoming.retried:
        return None
    asked: Node | None = head
    if head.role == "assistant" and head.parent_pk is not None:
        asked = transcript.node_by_pk(connection, head.parent_pk)
    at = asked
    for canonical in reversed(incoming.canonicals):
        if at is None or at.content != transcript.content_digest(canonical):
            return None
        at = None if at.parent_pk is None else transcript.node_by_pk(connection, at.parent_pk)
    return asked


def _align_tail(
    connection: Connection, incoming: Incoming, conversation: ConversationRow, head: Node
) -> tuple[int, Node | None] | None:
    """Alignment on a reply of the gateway's, for a history whose head was trimmed.

    The newest incoming assistant message that stands on the newest branch, with the message
    before it standing before it, places all that came before. Where nothing was trimmed (the
    positions agree) the head was edited instead, and the history is a branch from the root.
    """
    for index in range(len(incoming.chain) - 1, -1, -1):
        if incoming.chain[index]["role"] != "assistant":
            continue
        content = transcript.content_digest(incoming.canonicals[index])
        for node in transcript.nodes_by_content(connection, conversation.pk, content):
            if not node.anchored or not transcript.on_path(connection, node.pk, node.depth, head):
                continue
            if not _same_before(connection, incoming, index, node):
                continue
            return (-1, None) if node.depth == index + 1 else (index, node)
    return None


def _same_before(connection: Connection, incoming: Incoming, index: int, node: Node) -> bool:
    if index == 0:
        return True
    if node.parent_pk is None:
        return False
    before = transcript.node_by_pk(connection, node.parent_pk)
    return before.content == transcript.content_digest(incoming.canonicals[index - 1])
