"""The lines of an export stored again: the same rows under new numbers. No function commits.

Every message is known by its digest, so a text that was changed on the way is refused, and with it
the whole conversation. Rows that other rows name must come before them, as an export writes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy import Connection, insert, select, update

from gateway.errors import BadRequest, Conflict
from gateway.store.attempts import attempts
from gateway.store.chapter_rows import chapters, versions
from gateway.store.documents import documents
from gateway.store.fold_rows import Shown, folds
from gateway.store.gist_rows import gists
from gateway.store.ledger_rows import entries, marks
from gateway.store.notes import notes
from gateway.store.profile import profile_facts
from gateway.store.quarantine import quarantine
from gateway.store.rows import new_pk
from gateway.store.token_ratios import ratios
from gateway.store.transcript import (
    ConversationRow,
    NewMessage,
    Node,
    aliases,
    append_messages,
    conversations,
    ensure_system_text,
    message_digest,
)
from gateway.wire import export_lines as wire
from gateway.wire.json_text import dumps

BOOT = "import"
"""What stands in `boot` of attempts that another program made."""

Numbered = Iterable[tuple[int, wire.Line]]
"""Lines with the numbers that they have in their file, from 1."""

Read = Callable[[wire.MessageLine, str], NewMessage | None]
"""A message as the store takes it, from its line and its parent's id; None where its digest is not
that of its text."""

K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True)
class Facts:
    """An owner's facts while a file is read, by their ids. A fact may be shown before its own
    conversation comes: until then it stands aside. behind: by row number what each takes the place
    of, linked once all are there."""

    owner_pk: int
    pks: dict[str, int] = field(default_factory=dict)
    aside: set[str] = field(default_factory=set)
    behind: dict[int, str] = field(default_factory=dict)

    def take(
        self, connection: Connection, line: wire.MemoryLine, conversation_pk: int | None
    ) -> int:
        """The row of a fact. conversation_pk: where it was learned; None: its owner wrote it."""
        is_own = line.learned_here is not False
        pk = self.pks.get(line.id) or self._find(connection, line.id)
        values = {
            "conversation_pk": conversation_pk if line.learned_here else None,
            "text": line.text,
            "about": line.about,
            "source": line.source,
            "origin": line.origin,
            "state": line.state if is_own else "replaced",
            "created_ms": line.created_at,
            "ended_ms": line.ended_at if is_own or line.ended_at else line.created_at,
        }
        if pk is None:
            row = insert(profile_facts).values(id=line.id, owner_pk=self.owner_pk, **values)
            pk = new_pk(connection.execute(row))
            if not is_own:
                self.aside.add(line.id)
        elif is_own and line.id in self.aside:
            which = profile_facts.c.pk == pk
            connection.execute(update(profile_facts).where(which).values(**values))
            self.aside.remove(line.id)
        self.pks[line.id] = pk
        if line.replaces is not None and is_own:
            self.behind[pk] = line.replaces
        return pk

    def _find(self, connection: Connection, id: str) -> int | None:
        row = connection.execute(
            select(profile_facts.c.pk, profile_facts.c.owner_pk).where(profile_facts.c.id == id)
        ).first()
        if row is not None and row.owner_pk != self.owner_pk:
            raise Conflict(f"The memory {id} is here already, under another owner.")
        return None if row is None else int(row.pk)

    def link(self, connection: Connection) -> None:
        """Let each fact take the place of what it took the place of."""
        for pk, id in self.behind.items():
            if id in self.pks:
                row = update(profile_facts).where(profile_facts.c.pk == pk)
                connection.execute(row.values(replaces_pk=self.pks[id]))


def import_conversation(
    connection: Connection, lines: Numbered, facts: Facts, read: Read
) -> ConversationRow:
    """Store one conversation for an owner; its own line comes first.

    Raises Conflict where it is here already or a name of it is taken, BadRequest for a line that
    does not fit those before it: nothing is stored then, once the caller rolls back.
    """
    numbered = iter(lines)
    _, first = next(numbered)
    assert isinstance(first, wire.ConversationLine)
    reader = _Reader(connection, _begin(connection, facts.owner_pk, first), facts, read)
    for number, line in numbered:
        try:
            reader.take(line)
        except _Misfit as misfit:
            raise BadRequest(f"Line {number:,} {misfit}.") from None
    reader.finish(first)
    return reader.conversation


class _Misfit(Exception):
    """What is wrong with a line, in words behind its number."""


def _begin(connection: Connection, owner_pk: int, line: wire.ConversationLine) -> ConversationRow:
    if connection.execute(select(conversations.c.pk).where(conversations.c.id == line.id)).first():
        raise Conflict(f"{line.id} is here already; delete it first, or leave it as it is.")
    row = insert(conversations).values(
        id=line.id,
        owner_pk=owner_pk,
        model=line.model,
        backend=line.backend,
        route=line.route,
        private=line.private,
        archived=line.archived,
        resends=line.resends,
        noted=line.noted,
        created_ms=line.created_at,
        touched_ms=line.updated_at,
    )
    pk = new_pk(connection.execute(row))
    taken = set(
        connection.execute(
            select(aliases.c.alias).where(
                aliases.c.owner_pk == owner_pk, aliases.c.alias.in_(line.aliases)
            )
        ).scalars()
    )
    if taken:
        raise Conflict(
            f"The name {min(taken)!r} of {line.id} is another conversation's here already."
        )
    for alias in dict.fromkeys(line.aliases):
        own = {"owner_pk": owner_pk, "alias": alias, "conversation_pk": pk}
        connection.execute(insert(aliases).values(**own))
    return ConversationRow(
        pk=pk,
        id=line.id,
        owner_pk=owner_pk,
        head_pk=None,
        model=line.model,
        created_ms=line.created_at,
        touched_ms=line.updated_at,
        archived=line.archived,
    )


class _Reader:
    """Stores the lines of one conversation, and knows by which numbers its rows go now."""

    def __init__(
        self, connection: Connection, conversation: ConversationRow, facts: Facts, read: Read
    ) -> None:
        self._connection = connection
        self.conversation = conversation
        self._facts = facts
        self._read = read
        self._nodes: dict[str, Node] = {}
        self._systems: dict[int, int] = {}
        self._chapters: dict[str, int] = {}
        self._versions: dict[wire.Version, int] = {}
        self._gists: dict[wire.GistName, int] = {}
        self._entries: dict[str, int] = {}
        self._documents: dict[str, int] = {}
        self._folds: dict[int, int] = {0: 0}
        self._takes: Mapping[type, Callable[[Any], None]] = {
            wire.MessageLine: self._message,
            wire.SystemLine: self._system,
            wire.ChapterLine: self._chapter,
            wire.GistLine: self._gist,
            wire.EntryLine: self._entry,
            wire.MarkLine: self._mark,
            wire.MemoryLine: self._memory,
            wire.DocumentLine: self._document,
            wire.FoldLine: self._fold,
            wire.NoteLine: self._note,
            wire.AttemptLine: self._attempt,
            wire.QuarantineLine: self._quarantine,
            wire.RatioLine: self._ratio,
        }

    def take(self, line: wire.Line) -> None:
        self._takes[type(line)](line)

    def finish(self, line: wire.ConversationLine) -> None:
        """Where it stands: its newest message, and since which fold its memory is asked anew."""
        head = None if line.head is None else self._nodes.get(line.head)
        if line.head is not None and head is None:
            raise BadRequest(f"The newest message of {line.id} is not among its lines.")
        renew = None if line.renew_after is None else self._folds.get(line.renew_after, 0)
        which = conversations.c.id == line.id
        values = {"head_pk": None if head is None else head.pk, "renew_after": renew}
        self._connection.execute(update(conversations).where(which).values(**values))

    def _add(self, table: Any, **values: Any) -> int:
        own = {"conversation_pk": self.conversation.pk, **values}
        return new_pk(self._connection.execute(insert(table).values(**own)))

    # --- messages --------------------------------------------------------------------------------

    def _message(self, line: wire.MessageLine) -> None:
        parent = None if line.parent is None else _find(self._nodes, line.parent, "message")
        above = self.conversation.id if parent is None else parent.id
        new = self._read(line, above)
        if new is None or message_digest(above, new.canonical) != line.id:
            raise _Misfit("holds a message whose digest is not that of its text")
        (node,) = append_messages(
            self._connection, self.conversation, parent, [new], line.created_at
        )
        self._nodes[node.id] = node

    def _system(self, line: wire.SystemLine) -> None:
        self._systems[line.number] = ensure_system_text(
            self._connection, self.conversation.pk, dumps(line.messages), line.created_at
        )

    def _attempt(self, line: wire.AttemptLine) -> None:
        plain = line.model_dump(
            exclude={"type", "asked", "reply", "system", "fold", "started_at", "ended_at"}
        )
        # A call that was under way then is not under way here.
        state = "cancelled" if line.state == "running" else line.state
        self._add(
            attempts,
            **{**plain, "state": state},
            asked_pk=self._node(line.asked).pk,
            reply_pk=self._node_pk(line.reply),
            system_pk=None if line.system is None else _find(self._systems, line.system, "system"),
            fold_pk=None if line.fold is None else _find(self._folds, line.fold, "fold"),
            boot=BOOT,
            started_ms=line.started_at,
            ended_ms=line.ended_at,
        )

    # --- memory ----------------------------------------------------------------------------------

    def _chapter(self, line: wire.ChapterLine) -> None:
        first, last = self._node(line.first), self._node(line.last)
        pk = self._chapters[line.id] = self._add(
            chapters,
            id=line.id,
            first_pk=first.pk,
            last_pk=last.pk,
            first_depth=first.depth,
            last_depth=last.depth,
            source_chars=line.source_chars,
            created_ms=line.created_at,
        )
        for version in line.versions:
            plain = version.model_dump(exclude={"created_at"})
            self._versions[line.id, version.version] = self._add(
                versions, chapter_pk=pk, created_ms=version.created_at, **plain
            )

    def _gist(self, line: wire.GistLine) -> None:
        last = self._node(line.last)
        plain = line.model_dump(exclude={"type", "last", "sources", "retired_at", "created_at"})
        self._gists[line.policy, line.last, line.version] = self._add(
            gists,
            **plain,
            last_pk=last.pk,
            last_depth=last.depth,
            sources=json.dumps([_find(self._versions, one, "version") for one in line.sources]),
            retired_ms=line.retired_at,
            created_ms=line.created_at,
        )

    def _entry(self, line: wire.EntryLine) -> None:
        last = self._node(line.last)
        plain = line.model_dump(
            exclude={"type", "chapter", "told_by", "gist", "source", "last", "created_at"}
        )
        self._entries[line.id] = self._add(
            entries,
            **plain,
            chapter_pk=_found(self._chapters, line.chapter, "chapter"),
            version_pk=_found(self._versions, line.told_by, "version"),
            gist_pk=_found(self._gists, line.gist, "gist"),
            source_pk=self._node_pk(line.source),
            last_pk=last.pk,
            last_depth=last.depth,
            created_ms=line.created_at,
        )

    def _mark(self, line: wire.MarkLine) -> None:
        last = None if line.last is None else self._node(line.last)
        self._add(
            marks,
            entry_pk=_find(self._entries, line.entry, "entry"),
            mark=line.mark,
            by_pk=_found(self._entries, line.by, "entry"),
            chapter_pk=_found(self._chapters, line.chapter, "chapter"),
            last_pk=None if last is None else last.pk,
            last_depth=None if last is None else last.depth,
            origin=line.origin,
            created_ms=line.created_at,
        )

    def _memory(self, line: wire.MemoryLine) -> None:
        self._facts.take(self._connection, line, self.conversation.pk)

    def _document(self, line: wire.DocumentLine) -> None:
        known = select(documents.c.pk).where(documents.c.id == line.id)
        pk = self._connection.execute(known).scalar()
        if pk is None:
            of_policy = line.policy is not None
            pk = self._add(
                documents,
                id=line.id,
                policy=line.policy,
                name=line.name,
                text=line.text,
                digest=line.digest,
                chars=len(line.text),
                created_ms=line.created_at,
                removed_ms=line.removed_at,
                **({"conversation_pk": None} if of_policy else {}),
            )
        self._documents[line.id] = int(pk)

    def _fold(self, line: wire.FoldLine) -> None:
        at = self._node(line.at)
        border = None if line.border is None else self._node(line.border)
        self._folds[line.number] = self._add(
            folds,
            policy=line.policy,
            at_pk=at.pk,
            at_depth=at.depth,
            border_pk=0 if border is None else border.pk,
            border_depth=0 if border is None else border.depth,
            border_cum=0 if border is None else border.cum_chars,
            kind=line.kind,
            gist_pk=_found(self._gists, line.gist, "gist"),
            memory=json.dumps([_find(self._versions, one, "version") for one in line.memory]),
            memory_chars=line.memory_chars,
            stand_ins=line.stand_ins,
            shown=self._shown(line),
            revision=line.revision,
            created_ms=line.created_at,
        )

    def _shown(self, line: wire.FoldLine) -> str | None:
        """What was gone already when it was exported is left out."""
        known: Mapping[str, Mapping[str, int]] = {
            "profile": self._facts.pks,
            "documents": self._documents,
        }
        told = {
            kind: tuple(
                _find(known.get(kind, self._entries), id, kind) for id in ids if id is not None
            )
            for kind, ids in (line.shown or {}).items()
        }
        return Shown(**told).to_json()

    def _note(self, line: wire.NoteLine) -> None:
        asked = self._node(line.asked)
        self._add(
            notes,
            policy=line.policy,
            fold_pk=_find(self._folds, line.fold, "fold"),
            asked_pk=asked.pk,
            asked_depth=asked.depth,
            kind=line.kind,
            body=json.dumps(self._renumbered(line.body)),
            chars=line.chars,
            created_ms=line.created_at,
        )

    def _renumbered(self, body: Any) -> Any:
        """A note with what it shows (ids in an export) by the numbers of today."""
        if not isinstance(body, dict) or "shown" not in body:
            return body
        return {**body, "shown": [self._node(str(id)).pk for id in body["shown"]]}

    def _quarantine(self, line: wire.QuarantineLine) -> None:
        self._add(
            quarantine,
            chapter_pk=_found(self._chapters, line.chapter, "chapter"),
            kind=line.kind,
            backend=line.backend,
            reasons=json.dumps(line.reasons),
            text=line.text,
            finish_reason=line.finish_reason,
            created_ms=line.created_at,
        )

    def _ratio(self, line: wire.RatioLine) -> None:
        values = {"backend": line.backend, "ratio": line.chars_per_token}
        own = {"conversation_pk": self.conversation.pk, **values}
        self._connection.execute(insert(ratios).values(**own))

    def _node(self, id: str) -> Node:
        return _find(self._nodes, id, "message")

    def _node_pk(self, id: str | None) -> int | None:
        return None if id is None else self._node(id).pk


def _find(known: Mapping[K, V], key: K, what: str) -> V:
    if key not in known:
        raise _Misfit(f"names a {what} that no line before it has")
    return known[key]


def _found(known: Mapping[K, V], key: K | None, what: str) -> V | None:
    return None if key is None else _find(known, key, what)
