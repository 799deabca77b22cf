"""The walk of the message tree: each message laid beside the one before it on its path.

A message is told by what it should be, given its own text and what its parent says of itself; where
the parent is wrong, given what the parent should be, so that one wrong row is one finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from gateway.store.prepared import Prepared
from gateway.store.transcript import chain_digest, content_digest, jump_depth, message_digest
from gateway.wire.json_text import NotJson, loads
from gateway.wire.thinking import split_thinking
from policies.messages import canonical_message, count_images, is_of_tools, message_chars

Note = Callable[[str, str, str], None]
"""(check, where, what is wrong)."""

_PAGE = 2_000
_MOST_WRONG = 10_000
"""Wrong messages that are remembered for their children's sake; behind them each counts alone."""


class _Place(NamedTuple):
    """What a message says of itself, or should say."""

    id: str
    chain: str
    depth: int
    cum_chars: int
    cum_images: int
    cum_tools: int
    anchored: bool


class _Read(NamedTuple):
    pk: int
    conversation_pk: int
    parent_pk: int | None
    jump_pk: int | None
    jump_depth: int
    content: str
    role: str
    raw: str
    chars: int
    produced: bool
    conversation: str | None
    parent_conversation: int | None
    jump_conversation: int | None
    jumped_to: int | None
    owner_pk: int
    owner_of_all: int | None


class _Said(NamedTuple):
    """A message as parsed, and the bytes that it is known by."""

    message: dict[str, Any]
    canonical: bytes


_WALK = Prepared(
    text(
        """
        SELECT m.pk, m.conversation_pk, m.parent_pk, m.jump_pk, m.jump_depth, m.content, m.role,
               m.raw, m.chars, m.produced, c.id, p.conversation_pk, j.conversation_pk, j.depth,
               m.owner_pk, c.owner_pk,
               m.id, m.chain, m.depth, m.cum_chars, m.cum_images, m.cum_tools, m.anchored,
               p.id, p.chain, p.depth, p.cum_chars, p.cum_images, p.cum_tools, p.anchored
        FROM messages m LEFT JOIN conversations c ON c.pk = m.conversation_pk
        LEFT JOIN messages p ON p.pk = m.parent_pk LEFT JOIN messages j ON j.pk = m.jump_pk
        WHERE m.pk > :after ORDER BY m.pk LIMIT :page
        """
    )
)
_WIDTH = len(_Read._fields)
_PLACE = len(_Place._fields)


def walk_messages(connection: Connection, note: Note) -> int:
    """Tell `note` of every message that is wrong; returns how many were read."""
    looked = after = 0
    wrong: dict[int, _Place] = {}
    while rows := _WALK.all(connection, after=after, page=_PAGE):
        for row in rows:
            _check(row, wrong, note)
        looked, after = looked + len(rows), rows[-1][0]
    return looked


def _check(row: tuple[Any, ...], wrong: dict[int, _Place], note: Note) -> None:
    read = _Read._make(row[:_WIDTH])
    if read.conversation is None:
        return  # told by its foreign key
    where = f"message {read.pk} of {read.conversation}"
    if read.owner_pk != read.owner_of_all:
        note("owners", where, "its owner is not its conversation's")
    if read.parent_pk is not None and read.parent_conversation != read.conversation_pk:
        note("messages", where, "the message before it is not there")
        return
    stored = _Place._make(row[_WIDTH : _WIDTH + _PLACE])
    parent = None if read.parent_pk is None else _Place._make(row[_WIDTH + _PLACE :])
    said = _parse(read)
    if said is None:
        note("messages", where, "its text is no message")
        return
    faults = list(_faults(read, said, stored, parent))
    if faults and read.parent_pk in wrong:
        faults = list(_faults(read, said, stored, wrong[read.parent_pk]))
    if faults:
        note("messages", where, "; ".join(faults))
        if len(wrong) < _MOST_WRONG:
            wrong[read.pk] = _expected(read, said, parent)


def _parse(read: _Read) -> _Said | None:
    """None for what is no message. Its bytes are those without thinking that leaked into it, where
    its digest says so."""
    try:
        message = loads(read.raw)
        canonical = canonical_message(message)
        content = message.get("content")
    except (NotJson, AttributeError, RecursionError):
        return None
    if (
        isinstance(content, str)
        and "think" in content
        and content_digest(canonical) != read.content
    ):
        bare = canonical_message({**message, "content": split_thinking(content)[1]})
        canonical = bare if content_digest(bare) == read.content else canonical
    return _Said(message, canonical)


def _faults(read: _Read, said: _Said, stored: _Place, parent: _Place | None) -> Iterator[str]:
    should = _expected(read, said, parent)
    if content_digest(said.canonical) != read.content or stored[:2] != should[:2]:
        yield "its digest is not that of its text and the message before it"
    if stored.depth != should.depth:
        yield f"it says depth {stored.depth}, the path has {should.depth}"
    if not _costs(said.message, read.chars):
        yield f"it says {read.chars} characters"
    if stored[3:] != should[3:]:
        yield "its sums along the path are not those of the messages"
    if said.message.get("role") != read.role:
        yield f"it says it is of {read.role}"
    yield from _faults_of_jump(read, stored.depth)


def _faults_of_jump(read: _Read, depth: int) -> Iterator[str]:
    if read.jump_depth != jump_depth(depth):
        yield "its skip pointer has another length than its depth asks for"
    elif read.jump_pk is not None:
        if (read.jump_conversation, read.jumped_to) != (read.conversation_pk, read.jump_depth):
            yield "its skip pointer leads elsewhere"


def _expected(read: _Read, said: _Said, parent: _Place | None) -> _Place:
    assert read.conversation is not None
    above = parent or _Place(read.conversation, "", 0, 0, 0, 0, False)
    return _Place(
        id=message_digest(above.id, said.canonical),
        chain=chain_digest(above.chain, said.canonical),
        depth=above.depth + 1,
        cum_chars=above.cum_chars + read.chars,
        cum_images=above.cum_images + count_images(said.message),
        cum_tools=above.cum_tools + int(is_of_tools(said.message)),
        anchored=bool(read.produced or above.anchored),
    )


def _costs(message: dict[str, Any], chars: int) -> bool:
    """Whether a message can cost so much: what an image costs is the policy's of that day."""
    text_only = message_chars(message, 0)
    return chars == text_only or (chars > text_only and message_chars(message, 1) > text_only)
