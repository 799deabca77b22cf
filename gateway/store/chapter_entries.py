"""What a chapter's text tells beside its prose, written with it. No function commits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from gateway.store import ledger
from gateway.store.chapter_rows import ChapterRow, chapters_by_pk
from gateway.store.ledger_rows import BY_OWNER, EntryRow, EntryState, MarkName, MarkRow, Path
from gateway.store.transcript import node_by_pk
from policies.ledger.additions import Known, New, plan_additions
from policies.ledger.deletions import Deleted, without_deleted
from policies.ledger.values import Entries

_UNDONE: dict[str, MarkName] = {"closed": "reopened", "superseded": "restored"}


@dataclass(frozen=True, slots=True)
class _Writing:
    """One chapter version whose entries are written."""

    connection: Connection
    conversation_pk: int
    chapter: ChapterRow
    version_pk: int
    sources: Sequence[int]
    now_ms: int

    @property
    def at(self) -> tuple[int, int]:
        return self.chapter.last_pk, self.chapter.last_depth

    def add(self, new: New) -> EntryRow:
        return ledger.add_entry(
            self.connection,
            self.conversation_pk,
            kind=new.kind,
            text=new.text,
            about=new.about or None,
            who=new.who or None,
            target=new.target or None,
            truth=new.truth,
            chapter_pk=self.chapter.pk,
            version_pk=self.version_pk,
            source_pk=self.sources[new.line],
            last_pk=self.chapter.last_pk,
            last_depth=self.chapter.last_depth,
            origin="model",
            now_ms=self.now_ms,
        )

    def mark(self, entry_pk: int, mark: MarkName, origin: str, by_pk: int | None = None) -> None:
        ledger.add_mark(
            self.connection,
            self.conversation_pk,
            entry_pk,
            mark,
            by_pk=by_pk,
            chapter_pk=self.chapter.pk,
            at=self.at,
            origin=origin,
            now_ms=self.now_ms,
        )

    def repeat(self, mark: MarkRow, name: MarkName) -> None:
        """The same mark once more, so that it is newer than what was written since."""
        assert mark.last_pk is not None and mark.last_depth is not None
        ledger.add_mark(
            self.connection,
            self.conversation_pk,
            mark.entry_pk,
            name,
            by_pk=mark.by_pk,
            chapter_pk=mark.chapter_pk,
            at=(mark.last_pk, mark.last_depth),
            origin=mark.origin,
            now_ms=self.now_ms,
        )


def add_entries(
    connection: Connection,
    conversation_pk: int,
    chapter: ChapterRow,
    version_pk: int,
    entries: Entries,
    *,
    sources: Sequence[int],
    now_ms: int,
) -> list[EntryRow]:
    """Write what a model's new text of a chapter tells, in the transaction that writes the text.

    What earlier texts of this chapter told and this one does not is marked deleted, unless the
    owner pinned it; what they closed or superseded is open or valid again. What the owner deleted
    of it is not told again, nor what chapters of other branches told of the same messages and the
    owner deleted, by itself or with the chapter: these are facts, claims, threads and quotes. The
    prose of a chapter is its own: a deleted chapter keeps nothing out of that of another branch's.
    sources: the row number of the message by the entries' `line`. Returns the new rows, facts
    first.
    """
    head = node_by_pk(connection, chapter.last_pk)
    before = ledger.states_on_path(connection, conversation_pk, head)
    gone = _deleted(before, chapter, sources)
    gone += _deleted_elsewhere(connection, conversation_pk, chapter, sources)
    entries = without_deleted(entries, gone)
    own = [s for s in before if s.row.chapter_pk == chapter.pk and s.row.origin == "model"]
    others = [s for s in before if s.row.chapter_pk != chapter.pk or s.row.origin != "model"]
    writing = _Writing(connection, conversation_pk, chapter, version_pk, sources, now_ms)
    _take_back(writing, others)
    plan = plan_additions(
        entries,
        earlier=[_known(state.row) for state in others if _counts(state, chapter)],
        own=[_known(state.row) for state in own if state.deleted is None],
        later=_later_facts(writing),
    )
    rows = [writing.add(new) for new in plan.new]
    is_pinned = {state.row.pk for state in own if state.pinned is not None}
    for pk in plan.left_out:
        if pk not in is_pinned:
            writing.mark(pk, "deleted", "version")
    for pk in plan.closed:
        writing.mark(pk, "closed", "model")
    for pk, index in plan.superseded:
        writing.mark(pk, "superseded", "model", rows[index].pk)
    for index, pk in plan.outdated:
        _outdate(writing, rows[index], pk)
    return rows


def _deleted(
    states: Sequence[EntryState], chapter: ChapterRow, sources: Sequence[int]
) -> list[Deleted]:
    """What its owner deleted of this chapter; not what went with the chapter as a whole: that is
    told again where its owner asks for the chapter again."""
    return _as_deleted(
        (
            state.row
            for state in states
            if state.row.chapter_pk == chapter.pk
            and state.deleted is not None
            and state.deleted.origin in BY_OWNER
            and state.deleted.chapter_pk is None
        ),
        sources,
    )


def _deleted_elsewhere(
    connection: Connection, conversation_pk: int, chapter: ChapterRow, sources: Sequence[int]
) -> list[Deleted]:
    """What other chapters told of these messages, on whichever branch, and the owner deleted, in
    all its wordings. What went with a chapter as a whole counts until that one has a text again."""
    states = [
        state
        for state in ledger.changed_by_owner(connection, conversation_pk, sources)
        if state.row.chapter_pk != chapter.pk
    ]
    with_chapter = {
        state.deleted.chapter_pk
        for state in states
        if state.deleted is not None and state.deleted.chapter_pk is not None
    }
    rows = chapters_by_pk(connection, conversation_pk, sorted(with_chapter))
    told_again = {row.pk for row in rows if row.text}
    gone = {
        state.row.pk
        for state in states
        if state.deleted is not None
        and state.deleted.origin in BY_OWNER
        and state.deleted.chapter_pk not in told_again
    }
    for state in sorted(states, key=lambda state: state.row.pk, reverse=True):
        newer = state.superseded
        if newer is not None and newer.origin in BY_OWNER and newer.by_pk in gone:
            gone.add(state.row.pk)
    return _as_deleted((state.row for state in states if state.row.pk in gone), sources)


def _as_deleted(rows: Iterable[EntryRow], sources: Sequence[int]) -> list[Deleted]:
    lines = {pk: line for line, pk in enumerate(sources)}
    return [
        Deleted(row.kind, row.text, row.about or "", lines.get(row.source_pk or 0)) for row in rows
    ]


def _counts(state: EntryState, chapter: ChapterRow) -> bool:
    """Live, or no longer so by this chapter's own earlier text alone."""
    if state.deleted is not None:
        return False
    ends = (state.closed, state.superseded)
    return all(end is None or end.chapter_pk == chapter.pk for end in ends)


