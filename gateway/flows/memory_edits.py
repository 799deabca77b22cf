"""The owner's hand over chapters, gists and the profile.

Each change is a version of its own, can be undone, and enters views at a fold.

Nothing here is judged: the words are the owner's. What a model wrote and a judge refused is not
the owner's by being brought back, and stays out. No function commits.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, select

from gateway.errors import BadRequest, Conflict, NotFound
from gateway.flows import ledger_edits, pins
from gateway.flows.debts import chapter_key
from gateway.flows.hand import Hand
from gateway.flows.papers import policies_of
from gateway.flows.unfit import check_fact, check_fit
from gateway.jobs import queue
from gateway.store import chapter_rows, documents, gist_rows, profile_edits
from gateway.store.attempts import attempts
from gateway.store.chapter_rows import ChapterRow, chapters, versions
from gateway.store.conversations import jobs
from gateway.store.gist_rows import GistRow, gists
from gateway.store.ledger_rows import Path
from gateway.store.memory_report import gist_id
from gateway.store.message_ids import message_ids
from gateway.store.profile import ProfileRow, rows_by_pk
from gateway.store.transcript import ConversationRow, conversations, node_by_pk
from gateway.store.wipes import tell_of_emptied
from policies.schema import Policy, PolicyFile

GIST_SLACK = 2
"""How many times what is asked of a summarizer an owner's gist may have in characters."""


# --- chapters ------------------------------------------------------------------------------------


def most_of_chapter(file: PolicyFile, model: str) -> int:
    """Characters of a chapter that its owner writes: what the stack of each of the model's views
    holds."""
    return min(policy.chapters.stack for policy in _policies(file, model))


def most_of_gist(file: PolicyFile, model: str) -> int:
    """The same of a gist: twice what a summarizer is asked for."""
    return GIST_SLACK * min(policy.gist.length for policy in _policies(file, model))


def _policies(file: PolicyFile, model: str) -> list[Policy]:
    return policies_of(file, model) or list(file.policies.values())


def edit_chapter(connection: Connection, hand: Hand, id: str, text: str) -> list[str]:
    """A chapter in the owner's words; an empty text deletes what it tells, and with it what models
    told beside it: returns the ids of the memories that go."""
    chapter = find_chapter(connection, hand.conversation, id)
    memories: list[str] = []
    if chapter.text != text:
        check_fit(connection, text, hand.now_ms, chapter_pk=chapter.pk)
        memories = _write(connection, hand, chapter, text)
    hand.finish(connection)
    return memories


def gists_telling(connection: Connection, hand: Hand, id: str) -> list[str]:
    """The ids of the gists that cover a chapter and are not empty: of each policy the one that
    covers most, on the newest branch where the chapter lies on it. What a chapter told they tell
    until they are edited or undone."""
    chapter = find_chapter(connection, hand.conversation, id)
    head_pk = hand.conversation.head_pk
    head = None if head_pk is None else Path(connection, node_by_pk(connection, head_pk))
    newest = {
        (row.policy, row.last_pk): row
        for row in gist_rows.all_gists(connection, hand.conversation.pk)
    }
    found: dict[str, tuple[tuple[bool, int], GistRow]] = {}
    for row in newest.values():
        path = Path(connection, node_by_pk(connection, row.last_pk))
        is_live = bool(row.text) and row.retired_ms is None
        if not is_live or not path.holds(chapter.last_pk, chapter.last_depth):
            continue
        rank = (head is not None and head.holds(row.last_pk, row.last_depth), row.last_depth)
        if row.policy not in found or found[row.policy][0] < rank:
            found[row.policy] = rank, row
    ids = message_ids(connection, (row.last_pk for _, row in found.values()))
    return [
        gist_id(hand.conversation.id, row.policy, ids[row.last_pk]) for _, row in found.values()
    ]


def undo_chapter(connection: Connection, hand: Hand, id: str, version: int | None) -> None:
    """The text before its owner's newest change, or that of a version; with it comes back what went
    when the chapter was deleted. Raises Conflict where none is, and for one that no view shows."""
    chapter = find_chapter(connection, hand.conversation, id)
    told = connection.execute(
        select(versions.c.version, versions.c.text, versions.c.origin, versions.c.created_ms)
        .where(versions.c.chapter_pk == chapter.pk)
        .order_by(versions.c.version)
    ).all()
    text = _earlier(told, version, "chapter")
    check_fit(connection, text, hand.now_ms, chapter_pk=chapter.pk)
    if text != chapter.text:
        _write(connection, hand, chapter, text)
    if text and not chapter.text:
        deleted_ms = _steps(told)[-1].created_ms
        ledger_edits.restore_entries_of(connection, hand, chapter.pk, deleted_ms)
        pins.restore_chapter(connection, hand, chapter, text)
    hand.finish(connection)


