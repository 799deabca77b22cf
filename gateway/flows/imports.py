"""Exports read back: conversations, each in a transaction of its own, then what their owner knows.

What is here already is refused, never merged; one refused conversation leaves the others in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from sqlalchemy import Connection

from gateway.errors import BadRequest, Conflict
from gateway.flows.new_messages import to_new_message
from gateway.store.engine import Store
from gateway.store.imports import Facts, Numbered, import_conversation
from gateway.store.transcript import NewMessage, ensure_owner, message_digest
from gateway.wire.export_lines import (
    ConversationLine,
    Line,
    MemoryLine,
    MessageLine,
    OwnerLine,
    read_line,
)
from gateway.wire.json_text import NotJson, loads
from gateway.wire.thinking import split_thinking
from policies.messages import canonical_message


@dataclass(slots=True)
class Imported:
    """What became of a file: the ids of the conversations that are stored, why others are not, how
    many memories are told of the owner himself."""

    conversations: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    memories: int = 0


def import_lines(
    store: Store,
    texts: Iterable[str | bytes],
    *,
    owner: str | None,
    user: str,
    now_ms: int,
    tell: Callable[[int], None] = lambda count: None,
) -> Imported:
    """Store what an export of a conversation or of an owner holds.

    owner, user: whose it becomes; without an owner, whose the file says. tell: called with how many
    conversations are read. Raises BadRequest for a file that is no export: what came before the bad
    line is stored.
    """
    done = Imported()
    facts: dict[tuple[str, str], Facts] = {}

    def facts_of(line: ConversationLine | OwnerLine) -> Facts:
        whose = (owner, user) if owner is not None else _owner_of(line)
        if whose not in facts:
            began = min(now_ms, line.created_at)
            facts[whose] = Facts(store.writing(ensure_owner, *whose, began))
        return facts[whose]

    for kind, lines in _parts(texts):
        if kind is ConversationLine:
            _import_one(store, lines, facts_of, done)
            tell(len(done.conversations) + len(done.refused))
        else:
            _, first = lines[0]
            assert isinstance(first, OwnerLine)
            done.memories += store.writing(_import_facts, lines[1:], facts_of(first))
    for known in facts.values():
        store.writing(known.link)
    return done


def _owner_of(line: ConversationLine | OwnerLine) -> tuple[str, str]:
    name = line.owner if isinstance(line, ConversationLine) else line.name
    return name, line.user


def _import_one(
    store: Store,
    lines: list[tuple[int, Line]],
    facts_of: Callable[[ConversationLine], Facts],
    done: Imported,
) -> None:
    _, first = lines[0]
    assert isinstance(first, ConversationLine)
    facts = facts_of(first)
    before = (dict(facts.pks), set(facts.aside), dict(facts.behind))
    try:
        store.writing(import_conversation, lines, facts, _read_message)
    except Conflict as conflict:
        facts.pks, facts.aside, facts.behind = before
        done.refused[first.id] = conflict.message
    else:
        done.conversations.append(first.id)


def _import_facts(connection: Connection, lines: Numbered, facts: Facts) -> int:
    count = 0
    for number, line in lines:
        if not isinstance(line, MemoryLine):
            raise BadRequest(f"Line {number:,} has no place among what an owner knows.")
        facts.take(connection, line, None)
        count += 1
    return count


def _parts(texts: Iterable[str | bytes]) -> Iterator[tuple[type, list[tuple[int, Line]]]]:
    """The lines of one conversation after the other, then those of the owner."""
    part: list[tuple[int, Line]] = []
    for number, text in enumerate(texts, start=1):
        if not text.strip():
            continue
        line = read_line(text, number)
        if isinstance(line, OwnerLine | ConversationLine):
            if part:
                yield type(part[0][1]), part
            part = []
        elif not part:
            raise BadRequest(
                f"Line {number:,} comes before any conversation: this is no export of one."
            )
        part.append((number, line))
    if part:
        yield type(part[0][1]), part


def _read_message(line: MessageLine, parent: str) -> NewMessage | None:
    """A message by its own digest: thinking that leaked into its text may not count in it."""
    try:
        message = loads(line.raw)
        forms = [canonical_message(message)]
        content = message.get("content")
    except (NotJson, AttributeError, RecursionError):
        return None
    if isinstance(content, str) and "think" in content:
        forms.append(canonical_message({**message, "content": split_thinking(content)[1]}))
    for canonical in forms:
        if message_digest(parent, canonical) == line.id:
            new = to_new_message(
                message,
                canonical,
                0,
                produced=line.produced,
                backend=line.backend,
                finish_reason=line.finish_reason,
                partial=line.partial,
            )
            return replace(new, raw=line.raw, chars=line.chars)
    return None
