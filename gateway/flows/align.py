"""Alignment of a history with the stored messages: reads what `policies.alignment` compares, and
turns what it finds into rows.

Reads the newest WINDOW messages of a path at most, and texts only of those that are not found word
for word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection

from gateway.flows.identity import without_thinking
from gateway.prompts.view import AROUND
from gateway.store import attempts, tails, transcript
from gateway.store.tails import TailNode
from gateway.store.transcript import ConversationRow, Node
from gateway.wire.json_text import loads
from gateway.wire.requests import SYSTEM_ROLES
from policies.alignment import Alignment, Lore, Spoken, Window, align
from policies.asides import is_filler
from policies.likeness import Peeled
from policies.messages import canonical_message, is_of_tools, message_text

WINDOW = 300
"""Stored messages that are compared: more than clients send that trim by a budget."""

_SPARE = 40
"""Further stored messages than twice those that were sent: what the client left out in between."""
_REPLIES = 3
"""Newest replies of a history by which its conversation, or its branch, is found."""
_SURE_CHARS = 60
"""Characters of one reply with the message before it by which alone a conversation is found."""
_SURE_SHARE = 0.6
"""Of a history without an id so many messages, but for the newest, must be the conversation's."""
_TELLING_CHARS = 20
"""Characters below which a question is too common to look for."""
_FILLER_CHARS = 40
_PINNED = 2

