"""What the gateway has stored of the demonstration's conversation, read beside the running server.

Depths count messages from 1: user and assistant alike, system texts apart.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from sqlalchemy import Connection, select

from gateway.store import chapter_rows, fold_rows, gist_rows
from gateway.store.attempts import attempts
from gateway.store.chapter_rows import chapters, versions
from gateway.store.gist_rows import gists
from gateway.store.quarantine import quarantine

_GIST_FRAME = re.compile(r"<earlier>\n(.*?)\n</earlier>", re.DOTALL)
_CHAPTER_FRAME = re.compile(r"<chapter>\n(.*?)\n</chapter>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Span:
    """Messages `first` to `last`, both among them."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"messages {self.first}–{self.last}"


@dataclass(frozen=True, slots=True)
class Text:
    """A text that tells a span. origin: model or stand-in; is_gist: the old generation."""

    pk: int
    span: Span
    origin: str
    text: str
    is_gist: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """An output that the judge refused, and of what (None: of a gist)."""

    pk: int
    span: Span | None
    reasons: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Shown:
    """The fold that the newest turn stood on: its border, and the texts of its memory in order."""

    pk: int
    kind: str
    border: int
    memory_chars: int
    texts: tuple[Text, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """texts: chapters and gists, every version; waiting: spans that have no text yet."""

    texts: tuple[Text, ...]
    verdicts: tuple[Verdict, ...]
    waiting: tuple[Span, ...]
    shown: Shown | None


def take_snapshot(connection: Connection) -> Snapshot:
    """Everything at one moment. The database is the demonstration's own: one conversation."""
    rows = connection.execute(select(chapters.c.pk, chapters.c.first_depth, chapters.c.last_depth))
    spans = {pk: Span(first, last) for pk, first, last in rows}
    texts = _read_texts(connection, spans)
    told = set(connection.execute(select(versions.c.chapter_pk)).scalars())
    return Snapshot(
        texts=texts,
        verdicts=_read_verdicts(connection, spans),
        waiting=tuple(span for pk, span in spans.items() if pk not in told),
        shown=_read_shown(connection),
    )


def _read_texts(connection: Connection, spans: dict[int, Span]) -> tuple[Text, ...]:
    version, gist = versions.c, gists.c
    rows = connection.execute(
        select(version.pk, version.chapter_pk, version.origin, version.text).order_by(version.pk)
    )
    found = [Text(pk, spans[of], origin, text, False) for pk, of, origin, text in rows]
    rows = connection.execute(
        select(gist.pk, gist.last_depth, gist.origin, gist.text).order_by(gist.pk)
    )
    found += [Text(pk, Span(1, last), origin, text, True) for pk, last, origin, text in rows]
    return tuple(found)


def _read_verdicts(connection: Connection, spans: dict[int, Span]) -> tuple[Verdict, ...]:
    row = quarantine.c
    rows = connection.execute(
        select(row.pk, row.chapter_pk, row.reasons, row.text).order_by(row.pk)
    )
    return tuple(
        Verdict(pk, spans.get(of), tuple(json.loads(reasons)), text)
        for pk, of, reasons, text in rows
    )


def _read_shown(connection: Connection) -> Shown | None:
    newest = select(attempts.c.fold_pk).order_by(attempts.c.pk.desc()).limit(1)
    fold_pk = connection.execute(newest).scalar()
    if fold_pk is None:
        return None
    fold = fold_rows.fold_by_pk(connection, fold_pk)
    texts: list[Text] = []
    if fold.gist_pk is not None and (gist := gist_rows.gist_by_pk(connection, fold.gist_pk)):
        texts.append(Text(gist.pk, Span(1, gist.last_depth), gist.origin, gist.text, True))
    texts += [
        Text(row.pk, Span(row.first_depth, row.last_depth), row.origin, row.text, False)
        for row in chapter_rows.versions_by_pk(connection, fold.memory)
    ]
    return Shown(fold.pk, fold.kind, fold.border_depth, fold.memory_chars, tuple(texts))


def covered_spans(shown: Shown | None, memory_text: str) -> list[Span]:
    """The spans of a fold that the memory in a prompt really tells, frame by frame.

    memory_text: the synthetic answer as it reached llama-server. A text that the gateway filters
    when it is read is told by a stand-in in the same frame; a frame that is missing or empty tells
    nothing.
    """
    if shown is None:
        return []
    told = {
        is_gist: [frame.strip() for frame in pattern.findall(memory_text)]
        for is_gist, pattern in ((True, _GIST_FRAME), (False, _CHAPTER_FRAME))
    }
    spans = []
    for text in shown.texts:
        frames = told[text.is_gist]
        if frames and frames.pop(0):
            spans.append(text.span)
    return spans
