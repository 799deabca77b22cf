"""A chapter's text and what is told beside it, stored as one. No function commits."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from gateway.flows.rounds import Draft
from gateway.prompts.summary import PROMPT_VERSION
from gateway.store import chapter_rows, profile_learning
from gateway.store.chapter_entries import add_entries
from gateway.store.origins import owner_of
from gateway.store.profile_learning import Told


def store_chapter(
    connection: Connection,
    conversation_pk: int,
    chapter_pk: int,
    draft: Draft,
    *,
    pks: Sequence[int],
    learns: bool,
    now_ms: int,
) -> None:
    """A model's new version of a chapter, its entries in the ledger, and the owner's facts in the
    profile. pks: the messages of its span; learns: the policy wants the profile to grow."""
    version_pk = chapter_rows.add_version(
        connection,
        conversation_pk,
        chapter_pk,
        text=draft.text,
        origin="model",
        backend=draft.backend,
        prompt=PROMPT_VERSION,
        now_ms=now_ms,
        took_ms=draft.took_ms,
    )
    chapter = chapter_rows.chapter_by_pk(connection, conversation_pk, chapter_pk)
    if chapter is None:
        raise LookupError(f"chapter {chapter_pk} is not in the database")
    add_entries(
        connection, conversation_pk, chapter, version_pk, draft.entries, sources=pks, now_ms=now_ms
    )
    owner_pk = owner_of(connection, conversation_pk)
    facts = draft.entries.facts
    if learns and facts and owner_pk is not None:
        told = [Told(fact.text, fact.about or None, pks[fact.line]) for fact in facts]
        profile_learning.learn(connection, owner_pk, conversation_pk, told, span=pks, now_ms=now_ms)
