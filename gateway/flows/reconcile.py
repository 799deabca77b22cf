"""Where an incoming request stands in the transcript.

In this order: an explicit id; the chain of digests, deepest known message first; alignment from
the tail for a client that trims its head; otherwise a new conversation. Never from the opening
words alone: a history is recognised only by a message that the gateway itself produced.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection

from gateway.errors import BadRequest, Conflict
from gateway.flows.align import (
    Aligned,
    Fresh,
    Told,
    align_history,
    find_by_contents,
    may_wrap,
)
from gateway.flows.identity import set_apart, without_thinking
from gateway.flows.joined import align_joined
from gateway.flows.privacy import keep_private, tells_private
from gateway.store import attempts, transcript
from gateway.store.transcript import ConversationRow, Node
from gateway.wire.json_text import NotJson, dumps
from gateway.wire.requests import ChatRequest, split_system
from policies.auxiliary import Auxiliary
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
    what rules may look at. auxiliary: where the request is no turn, what it is.
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
    auxiliary: Auxiliary | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """The conversation, the message that is asked now, and what the request told of its place.

    offset: how many messages of the path stand before the request's first chain message (what
    the client trimmed or never sends); 0: the request told the whole path. moves_head: whether
    the conversation's newest head follows; not for a late repeat of what was answered long ago.
    depths: of each chain message, the depth of what it stands for, or after which it stands, where
    the history was aligned. notes: (index in the chain, depth, message) of those that are the
    client's own: shown to the model at their place for this turn, and not stored.
    """

    conversation: ConversationRow
    asked: Node
    offset: int
    moves_head: bool = True
    depths: Sequence[int] | None = None
    notes: Sequence[tuple[int, int, dict[str, Any]]] = ()

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
    auxiliary: Auxiliary | None = None,
) -> Incoming:
    """Digest a request (CPU only; a megabyte of history takes some milliseconds).

    Raises BadRequest for a message whose parts are nested too deeply to be compared.
    """
    chain, system = set_apart(*split_system(request.messages))
    try:
        canonicals = [canonical_message(without_thinking(message)) for message in chain]
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
        auxiliary=auxiliary,
    )


def place(
    connection: Connection, incoming: Incoming, owner_pk: int, *, image_chars: int, now_ms: int
) -> Placement:
    """Find or begin the conversation and store what is new. Raises Conflict for a key re-used."""
    if (again := _same_key(connection, incoming, owner_pk)) is not None:
        return again
    conversation, is_new, aligned = _conversation(connection, incoming, owner_pk, now_ms)
    known = -1
    parent: Node | None = None
    if aligned is None and not is_new:
        known, parent, aligned = _known(connection, incoming, conversation)
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
    return Placement(conversation, asked, offset)


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
    return _placement(conversation, asked, aligned)


def _placement(conversation: ConversationRow, asked: Node, aligned: Aligned) -> Placement:
    return Placement(
        conversation, asked, aligned.offset, depths=aligned.depths, notes=aligned.notes
    )


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
    found = None
    if _is_named(connection, incoming, conversation):
        found = _same_question(connection, incoming, conversation, asked)
    if found is None:
        raise Conflict(
            "This Idempotency-Key was used for another message; choose a new key.",
            code="idempotency_key_reused",
        )
    head = _head(connection, conversation)
    return replace(found, moves_head=head is None or asked.pk in (head.pk, head.parent_pk))


def _same_question(
    connection: Connection, incoming: Incoming, conversation: ConversationRow, asked: Node
) -> Placement | None:
    """The place of a request that asks what this message asked; None where it asks another."""
    same = asked.content == transcript.content_digest(incoming.canonicals[-1])
    if not (same and asked.chain == incoming.chains[-1]):
        _, _, aligned = _known(connection, incoming, conversation)
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


def _conversation(
    connection: Connection, incoming: Incoming, owner_pk: int, now_ms: int
) -> tuple[ConversationRow, bool, Aligned | None]:
    """(the conversation, whether it is new, where the history stands if that is known already)."""
    found: ConversationRow | None = None
    aligned: Aligned | None = None
    if incoming.conversation is not None:
        found = transcript.find_conversation(connection, owner_pk, incoming.conversation)
    else:
        found = _by_chain(connection, incoming, owner_pk)
        if found is None:
            found, aligned = _by_replies(connection, incoming, owner_pk)
    if found is not None:
        return found, False, aligned
    made = transcript.create_conversation(
        connection,
        owner_pk,
        alias=incoming.conversation,
        model=incoming.request.model,
        now_ms=now_ms,
        private=tells_private(connection, owner_pk, incoming.chain, incoming.canonicals),
    )
    return made, True, None


def _by_replies(
    connection: Connection, incoming: Incoming, owner_pk: int
) -> tuple[ConversationRow | None, Aligned | None]:
    """The conversation with which a history agrees that is not told word for word."""
    for pk in find_by_contents(connection, owner_pk, incoming.chain, incoming.canonicals):
        found = transcript.conversation_by_pk(connection, owner_pk, pk)
        if found is not None:
            known = transcript.deepest_known(connection, found, incoming.chains) or (-1, None)
            told = Told(incoming.chain, incoming.canonicals, *known)
            aligned = align_history(connection, found, told, is_named=False)
            if aligned is not None:
                return found, aligned
    return None, None


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
) -> tuple[int, Node | None, Aligned | None]:
    """(index of the last incoming message that is stored already or -1, what new ones go under),
    or where the history stands by alignment."""
    if len(incoming.chain) == 1:
        return _known_alone(connection, incoming, conversation)
    found = transcript.deepest_known(connection, conversation, incoming.chains)
    known, node = found if found is not None else (-1, None)
    if node is not None and not _is_doubtful(incoming, known, node):
        newest = incoming.chain[-1]
        if known + 1 == len(incoming.chain) or not may_wrap(connection, conversation, newest):
            return known, node, None
    head = _head(connection, conversation)
    if head is None:
        return -1, None, None
    if found is None and (asked := _asked_again(connection, incoming, head)) is not None:
        return len(incoming.chain) - 1, asked, None
    told = Told(incoming.chain, incoming.canonicals, known, node)
    aligned = align_history(connection, conversation, told, is_named=True)
    return known, head if found is None else node, aligned


def _is_doubtful(incoming: Incoming, known: int, node: Node) -> bool:
    """Whether what follows the known part is more than one new message, or results of tools: an
    echo in another form, or notes of the client's."""
    rest = [message["role"] for message in incoming.chain[known + 1 :]]
    return "assistant" in rest or rest.count("user") > (node.role != "user")


def _known_alone(
    connection: Connection, incoming: Incoming, conversation: ConversationRow
) -> tuple[int, Node | None, Aligned | None]:
    """A message sent alone follows the newest one, unless it is tried again, tells all that was
    said before it, or is, from a client that sends its history, the first one of it."""
    head = _head(connection, conversation)
    if head is None:
        return -1, None, None
    if (asked := _asked_again(connection, incoming, head)) is not None:
        return 0, asked, None
    if (joined := align_joined(connection, incoming.chain[0], head)) is not None:
        return -1, None, joined
    found = None
    if conversation.resends:
        found = transcript.deepest_known(connection, conversation, incoming.chains)
    return (-1, head, None) if found is None else (*found, None)


def _head(connection: Connection, conversation: ConversationRow) -> Node | None:
    if conversation.head_pk is None:
        return None
    return transcript.node_by_pk(connection, conversation.head_pk)


def _asked_again(connection: Connection, incoming: Incoming, head: Node) -> Node | None:
    """The last question, where just that is asked while nothing has been replied to it, or the
    client says that it tries again.

    Messages sent without the history before them are new otherwise: a person may say "yes" twice.
    """
    if head.role == "assistant" and not incoming.retried:
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
