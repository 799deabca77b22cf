"""Which conversation a history belongs to, and how much of it is stored already. reconcile.py says
in which order they are looked for."""

from __future__ import annotations

from sqlalchemy import Connection

from gateway.flows.align import Aligned, Told, align_history, find_by_contents, may_wrap
from gateway.flows.incoming import Incoming
from gateway.flows.joined import align_joined
from gateway.flows.privacy import tells_private
from gateway.store import transcript
from gateway.store.transcript import ConversationRow, Node


def find_or_begin(
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


def find_known(
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
    head = find_head(connection, conversation)
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
    head = find_head(connection, conversation)
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


def find_head(connection: Connection, conversation: ConversationRow) -> Node | None:
    """The newest message of a conversation; None where nothing was said in it yet."""
    if conversation.head_pk is None:
        return None
    return transcript.node_by_pk(connection, conversation.head_pk)