def _take_back(writing: _Writing, states: Sequence[EntryState]) -> None:
    """Undo what earlier texts of this chapter did to the entries of others. Where chapters behind
    it said the same, they say so again: their word is to be the newest on their paths."""
    chapter_pk = writing.chapter.pk
    done = [
        (state.row, mark)
        for state in states
        for mark in (state.closed, state.superseded)
        if mark is not None and mark.chapter_pk == chapter_pk and mark.origin == "model"
    ]
    told = ledger.marks_of(writing.connection, writing.conversation_pk, [row for row, _ in done])
    for row, mark in done:
        name = _UNDONE[mark.mark]
        writing.mark(row.pk, name, "version")
        for other in told[row.pk]:
            if other.mark == mark.mark and other.chapter_pk not in (chapter_pk, None):
                writing.repeat(other, mark.mark)  # type: ignore[arg-type]


def _later_facts(writing: _Writing) -> list[Known]:
    """Facts of chapters behind this one, on any path that holds it."""
    rows = ledger.facts_behind(
        writing.connection, writing.conversation_pk, writing.chapter.last_depth
    )
    found = []
    for row in rows:
        path = Path(writing.connection, node_by_pk(writing.connection, row.last_pk))
        if path.holds(*writing.at):
            found.append(_known(row))
    return found


def _outdate(writing: _Writing, row: EntryRow, later_pk: int) -> None:
    """A fact that a later chapter, written before this one, has told otherwise."""
    later = ledger.entries_by_pk(writing.connection, [later_pk])[0]
    ledger.add_mark(
        writing.connection,
        writing.conversation_pk,
        row.pk,
        "superseded",
        by_pk=later.pk,
        chapter_pk=later.chapter_pk,
        at=(later.last_pk, later.last_depth),
        origin="model",
        now_ms=writing.now_ms,
    )


def _known(row: EntryRow) -> Known:
    return Known(row.pk, row.kind, row.text, row.about or "", row.who or "", row.number)