Chain = Sequence[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Told:
    """A history's messages without system texts, with what identifies each, the newest at the end.

    known: the last of them that is stored word for word, with its node; (-1, None) for none.
    """

    chain: Chain
    canonicals: Sequence[bytes]
    known: int
    node: Node | None


@dataclass(frozen=True, slots=True)
class Fresh:
    """A message of the new path that is not stored there yet; stored: it was said on another
    branch, and is told again here."""

    message: dict[str, Any]
    canonical: bytes
    stored: tails.StoredReply | None = None


@dataclass(frozen=True, slots=True)
class Aligned:
    """Where a history stands. parent: what the fresh messages go under. depths: of each message of
    the chain, the depth of what it stands for, or after which it stands; 0: before everything.
    notes: (index in the chain, depth, message) of what is the client's own."""

    parent: Node | None
    fresh: Sequence[Fresh]
    depths: Sequence[int]
    notes: Sequence[tuple[int, int, dict[str, Any]]]
    offset: int


def align_history(
    connection: Connection, conversation: ConversationRow, told: Told, *, is_named: bool
) -> Aligned | None:
    """Align what follows the known part of a history; None where it cannot be told.

    is_named: the client named the conversation; otherwise much must agree.
    """
    lore = _read_lore(connection, conversation)
    best: tuple[_Table, Alignment] | None = None
    for tip in _tips(connection, conversation, told):
        table = _Table(connection, told, tip, lore)
        found = table.align()
        if found is None or not (is_named or table.is_sure(found)):
            continue
        if best is None or found.replies > best[1].replies:
            best = table, found
    return None if best is None else best[0].draw(best[1])


def may_wrap(
    connection: Connection, conversation: ConversationRow, message: dict[str, Any]
) -> bool:
    """Whether a new message may have a client's own text around it: it has several lines, and this
    client was seen to do so."""
    if message["role"] != "user" or "\n" not in message_text(message).strip():
        return False
    return bool(_read_lore(connection, conversation).wrappings)


def find_by_contents(
    connection: Connection, owner_pk: int, chain: Chain, canonicals: Sequence[bytes]
) -> list[int]:
    """The owner's conversations that hold the newest replies of this history, or else the questions
    before them, best first."""
    contents = [
        content for message in _newest_replies(chain) for content in reply_contents(message)
    ]
    if not contents:
        return []
    asked = [
        transcript.content_digest(canonical)
        for message, canonical in zip(chain[:-1], canonicals, strict=False)
        if message["role"] == "user" and len(message_text(message)) >= _TELLING_CHARS
    ]
    contents += asked[-_REPLIES:]
    return tails.conversations_by_contents(connection, owner_pk, contents)


def drop_fillers(
    connection: Connection, conversation_pk: int, placed: list[tuple[int, dict[str, Any]]]
) -> list[tuple[int, dict[str, Any]]]:
    """Leave out fillers in front of a trimmed head: the view tells the head itself. One that stood
    there before stays, because all that follows it would have to be read again."""
    fillers = [message for depth, message in placed if depth == 0 and _fills(message)]
    if not fillers:
        return placed
    last = attempts.last_system(connection, conversation_pk)
    told = [] if last is None else _read_placed(connection, last)
    stood = [message for depth, message in told if depth == 0]
    return [item for item in placed if item[1] not in fillers or item[1] in stood]


def _fills(message: dict[str, Any]) -> bool:
    return message["role"] not in SYSTEM_ROLES and is_filler(message_text(message))


def _read_placed(connection: Connection, system_pk: int) -> list[tuple[int, dict[str, Any]]]:
    stored = loads(transcript.system_text(connection, system_pk))
    return [(int(depth), message) for depth, message in stored]


def _newest_replies(chain: Chain) -> list[dict[str, Any]]:
    replies = [message for message in chain if message["role"] == "assistant"]
    return replies[: -_REPLIES - 1 : -1]


def reply_contents(message: dict[str, Any]) -> list[str]:
    """What identifies a reply: as it was sent, and without a speaker's name before it."""
    message = without_thinking(message)
    found = [transcript.content_digest(canonical_message(message))]
    content = message.get("content")
    if isinstance(content, str):
        name, colon, rest = content.partition(": ")
        if colon and "\n" not in name and rest:
            bare = canonical_message({**message, "content": rest})
            found.append(transcript.content_digest(bare))
    return found


def _tips(connection: Connection, conversation: ConversationRow, told: Told) -> list[Node]:
    """The ends of the paths that the history may tell of: the newest one, and other branches that
    hold its newest replies."""
    if conversation.head_pk is None:
        return []
    head = transcript.node_by_pk(connection, conversation.head_pk)
    tips = [head] if _holds(connection, head, told.node) else []
    for message in _newest_replies(told.chain[told.known + 1 :]):
        for content in reply_contents(message):
            for node in transcript.nodes_by_content(connection, conversation.pk, content)[:2]:
                is_new = all(not _holds(connection, tip, node) for tip in tips)
                if node.anchored and is_new and _holds(connection, node, told.node):
                    tips.append(node)
    return tips[: 1 + _REPLIES]


def _holds(connection: Connection, tip: Node, node: Node | None) -> bool:
    return node is None or transcript.on_path(connection, node.pk, node.depth, tip)


def _read_lore(connection: Connection, conversation: ConversationRow) -> Lore:
    """What the client was seen to add with its newest turn: it stands with the system texts."""
    last = attempts.last_system(connection, conversation.pk)
    if last is None:
        return Lore()
    notes: list[str] = []
    wrappings: list[Peeled] = []
    for _, message in _read_placed(connection, last):
        if message["role"] in SYSTEM_ROLES:
            continue
        text = message_text(message)
        notes.append(text.strip())
        side = message.get(AROUND)
        if side is not None:
            raw = str(message["content"])
            wrappings.append(Peeled(raw, "", "") if side == "before" else Peeled("", "", raw))
    return Lore(tuple(dict.fromkeys(notes)), tuple(wrappings))


class _Table:
    """One history beside one path."""

    def __init__(self, connection: Connection, told: Told, tip: Node, lore: Lore) -> None:
        self._connection, self._told, self._lore = connection, told, lore
        self._start = max(told.known + 1, len(told.chain) - 2 * WINDOW)
        self._floor = told.node.depth if told.node is not None else 0
        most = min(WINDOW, 2 * (len(told.chain) - self._start) + _SPARE)
        above = max(self._floor, tip.depth - most)
        self._kept = tails.read_tail(connection, tip.pk, above) if tip.depth > above else []
        self._above = above
        self._sent = [self._speak(at) for at in range(self._start, len(told.chain))]
        self._rows: dict[int, tails.StoredReply] = {}

    def _speak(self, at: int) -> Spoken:
        message = self._told.chain[at]
        content = transcript.content_digest(self._told.canonicals[at])
        text = message_text(without_thinking(message))
        return Spoken(str(message["role"]), text, content, bound=is_of_tools(message))

    def align(self) -> Alignment | None:
        known = {message.content: message for message in self._sent}
        self._load([node.pk for node in self._kept if node.content not in known])
        kept = [self._recall(node, known.get(node.content)) for node in self._kept]
        told = self._told
        window = Window(
            cut=self._start - told.known - 1,
            below=self._above - self._floor,
            rooted=told.node is not None,
            pinned=told.node is not None and told.node.depth <= _PINNED,
            answered=told.node is not None and told.node.role == "assistant",
        )
        return align(self._sent, kept, self._lore, window)

    def _load(self, pks: Sequence[int]) -> None:
        wanted = [pk for pk in pks if pk not in self._rows]
        self._rows |= tails.read_messages(self._connection, wanted)

    def _recall(self, node: TailNode, same: Spoken | None) -> Spoken:
        if same is not None:
            return replace(same, produced=bool(node.produced))
        row = self._rows[node.pk]
        message = loads(row.raw)
        return Spoken(
            node.role,
            message_text(without_thinking(message)),
            node.content,
            bound=is_of_tools(message),
            produced=bool(node.produced),
        )

    def is_sure(self, found: Alignment) -> bool:
        """Whether a history that names no conversation is this one's beyond chance."""
        replies = [at for at, one in enumerate(self._sent) if one.role == "assistant"]
        same = self._told.known + 1 + found.pairs
        if not found.replies or same < _SURE_SHARE * (len(self._told.chain) - 1):
            return False
        if found.replies > 1 or self._told.node is not None:
            return True
        texts = [len(one.text) for one in self._sent]
        longest = max(texts[at] + (texts[at - 1] if at else 0) for at in replies)
        return found.pairs > 1 and longest >= _SURE_CHARS

    def draw(self, found: Alignment) -> Aligned:
        told, above = self._told, self._above
        copies = [piece.kept for piece in found.pieces if piece.kept is not None]
        self._load([self._kept[at].pk for at in copies])
        depths = list(range(1, told.known + 2)) + [above] * (self._start - told.known - 1)
        depths += [0 if depth < 0 else above + depth for depth in found.depths]
        notes = [
            (self._start + each.sent, max(0, depths[self._start + each.sent]), message)
            for each in found.insertions
            if not _is_filler(message := told.chain[self._start + each.sent], each.kind)
        ]
        first = next((d for d in found.depths if d > 0), 1)
        for around in found.arounds:
            at = self._start + around.sent
            for side, text in (("before", around.before), ("after", around.after)):
                if text:
                    message = {"role": "user", "content": text, AROUND: side}
                    notes.append((at, above + around.depth, message))
        return Aligned(
            parent=self._parent(found.base),
            fresh=[self._fresh(*piece) for piece in found.pieces],
            depths=depths,
            notes=sorted(notes, key=lambda note: note[0]),
            offset=0 if told.node is not None else above + first - 1,
        )

    def _parent(self, base: int) -> Node | None:
        if base:
            return transcript.node_by_pk(self._connection, self._kept[base - 1].pk)
        if not self._kept or self._above == self._floor:
            return self._told.node
        parent_pk = self._kept[0].parent_pk
        return None if parent_pk is None else transcript.node_by_pk(self._connection, parent_pk)

    def _fresh(self, kept: int | None, sent: int | None, text: str | None) -> Fresh:
        if kept is not None:
            row = self._rows[self._kept[kept].pk]
            message = loads(row.raw)
            return Fresh(message, canonical_message(without_thinking(message)), row)
        assert sent is not None
        at = self._start + sent
        message = self._told.chain[at]
        if text is None:
            return Fresh(message, self._told.canonicals[at])
        message = {**message, "content": _say(message.get("content"), text)}
        return Fresh(message, canonical_message(message))


def _say(content: object, text: str) -> object:
    """A message's content with another text in it; what is no text stays."""
    if not isinstance(content, list):
        return text
    parts = [part for part in content if part.get("type") != "text"]
    return [{"type": "text", "text": text.replace("[image]", "").strip()}, *parts]


def _is_filler(message: dict[str, Any], kind: str) -> bool:
    """A few words that only stand in a trimmed head's place, which the view tells itself."""
    text = message_text(message).strip()
    in_brackets = text.startswith("[") and text.endswith("]")
    return kind == "heading" and (in_brackets or len(text) <= _FILLER_CHARS)
