"""The same laws while the ledger, the profile, documents and gists change under the conversations,
by chapters and by their owners' hands."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from sqlalchemy import Connection

from gateway.store import chapter_rows, documents, gist_rows, ledger, profile_edits, transcript
from gateway.wire.json_text import loads
from tests.gateway.flows.test_laws import Client, Laws

SHARE = 150
"""A tenth of the 1,500 characters that a fold leaves."""


class MemoryLaws(Laws):
    """What is told of a conversation carries its row number, of an owner the owner's name."""

    @initialize()
    def nothing_is_told_yet(self) -> None:
        self.told = 0

    def _next(self) -> int:
        self.told += 1
        return self.told

    @precondition(lambda self: self.versions)
    @rule(
        data=st.data(),
        kind=st.sampled_from(["thread", "thread", "thread", "fact", "quote"]),
        pinned=st.booleans(),
    )
    def a_chapter_tells(self, data: st.DataObject, kind: Any, pinned: bool) -> None:
        version_pk = data.draw(st.sampled_from(sorted(self.versions)))

        def tell(connection: Connection) -> None:
            (version,) = chapter_rows.versions_by_pk(connection, [version_pk])
            pk = transcript.node_by_pk(connection, version.last_pk).pk
            conversation = self._conversation_of(pk)
            entry = ledger.add_entry(
                connection,
                conversation,
                kind=kind,
                text=f"{kind} {self._next()} of chat {conversation}.",
                last_pk=version.last_pk,
                last_depth=version.last_depth,
                chapter_pk=version.chapter_pk,
                origin="model",
                now_ms=self.house.clock.ms,
            )
            if pinned and kind != "thread":
                self._mark(connection, conversation, entry.pk, "pinned")

        self.house.store.writing(tell)

    def _conversation_of(self, message_pk: int) -> int:
        return int(
            self.house.one("SELECT conversation_pk FROM messages WHERE pk = :pk", pk=message_pk)
        )

    def _mark(self, connection: Connection, conversation: int, entry_pk: int, mark: Any) -> None:
        ledger.add_mark(
            connection,
            conversation,
            entry_pk,
            mark,
            origin="owner",
            now_ms=self.house.clock.ms,
        )

    @rule(
        data=st.data(),
        mark=st.sampled_from(["closed", "reopened", "pinned", "unpinned", "deleted", "undeleted"]),
        now=st.booleans(),
    )
    def an_entry_is_marked(self, data: st.DataObject, mark: str, now: bool) -> None:
        rows = self.house.rows("SELECT pk, conversation_pk FROM ledger_entries ORDER BY pk")
        if not rows:
            return
        pk, conversation = data.draw(st.sampled_from(rows))

        def write(connection: Connection) -> None:
            self._mark(connection, conversation, pk, mark)
            if now:
                documents.ask_anew(connection, [conversation])

        self.house.store.writing(write)

    @rule(owner=st.sampled_from(["ann", "bob"]), size=st.integers(0, 60), now=st.booleans())
    def an_owner_tells(self, owner: str, size: int, now: bool) -> None:
        def write(connection: Connection) -> None:
            pk = transcript.ensure_owner(connection, owner, "", self.house.clock.ms)
            said = f"fact {self._next()} of {owner} " + "so " * (size // 3)
            profile_edits.add_fact(connection, pk, said.strip(), None, self.house.clock.ms)
            if now:
                chats = connection.exec_driver_sql(
                    "SELECT pk FROM conversations WHERE owner_pk = ?", (pk,)
                )
                documents.ask_anew(connection, list(chats.scalars()))

        self.house.store.writing(write)

    @rule(data=st.data(), size=st.integers(1, 300))
    def a_document_is_put(self, data: st.DataObject, size: int) -> None:
        chats = [pk for (pk,) in self.house.rows("SELECT pk FROM conversations ORDER BY pk")]
        if chats:
            pk = data.draw(st.sampled_from(chats))
            text = f"document of chat {pk}. " + "x" * size
            self.house.store.writing(
                documents.put_document, pk, f"d{size % 3}", text, self.house.clock.ms
            )

    @rule(data=st.data(), now=st.booleans())
    def a_gist_is_undone(self, data: st.DataObject, now: bool) -> None:
        rows = self.house.rows(
            "SELECT DISTINCT conversation_pk, last_pk FROM gists WHERE retired_ms IS NULL"
            " ORDER BY last_pk"
        )
        if not rows:
            return
        conversation, last_pk = data.draw(st.sampled_from(rows))

        def write(connection: Connection) -> None:
            gist_rows.retire(connection, conversation, "small", last_pk, self.house.clock.ms)
            if now:
                documents.ask_anew(connection, [conversation])

        self.house.store.writing(write)

    def _check_own(self, client: Client, heard: tuple[bytes, ...]) -> None:
        super()._check_own(client, heard)
        everything = b"".join(heard)
        stranger = "bob" if client.owner == "ann" else "ann"
        assert f" of {stranger} ".encode() not in everything
        assert f" of {stranger}\\n".encode() not in everything
        chats = dict(
            self.house.rows(
                "SELECT c.id, c.pk FROM conversations c JOIN owners o ON o.pk = c.owner_pk"
            )
        )
        mine = self.house.one("SELECT conversation_pk FROM attempts ORDER BY pk DESC LIMIT 1")
        for pk in set(chats.values()) - {mine}:
            assert f"of chat {pk}.".encode() not in everything

    def _is_whole(self, fold: int | None) -> bool:
        """A document that was replaced goes with the last view that shows it."""
        (named,) = self.house.rows("SELECT shown FROM folds WHERE pk = :pk", pk=fold) or [(None,)]
        pks = loads(named[0]).get("documents", []) if named[0] else []
        there = {pk for (pk,) in self.house.rows("SELECT pk FROM documents")}
        return there.issuperset(pks)

    @invariant()
    def what_stands_beside_is_bounded(self) -> None:
        """Profile and ledger a tenth each; nothing that was never told; threads that were open."""
        for pk, shown in self.house.rows("SELECT pk, shown FROM folds WHERE shown IS NOT NULL"):
            told = loads(shown)
            assert set(told) <= {"profile", "documents", "pins", "open", "closed"}
            numbers = [n for kind in ("pins", "open", "closed") for n in told.get(kind, ())]
            texts = self.house.rows(
                "SELECT text FROM ledger_entries WHERE pk IN"
                f" ({', '.join(map(str, numbers)) or 'NULL'})"
            )
            assert len(texts) == len(set(numbers)), f"fold {pk} shows an entry twice"
            assert sum(len(text) for (text,) in texts) <= SHARE
            facts = told.get("profile", ())
            known = self.house.rows(
                "SELECT text FROM profile_facts WHERE pk IN"
                f" ({', '.join(map(str, facts)) or 'NULL'})"
            )
            assert sum(len(text) for (text,) in known) <= SHARE


MemoryLaws.TestCase.settings = settings(settings.default, max_examples=8, stateful_step_count=30)
TestMemoryLaws = MemoryLaws.TestCase