def resummarize(connection: Connection, hand: Hand, id: str, policy: str) -> str:
    """Ask summarizers for a chapter again, now; the id of the job.

    Failing changes nothing, and what the owner writes meanwhile stays.
    """
    chapter = find_chapter(connection, hand.conversation, id)
    if (waiting := _waiting_job(connection, chapter)) is not None:
        queue.hurry(connection, waiting, {}, now_ms=hand.now_ms)
        return waiting
    key = f"{chapter_key(chapter.pk)}:again:{chapter.version or 0}:{hand.now_ms}"
    queue.enqueue(
        connection,
        key=key,
        kind="chapter",
        conversation_pk=hand.conversation.pk,
        policy=policy,
        payload={"chapter": chapter.pk, "again": chapter.version or 0},
        run_at_ms=hand.now_ms,
        backend=None,
        now_ms=hand.now_ms,
    )
    return key


def _waiting_job(connection: Connection, chapter: ChapterRow) -> str | None:
    """The work on this chapter that waits or runs already and will write it."""
    first = chapter_key(chapter.pk)
    rows = connection.execute(
        select(jobs.c.key).where(
            jobs.c.key.startswith(first),
            jobs.c.state.in_(("queued", "leased")),
        )
    ).scalars()
    writes = chapter.origin in (None, "stand-in")
    return next(
        (key for key in rows if (key == first and writes) or key.startswith(f"{first}:again:")),
        None,
    )


def last_policy(connection: Connection, conversation: ConversationRow) -> str | None:
    """The policy of the conversation's newest turn; None where it had none."""
    return connection.execute(
        select(attempts.c.policy)
        .where(attempts.c.conversation_pk == conversation.pk)
        .order_by(attempts.c.pk.desc())
        .limit(1)
    ).scalar()


def find_chapter(connection: Connection, conversation: ConversationRow, id: str) -> ChapterRow:
    """By its id, within its conversation. Raises NotFound."""
    pk = connection.execute(
        select(chapters.c.pk).where(
            chapters.c.conversation_pk == conversation.pk, chapters.c.id == id
        )
    ).scalar()
    row = None if pk is None else chapter_rows.chapter_by_pk(connection, conversation.pk, pk)
    if row is None:
        raise NotFound("There is no chapter of this id in the conversation.")
    return row


def _write(connection: Connection, hand: Hand, chapter: ChapterRow, text: str) -> list[str]:
    """A version in the owner's name; the ids of the memories that go with an empty one."""
    pins.follow_chapter(connection, hand, chapter, text)
    chapter_rows.add_version(
        connection,
        hand.conversation.pk,
        chapter.pk,
        text=text,
        origin="owner",
        backend=None,
        prompt=None,
        now_ms=hand.now_ms,
    )
    return [] if text else ledger_edits.delete_entries_of(connection, hand, chapter.pk)


def _earlier(told: Sequence[Row[Any]], version: int | None, what: str) -> str:
    """The text to go back to. What an owner wrote that stood there before is a step back, not a
    change: who undoes twice goes back two changes. What others wrote one after the other is no
    change of its owner's to undo; that a text of theirs took the place of the owner's is one."""
    if version is not None:
        found = next((row.text for row in told if row.version == version), None)
        if found is None:
            raise BadRequest(f"The {what} has no version {version}.", param="version")
        return str(found)
    steps = _steps(told)
    if len(steps) < 2:
        raise Conflict(f"The {what} has no earlier text to go back to.")
    if all(step.origin != "owner" for step in steps[-2:]):
        raise Conflict(
            f"Its owner changed nothing of the {what} that stands: there is nothing to undo. To go "
            "back to an earlier text of it, name its `version`."
        )
    return str(steps[-2].text)


def _steps(told: Sequence[Row[Any]]) -> list[Row[Any]]:
    """The versions that stand, the newest last: without those that went back, and what they took
    back."""
    steps: list[Row[Any]] = []
    for row in told:
        if row.origin == "owner" and len(steps) > 1 and steps[-2].text == row.text:
            steps.pop()
        else:
            steps.append(row)
    return steps


# --- gists ---------------------------------------------------------------------------------------


def edit_gist(connection: Connection, hand: Hand, id: str, text: str) -> None:
    """A gist in the owner's words; an empty text deletes what it tells."""
    rows = _gist_versions(connection, hand.conversation, id)
    if rows[-1].text != text:
        check_fit(connection, text, hand.now_ms, gist_pk=rows[-1].pk)
        _write_gist(connection, hand, rows[-1], text)
    hand.finish(connection)


