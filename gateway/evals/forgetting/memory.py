"""A conversation, stored and chaptered once, and the memory of it at its end in each mode.

    rolling               one summary, rewritten at each fold (`memory: rolling` of a policy): what
                          stands before the newest chapter went through it each time
    rolling-long          the same with four times the length asked for
    generational          chapters stack, their older half joins a gist when there are too many
    generational+recall   the same, with the lines that are found for a question beside it

The gist that a fold makes due enters with the next fold, as in a live view.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import Connection

from gateway.evals.forgetting.spans import FoldPlan, plan_folds
from gateway.evals.forgetting.writers import Writer
from gateway.flows.assignments import ChapterAssignment, GistAssignment
from gateway.flows.backgrounds import Place, choose_background, find_unlisted
from gateway.flows.new_messages import to_new_message
from gateway.flows.notes import passage_line
from gateway.flows.recollection import Ask, recall
from gateway.flows.rounds import Draft
from gateway.flows.stand_ins import condense_notes
from gateway.flows.tellings import store_chapter
from gateway.prompts.memory import CHAPTER_COST, GIST_COST, render_memory
from gateway.prompts.notes import FRAME_CHARS, line_chars, render_notes
from gateway.prompts.span import span_lines
from gateway.store import chapter_rows, ledger, search, transcript
from gateway.store.chapter_rows import ChapterRow
from gateway.store.engine import Store
from gateway.store.transcript import ConversationRow, Node, StoredMessage
from policies.budget import first_ratio, limits_of
from policies.generations import GREAT_STACK, plan_major
from policies.language import language_of
from policies.ledger.threads import choose_threads
from policies.messages import canonical_message
from policies.schema import Policy
from policies.standin import write_stand_in
from policies.values import ChapterState, GistState, Limits, Line, Mark, Span

RECALL = "generational+recall"
_LONG = 4
_IMAGE_CHARS = 3_000
_SAMPLE = 200


def memory_of(mode: str) -> str:
    """The mode whose memory a mode shows: recall adds to a question, not to the memory."""
    return "generational" if mode == RECALL else mode


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation as it is measured: stored up to its last fold. lines: of each span."""

    store: Store
    conversation: ConversationRow
    owner_pk: int
    head: Node
    rows: tuple[StoredMessage, ...]
    plan: FoldPlan
    limits: Limits
    policy: Policy

    def rows_of(self, span: Span) -> Sequence[StoredMessage]:
        return self.rows[span.first - 1 : span.last]

    def lines_of(self, span: Span) -> list[Line]:
        return span_lines([row.raw for row in self.rows_of(span)], self.policy.reply_fields)

    def place(self, limits: Limits) -> Place:
        return Place(self.owner_pk, self.conversation.pk, self.policy, limits, self.head)


@dataclass(frozen=True, slots=True)
class Memory:
    """What a model is shown at the end. covered: the depth up to which the gist tells."""

    messages: tuple[dict[str, Any], ...]
    covered: int

    @property
    def text(self) -> str:
        return "\n".join(message["content"] for message in self.messages)

    def where(self, span: Span) -> str:
        return "gist" if span.last <= self.covered else "stack"


@contextmanager
def stored_talk(
    messages: Sequence[tuple[str, str]], policy: Policy, most: int | None, *, is_searched: bool
) -> Iterator[Talk]:
    """The conversation in a database of its own, which goes with the context. most: spans at most;
    is_searched: it is made ready for recall."""
    with TemporaryDirectory(prefix="foldgate-forgetting-") as folder:
        store = Store(f"sqlite:///{Path(folder) / 'talk.db'}", synchronous="OFF")
        store.open()
        try:
            talk = _store_talk(store, messages, policy, most)
            if is_searched:
                _index(talk)
            yield talk
        finally:
            store.close()


def _store_talk(
    store: Store, messages: Sequence[tuple[str, str]], policy: Policy, most: int | None
) -> Talk:
    conversation, owner_pk, rows, head = store.writing(_keep, messages)
    ratio = first_ratio("\n".join(text for _, text in messages[:_SAMPLE]))
    limits = limits_of(policy, ratio)
    marks = [Mark(row.depth, row.chars, row.opens) for row in rows]
    plan = plan_folds(limits, marks, most)
    end = store.reading(transcript.node_by_pk, rows[plan.last - 1].pk) if rows else head
    return Talk(store, conversation, owner_pk, end, tuple(rows), plan, limits, policy)


def _index(talk: Talk) -> None:
    """As a fold does: what is behind its border."""
    border = talk.plan.border
    if not border:
        return
    while talk.store.writing(search.index_path, talk.conversation.pk, talk.rows[border - 1].pk):
        pass


def _keep(
    connection: Connection, messages: Sequence[tuple[str, str]]
) -> tuple[ConversationRow, int, list[StoredMessage], Node]:
    owner_pk = transcript.ensure_owner(connection, "eval", "", 0)
    made = transcript.create_conversation(connection, owner_pk, alias=None, model="eval", now_ms=0)
    raw = [{"role": role, "content": text} for role, text in messages]
    new = [to_new_message(m, canonical_message(m), _IMAGE_CHARS) for m in raw]
    head = transcript.append_messages(connection, made, None, new, 0)[-1]
    return made, owner_pk, transcript.path_between(connection, head.pk, 0), head


# -- writing --------------------------------------------------------------------------------------


