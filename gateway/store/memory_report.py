"""The memory of a conversation as its owner reads it: everything on every branch, and whether it
lies on the path that is looked at. Every function takes a connection; none commits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

from sqlalchemy import Connection, select

from gateway.clock import iso
from gateway.store import chapter_rows, documents, fold_rows, gist_rows, ledger, notes, profile
from gateway.store.attempts import attempts
from gateway.store.chapter_rows import ChapterRow, versions
from gateway.store.conversations import jobs, render_job
from gateway.store.fold_rows import FoldRow, folds
from gateway.store.gist_rows import gists
from gateway.store.ledger_report import pins_of_chapters, pins_of_gists, read_ledger
from gateway.store.ledger_rows import Path
from gateway.store.message_ids import message_ids
from gateway.store.moves import find_progress
from gateway.store.profile import source_content
from gateway.store.profile_report import describe_facts
from gateway.store.quarantine import quarantine
from gateway.store.transcript import ConversationRow, Node, messages, node_by_pk
from gateway.wire.json_text import load_object

Line = dict[str, Any]


def read_memory(
    connection: Connection,
    conversation: ConversationRow,
    *,
    default_policy: str | None,
    head: Node | None = None,
) -> Line:
    """What the memory of a conversation holds, on all its branches, each policy's view of one of
    them, and where it lives.

    head: the end of the branch that is looked at, None: of the newest. on_path says of each part
    whether it holds there: what an edit or a branch left behind does not. default_policy is shown
    where no turn tells which policy it had. migration: of the backend that its next turn may go to,
    null where it waits for none.
    """
    if head is None and conversation.head_pk is not None:
        head = node_by_pk(connection, conversation.head_pk)
    reader = _Reader(connection, conversation, head)
    progress = find_progress(connection, conversation)
    views = reader.views(default_policy)
    return {
        "backend": conversation.backend,
        "route": conversation.route,
        "migration": None if progress is None else progress.as_json(),
        "head": None if head is None else head.id,
        "chapters": reader.chapters(),
        "gists": reader.gists(),
        **read_ledger(connection, conversation, head),
        "profile": reader.profile(),
        "documents": reader.documents(),
        "quarantine": reader.quarantine(),
        "views": views,
        "jobs": reader.jobs(),
    }


def gist_id(conversation_id: str, policy: str, last: str) -> str:
    """The id of a gist with all its versions: what it covers up to the message `last`, of one
    policy."""
    named = "\x00".join((conversation_id, policy, last))
    return f"gist_{blake2b(named.encode(), digest_size=8).hexdigest()}"


class _Reader:
    """The parts of one memory, seen from one head."""

    def __init__(
        self, connection: Connection, conversation: ConversationRow, head: Node | None
    ) -> None:
        self._connection = connection
        self._conversation = conversation
        self._pk = conversation.pk
        self._head = head
        self._path = None if head is None else Path(connection, head)
        self._rows = chapter_rows.all_chapters(connection, self._pk)
        self._in_force: dict[str, FoldRow] = {}

    def _holds(self, pk: int, depth: int) -> bool:
        return self._path is not None and self._path.holds(pk, depth)

    def chapters(self) -> list[Line]:
        written = [row for row in self._rows if row.version_pk is not None]
        pks = (pk for row in written for pk in (row.first_pk, row.last_pk))
        ids = message_ids(self._connection, pks)
        told = self._versions()
        pins = pins_of_chapters(self._connection, self._pk)
        return [
            {
                "id": row.id,
                "first": ids[row.first_pk],
                "last": ids[row.last_pk],
                "source_chars": row.source_chars,
                "text": row.text,
                "origin": row.origin,
                "backend": row.backend,
                "created_at": iso(row.written_ms or row.created_ms),
                "version": row.version,
                "restored": _restored(told[row.pk]),
                "versions": told[row.pk],
                "pinned": row.pk in pins,
                "on_path": self._holds(row.last_pk, row.last_depth),
            }
            for row in written
        ]

    def _versions(self) -> dict[int, list[Line]]:
        rows = self._connection.execute(
            select(versions)
            .where(versions.c.conversation_pk == self._pk)
            .order_by(versions.c.chapter_pk, versions.c.version)
        )
        found: dict[int, list[Line]] = {}
        for row in rows:
            found.setdefault(row.chapter_pk, []).append(_version(row))
        return found

    def gists(self) -> list[Line]:
        rows = self._connection.execute(
            select(gists)
            .where(gists.c.conversation_pk == self._pk)
            .order_by(gists.c.last_depth, gists.c.policy, gists.c.last_pk, gists.c.version)
        ).all()
        ids = message_ids(self._connection, (row.last_pk for row in rows))
        found: dict[tuple[str, int], Line] = {}
        pins = pins_of_gists(self._connection, self._pk)
        for row in rows:
            known = found.get((row.policy, row.last_pk), {"versions": []})
            told = [*known["versions"], _version(row)]
            found[row.policy, row.last_pk] = {
                "id": gist_id(self._conversation.id, row.policy, ids[row.last_pk]),
                "policy": row.policy,
                "last": ids[row.last_pk],
                "text": row.text,
                "origin": row.origin,
                "backend": row.backend,
                "created_at": iso(row.created_ms),
                "version": row.version,
                "restored": _restored(told),
                "versions": told,
                "pinned": (row.policy, row.last_pk) in pins,
                "retired": row.retired_ms is not None,
                "on_path": self._holds(row.last_pk, row.last_depth),
            }
        return list(found.values())

    def profile(self) -> list[Line]:
        """The facts about the owner that views in force show."""
        shown = self._shown("profile")
        rows = profile.profile_by_pk(self._connection, sorted(shown))
        told = describe_facts(self._connection, rows)
        sources = self._own_sources([source_content(row) for row in rows])
        return [
            {
                **line,
                "views": shown[row.pk],
                "on_path": line["on_path"]
                if row.conversation_pk != self._pk
                else source_content(row) in sources,
            }
            for row, line in zip(rows, told, strict=True)
        ]

    def _own_sources(self, contents: Sequence[str | None]) -> set[str]:
        """Those of these messages that lie on the path, by their digests."""
        wanted = [content for content in contents if content is not None]
        rows = self._connection.execute(
            select(messages.c.pk, messages.c.depth, messages.c.content).where(
                messages.c.conversation_pk == self._pk, messages.c.content.in_(wanted)
            )
        )
        return {row.content for row in rows if self._holds(row.pk, row.depth)}

    def documents(self) -> list[Line]:
        """What views in force show, and what they are to show."""
        shown = self._shown("documents")
        rows = documents.documents_by_pk(self._connection, sorted(shown))
        coming = documents.list_documents(self._connection, self._pk)
        rows += [row for row in coming if row.pk not in shown]
        return [
            {
                "id": row.id,
                "name": row.name,
                "policy": row.policy,
                "chars": row.chars,
                "created_at": iso(row.created_ms),
                "removed": row.removed_ms is not None,
                "views": shown.get(row.pk, []),
                "on_path": True,
            }
            for row in rows
        ]

    def _shown(self, kind: str) -> dict[int, list[str]]:
        """The rows of a kind that views in force show, each with their policies."""
        found: dict[int, list[str]] = {}
        for policy, fold in sorted(self._in_force.items()):
            for pk in getattr(fold.shown, kind):
                found.setdefault(pk, []).append(policy)
        return found

    def quarantine(self) -> list[Line]:
        ends = {row.pk: row for row in self._rows}
        rows = self._connection.execute(
            select(quarantine)
            .where(quarantine.c.conversation_pk == self._pk)
            .order_by(quarantine.c.pk)
        )
        return [
            {
                "reasons": json.loads(row.reasons),
                "kind": row.kind,
                "backend": row.backend,
                "text": row.text,
                "finish_reason": row.finish_reason,
                "created_at": iso(row.created_ms),
                "chapter": None if (chapter := ends.get(row.chapter_pk)) is None else chapter.id,
                "on_path": chapter is None or self._holds(chapter.last_pk, chapter.last_depth),
            }
            for row in rows
        ]

    def jobs(self) -> list[Line]:
        ends = {row.pk: row for row in self._rows}
        rows = self._connection.execute(
            select(jobs).where(jobs.c.conversation_pk == self._pk).order_by(jobs.c.pk)
        )
        return [
            {**render_job(row), "on_path": self._is_wanted(load_object(row.payload) or {}, ends)}
            for row in rows
        ]

    def _is_wanted(self, payload: Line, chapters: dict[int, ChapterRow]) -> bool:
        """Whether a piece of work is about what lies on the path."""
        chapter = chapters.get(payload.get("chapter", 0))
        if chapter is not None:
            return self._holds(chapter.last_pk, chapter.last_depth)
        if "last_pk" in payload:
            return self._holds(payload["last_pk"], payload["last_depth"])
        return True

    def views(self, default_policy: str | None) -> list[Line]:
        if self._head is None:
            return []
        current = self._last_policy() or default_policy
        folded = self._connection.execute(
            select(folds.c.policy).where(folds.c.conversation_pk == self._pk).distinct()
        ).scalars()
        found = []
        for policy in sorted({*folded, *([current] if current else [])}):
            fold = fold_rows.deepest_fold(self._connection, self._pk, policy, self._head)
            if fold is not None:
                self._in_force[policy] = fold
            if fold is not None or policy == current:
                found.append(self._view(policy, fold, self._head))
        return found

    def _last_policy(self) -> str | None:
        return self._connection.execute(
            select(attempts.c.policy)
            .where(attempts.c.conversation_pk == self._pk)
            .order_by(attempts.c.pk.desc())
            .limit(1)
        ).scalar()

    def _view(self, policy: str, fold: FoldRow | None, head: Node) -> Line:
        border_depth = fold.border_depth if fold else 0
        gist = None
        if fold is not None and fold.gist_pk:
            gist = gist_rows.gist_by_pk(self._connection, fold.gist_pk)
        coming = chapter_rows.chapter_row(self._connection, self._pk, head, above=border_depth)
        border = None
        if fold is not None and border_depth:
            border = message_ids(self._connection, [fold.border_pk])[fold.border_pk]
        return {
            "policy": policy,
            "border": border,
            "gist": gist.text if gist else None,
            "memory_chars": fold.memory_chars if fold else 0,
            "verbatim_chars": head.cum_chars - (fold.border_cum if fold else 0),
            "notes_chars": notes.cost(
                self._connection, self._pk, policy, fold.pk if fold else None, head
            ),
            "debt_chars": sum(row.source_chars for row in coming if row.version_pk is None),
            "kind": fold.kind if fold else None,
            "pins": [] if fold is None else self._pins(fold),
            "on_path": True,
        }

    def _pins(self, fold: FoldRow) -> list[str]:
        """The ids of the pins that a fold shows beside its chapters."""
        return [row.id for row in ledger.entries_by_pk(self._connection, fold.shown.pins)]


def _restored(told: Sequence[Line]) -> int | None:
    """The version of a model (or a stand-in) whose text the newest, its owner's, brings back: who
    wrote it is told there."""
    newest = told[-1]
    if newest["origin"] != "owner" or not newest["text"]:
        return None
    of_others = (one for one in told if one["origin"] != "owner")
    return next((one["version"] for one in of_others if one["text"] == newest["text"]), None)


def _version(row: Any) -> Line:
    return {
        "version": row.version,
        "text": row.text,
        "origin": row.origin,
        "backend": row.backend,
        "prompt": row.prompt,
        "created_at": iso(row.created_ms),
    }


def find_one(lines: Iterable[Line], id: str) -> Line | None:
    """The part of this id."""
    return next((line for line in lines if line["id"] == id), None)