def undo_gist(
    connection: Connection, hand: Hand, id: str, version: int | None, *, major: bool
) -> None:
    """The text before the newest edit, or that of a version. major: the major GC itself is undone:
    later folds show its chapters again, until the stack has grown by another one. Raises Conflict
    where there is nothing to undo: without `major` the major GC is none of it."""
    if major and version is not None:
        raise BadRequest(
            "`version` names a text to go back to, and `major` undoes the whole gist: name one.",
            param="version",
        )
    rows = _gist_versions(connection, hand.conversation, id)
    newest = rows[-1]
    if newest.retired_ms is not None:
        raise Conflict("This gist is undone already.")
    where = newest.policy, newest.last_pk
    if major:
        gist_rows.retire(connection, hand.conversation.pk, *where, hand.now_ms)
    else:
        text = _earlier_gist(rows, version)
        check_fit(connection, text, hand.now_ms, gist_pk=newest.pk)
        if text != newest.text:
            _write_gist(connection, hand, newest, text)
        if text and not newest.text:
            pins.restore_gist(connection, hand, *where, text)
    hand.finish(connection)


def _earlier_gist(rows: Sequence[Row[Any]], version: int | None) -> str:
    try:
        return _earlier(rows, version, "gist")
    except Conflict as error:
        raise Conflict(
            f"{error.message} To undo the major GC itself, so that its chapters are shown again, "
            'say {"major": true}.'
        ) from None


def find_gist(connection: Connection, conversation: ConversationRow, id: str) -> GistRow:
    """The newest version of a gist, by its id. Raises NotFound."""
    pk = int(_gist_versions(connection, conversation, id)[-1].pk)
    found = gist_rows.gist_by_pk(connection, pk)
    assert found is not None, "it was read a line above"
    return found


def _gist_versions(
    connection: Connection, conversation: ConversationRow, id: str
) -> list[Row[Any]]:
    """Every version of a gist, oldest first. Raises NotFound."""
    rows = connection.execute(
        select(*gists.c).where(gists.c.conversation_pk == conversation.pk).order_by(gists.c.version)
    ).all()
    ids = message_ids(connection, (row.last_pk for row in rows))
    found = [row for row in rows if gist_id(conversation.id, row.policy, ids[row.last_pk]) == id]
    if not found:
        raise NotFound("There is no gist of this id in the conversation.")
    return list(found)


def _write_gist(connection: Connection, hand: Hand, newest: Row[Any], text: str) -> None:
    pins.follow_gist(connection, hand, newest.policy, newest.last_pk, text)
    gist_rows.add_gist(
        connection,
        hand.conversation.pk,
        policy=newest.policy,
        last_pk=newest.last_pk,
        last_depth=newest.last_depth,
        sources=json.loads(newest.sources),
        text=text,
        origin="owner",
        backend=None,
        prompt=None,
        now_ms=hand.now_ms,
    )


# --- the profile ---------------------------------------------------------------------------------


def announce_fact(connection: Connection, fact: ProfileRow, *, now: bool) -> None:
    """A fact of the profile is new or changed. now: each of the owner's conversations shows it at
    its next user message, not at its next fold."""
    if now:
        owned = select(conversations.c.pk).where(conversations.c.owner_pk == fact.owner_pk)
        documents.ask_anew(connection, list(connection.execute(owned).scalars()))


def edit_fact(
    connection: Connection,
    fact: ProfileRow,
    text: str,
    about: str | None,
    now_ms: int,
    *,
    now: bool,
) -> ProfileRow:
    """A fact of the profile in other words, and with it the same fact in the ledger of the
    conversation that taught it; in its own words it stays what it is. now: as in
    `announce_fact`."""
    if (text, about) == (fact.text, fact.about):
        return fact
    new = profile_edits.edit_fact(connection, fact, text, about, now_ms)
    check_fact(connection, new)
    ledger_edits.reword_told(connection, fact, new, now_ms)
    announce_fact(connection, new, now=now)
    return new


def undo_fact(connection: Connection, fact: ProfileRow, now_ms: int, *, now: bool) -> ProfileRow:
    """The words that a fact took the place of, in its place again. Raises Conflict where there are
    none, their text is gone, or no view would show it."""
    back = profile_edits.undo_edit(connection, fact, now_ms)
    check_fact(connection, back)
    ledger_edits.reword_told(connection, fact, back, now_ms)
    announce_fact(connection, back, now=now)
    return back


def delete_fact(connection: Connection, fact: ProfileRow, now_ms: int, *, now: bool) -> None:
    """Delete a fact of the profile, and the same fact in the ledgers of the conversations that
    taught it. Whoever calls it lets its program forget the memories of views.

    Views show it until they fold. now: its text is gone at once, out of them too, and they show
    their memory anew at their next user message.
    """
    owned = select(conversations.c.pk).where(conversations.c.owner_pk == fact.owner_pk)
    pks = profile_edits.chain_of(connection, fact)
    if now:
        documents.ask_anew_showing(connection, owned, "profile", pks)
    for row in rows_by_pk(connection, pks):
        if ledger_edits.delete_told(connection, row, now_ms) and now and row.conversation_pk:
            documents.ask_anew(connection, [row.conversation_pk])
    profile_edits.delete_fact(connection, fact, now_ms, at_once=now)
    tell_of_emptied(connection, now_ms)
