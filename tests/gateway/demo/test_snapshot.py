"""What the store holds, and which of it a prompt really tells."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection

from gateway.demo.snapshot import Shown, Snapshot, Span, Text, Verdict, covered_spans, take_snapshot
from gateway.prompts.memory import render_memory
from gateway.store.engine import Store
from tests.gateway.seeds import add_conversation, add_memory, talk

CHAPTER = Text(7, Span(5, 8), "model", "Marit < Wren", False)
STAND_IN = Text(8, Span(9, 12), "stand-in", "User: 霧の夜", False)
GIST = Text(3, Span(1, 4), "model", "It began.", True)


def shown(*texts: Text) -> Shown:
    return Shown(1, "fold", texts[-1].span.last, 100, texts)


def told(gist: Text | None, *chapters: Text) -> str:
    rendered = render_memory(gist.text if gist else None, [text.text for text in chapters])
    return str(rendered[1]["content"])


def test_what_stands_in_the_prompt_covers_its_span() -> None:
    memory = told(GIST, CHAPTER, STAND_IN)
    spans = covered_spans(shown(GIST, CHAPTER, STAND_IN), memory)
    assert spans == [Span(1, 4), Span(5, 8), Span(9, 12)]


def test_a_chapter_without_a_frame_of_its_own_covers_nothing() -> None:
    assert covered_spans(shown(CHAPTER, STAND_IN), told(None, CHAPTER)) == [Span(5, 8)]
    assert covered_spans(shown(GIST, CHAPTER), told(None, CHAPTER)) == [Span(5, 8)]
    assert covered_spans(shown(GIST), "") == []


def test_an_empty_frame_covers_nothing() -> None:
    memory = told(None, CHAPTER)
    assert CHAPTER.text in memory
    assert covered_spans(shown(CHAPTER), memory.replace(CHAPTER.text, " ")) == []


def test_without_a_fold_nothing_is_covered() -> None:
    assert covered_spans(None, told(None, CHAPTER)) == []


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(f"sqlite:///{tmp_path / 'demo.db'}")
    store.open()
    yield store
    store.close()


def test_a_new_database_holds_nothing(store: Store) -> None:
    assert store.reading(take_snapshot) == Snapshot((), (), (), None)


def test_everything_is_read_at_one_moment(store: Store) -> None:
    """Messages 1–2 have a chapter, 3–4 wait for theirs after an output that was judged out."""

    def fill(connection: Connection) -> None:
        add_memory(connection, *add_conversation(connection, talk(3)), text="They met.")

    store.writing(fill)
    chapter = Text(1, Span(1, 2), "model", "They met.", False)
    gist = Text(1, Span(1, 2), "model", "gist: They met.", True)
    assert store.reading(take_snapshot) == Snapshot(
        texts=(chapter, gist),
        verdicts=(Verdict(1, Span(3, 4), ("refusal",), "I cannot help with They met."),),
        waiting=(Span(3, 4),),
        shown=Shown(1, "fold", 2, 321, (gist, chapter)),
    )