async def write_chapters(talk: Talk, writer: Writer, key: str) -> int:
    """Chapter every span, oldest first, with what is told beside each in the ledger. Returns how
    many are stand-ins."""
    stand_ins = 0
    for number, span in enumerate(talk.plan.spans, 1):
        rows = talk.rows_of(span)
        chapter_pk, threads = talk.store.writing(_add_debt, talk, span)
        lines = tuple(talk.lines_of(span))
        text = "\n".join(line.text for line in lines)
        chapters = talk.policy.chapters
        work = ChapterAssignment(
            lines,
            language_of(text),
            chapters.length,
            chapters.split,
            choose_threads(threads, text),
        )
        draft = await writer.write(work, f"{key}/chapter {number}")
        if draft is None:
            stand_ins += 1
            told = write_stand_in(lines, chapters.length)
            talk.store.writing(_save_stand_in, talk, chapter_pk, told)
        else:
            talk.store.writing(_save_chapter, talk, chapter_pk, draft, [row.pk for row in rows])
    return stand_ins


def _add_debt(
    connection: Connection, talk: Talk, span: Span
) -> tuple[int, tuple[tuple[int, str], ...]]:
    rows, pk = talk.rows_of(span), talk.conversation.pk
    chapter_pk, _ = chapter_rows.add_chapter(
        connection, pk, span, first_pk=rows[0].pk, last_pk=rows[-1].pk, now_ms=0
    )
    head = transcript.node_by_pk(connection, rows[-1].pk)
    opened = ledger.open_threads(connection, pk, head, up_to_depth=span.first - 1)
    return chapter_pk, tuple((row.number, row.text) for row in opened if row.number is not None)


def _save_chapter(
    connection: Connection, talk: Talk, chapter_pk: int, draft: Draft, pks: Sequence[int]
) -> None:
    store_chapter(
        connection,
        talk.conversation.pk,
        chapter_pk,
        draft,
        pks=pks,
        learns=talk.policy.profile.learn,
        now_ms=0,
    )


def _save_stand_in(connection: Connection, talk: Talk, chapter_pk: int, text: str) -> None:
    chapter_rows.add_version(
        connection,
        talk.conversation.pk,
        chapter_pk,
        text=text,
        origin="stand-in",
        backend=None,
        prompt=None,
        now_ms=0,
    )


async def remember(talk: Talk, mode: str, writer: Writer, key: str) -> Memory:
    """The memory of a mode that the last fold shows."""
    limits = limits_of_mode(talk.limits, mode)
    rows = talk.store.reading(chapter_rows.all_chapters, talk.conversation.pk)
    gist: _Gist | None = None
    coming: _Gist | None = None
    shown: list[ChapterRow] = []
    for spans in talk.plan.folds:
        gist, coming = coming or gist, None
        border = spans[-1].last
        shown = [row for row in rows if _covered(gist) < row.first_depth <= border]
        if border < talk.plan.border:
            coming = await _fold_together(talk, limits, gist, shown, writer, f"{key}/{mode}")
    border, covered = talk.plan.border, _covered(gist)
    choice = talk.store.reading(
        choose_background, talk.place(limits), border=border, covered=covered
    )
    texts = [row.text or "" for row in shown]
    messages = render_memory(gist.text if gist else None, texts, choice.background)
    return Memory(tuple(messages), covered)


def limits_of_mode(limits: Limits, mode: str) -> Limits:
    if mode == "rolling":
        return replace(limits, rolling=True)
    if mode == "rolling-long":
        return replace(limits, rolling=True, gist_length=_LONG * limits.gist_length)
    return replace(limits, rolling=False)


@dataclass(frozen=True, slots=True)
class _Gist:
    text: str
    covers_to: int


def _covered(gist: _Gist | None) -> int:
    return gist.covers_to if gist else 0


async def _fold_together(
    talk: Talk,
    limits: Limits,
    gist: _Gist | None,
    shown: Sequence[ChapterRow],
    writer: Writer,
    key: str,
) -> _Gist | None:
    """The gist that is due over the shown chapters; None where none is, or none can be written."""
    stack = [_state_of(row) for row in shown]
    state = GistState(gist.covers_to, len(gist.text) + GIST_COST) if gist else None
    major = plan_major(limits, state, stack)
    if major is None:
        return None
    notes = [shown[index].text or "" for index in major.chapters]
    if gist is not None:
        notes.insert(0, gist.text)
    unlisted = talk.store.reading(
        find_unlisted,
        talk.place(limits),
        border=shown[-1].last_depth,
        covered=major.covers_to,
    )
    threads = tuple(row.text for row in unlisted)
    language = language_of("\n".join(notes))
    work = GistAssignment(tuple(filter(None, notes)), language, limits.gist_length, threads)
    draft = await writer.write(work, f"{key}/gist {major.covers_to}")
    if draft is not None:
        return _Gist(draft.text, major.covers_to)
    if sum(row.length or 0 for row in stack) <= GREAT_STACK * limits.stack:
        return None
    return _Gist(condense_notes(notes, limits.gist_length, threads), major.covers_to)


def _state_of(row: ChapterRow) -> ChapterState:
    return ChapterState(
        row.first_depth,
        row.last_depth,
        row.source_chars,
        len(row.text or "") + CHAPTER_COST,
        row.origin == "stand-in",
    )


# -- recalling ------------------------------------------------------------------------------------


def find_notes(talk: Talk, question: str) -> str:
    """What would stand beside a question asked as the next message; '' where nothing is found."""
    room = min(talk.policy.recall.budget, talk.policy.recall.between_folds) - FRAME_CHARS
    if room <= 0:
        return ""
    ask = Ask(talk.conversation.pk, talk.head, talk.plan.border, question, budget=room)
    passages = talk.store.reading(recall, ask)
    language = language_of(question)
    lines = [passage_line(passage, language) for passage in passages]
    while sum(map(line_chars, lines)) > room:
        worst = min(range(len(lines)), key=lambda at: (passages[at].hit, passages[at].score))
        del lines[worst], passages[worst]
    return render_notes(lines, question) if lines else ""
