"""What the rows say about how it went, with the sums shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text

from gateway.jobs.queue import enqueue
from gateway.store import chapter_rows, figures, fold_rows, gist_rows, quarantine
from gateway.store.attempts import begin_attempt
from gateway.store.engine import Store
from gateway.store.figures import Folded, Rejection, Written
from gateway.store.transcript import ConversationRow, Node
from policies.values import Span
from tests.gateway.databases import database_url
from tests.gateway.seeds import NOW, add_conversation, talk

DAY = 86_400_000


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    store = Store(database_url(tmp_path / "figures.db"))
    store.open()
    engine = store._writer
    with engine.begin() as opened:
        yield opened
    store.close()


@pytest.fixture
def told(connection: Connection) -> tuple[ConversationRow, list[Node]]:
    return add_conversation(connection, talk(5))


def attempt(connection: Connection, made: ConversationRow, **values: Any) -> None:
    begin_attempt(
        connection,
        **{
            "conversation_pk": made.pk,
            "asked_pk": 1,
            "backend": "local",
            "policy": "small",
            "model": "m",
            "boot": "b",
            "view_kind": "verbatim",
            "state": "done",
            "started_ms": NOW,
            **values,
        },
    )


def fold(
    connection: Connection, made: ConversationRow, at: Node, border: int, **values: Any
) -> None:
    given: dict[str, Any] = {"policy": "small", "kind": "fold", "stand_ins": 0, "now_ms": NOW}
    fold_rows.add_fold(
        connection,
        made.pk,
        at=at,
        border=(1, 1, border),
        gist_pk=None,
        memory=[],
        memory_chars=0,
        revision="r",
        **{**given, **values},
    )


def test_turns_are_told_by_backend_and_policy(
    connection: Connection, told: tuple[ConversationRow, list[Node]]
) -> None:
    made, _ = told
    used = {"prompt_tokens": 100, "completion_tokens": 10, "prompt_chars": 400}
    attempt(connection, made, **used, cached_tokens=90, expected_chars=380, first_token_ms=200)
    attempt(connection, made, **used, cached_tokens=70, first_token_ms=400, queued_ms=30)
    attempt(connection, made, **used, finish_reason="length", view_kind="cut", first_token_ms=900)
    attempt(connection, made, state="failed", error="timeout")
    attempt(connection, made, state="partial", error="interrupted", backend="cloud", policy="wide")
    attempt(connection, made, state="cancelled", backend="cloud", policy="wide", rule="fallback")
    attempt(connection, made, started_ms=NOW - DAY)
    cloud, local = figures.count_turns(connection, NOW)
    assert (local["backend"], local["policy"], local["attempts"]) == ("local", "small", 4)
    assert (local["answered"], local["failed"], local["cut_by_length"]) == (3, 1, 1)
    assert (local["shown_cut"], local["prompt_tokens"], local["completion_tokens"]) == (1, 300, 30)
    assert (local["cached_tokens"], local["told_tokens"]) == (160, 200)
    assert (local["expected_chars"], local["compared_chars"]) == (380, 400)
    assert (local["first_token_ms_median"], local["first_token_ms_p95"]) == (400, 400)
    assert (local["queued_ms_median"], local["queued_ms_p95"]) == (30, 30)
    assert (cloud["broken_off"], cloud["cancelled"], cloud["fallbacks"]) == (1, 1, 1)
    assert (cloud["told_tokens"], cloud["first_token_ms_median"]) == (None, None)
    faults = figures.count_faults(connection, NOW)
    assert faults == [
        {"backend": "cloud", "fault": "interrupted", "count": 1},
        {"backend": "local", "fault": "timeout", "count": 1},
    ]
    assert sum(row["attempts"] for row in figures.count_turns(connection, 0)) == 7


def test_a_question_fares_as_the_best_of_its_attempts(
    connection: Connection, told: tuple[ConversationRow, list[Node]]
) -> None:
    """Three of the newcomer's six failed attempts were of turns that were answered."""
    made, _ = told
    for asked, states in enumerate(
        (
            ("failed", "failed", "done"),  # empty, then unavailable, then a fallback
            ("done", "done"),  # a swipe
            ("failed", "failed", "failed"),  # a client's own retries
            ("cancelled", "partial"),
            ("cancelled",),
            ("running",),
        )
    ):
        for state in states:
            attempt(connection, made, asked_pk=asked, state=state)
    attempt(connection, made, asked_pk=99, started_ms=NOW - DAY)
    fared = figures.count_questions(connection, NOW)
    assert fared == {"answered": 2, "broken_off": 1, "failed": 1, "cancelled": 1}
    assert figures.count_questions(connection, 0)["answered"] == 3


def test_a_span_reaches_from_the_border_before(
    connection: Connection, told: tuple[ConversationRow, list[Node]]
) -> None:
    """18,300, then 36,500 − 18,300; a renewal takes nothing; two of one message count as one."""
    made, nodes = told
    other, others = add_conversation(connection, talk(1), alias="other")
    fold(connection, made, nodes[2], 18_300)
    fold(connection, made, nodes[4], 36_500)
    fold(connection, made, nodes[6], 36_500)
    fold(connection, made, nodes[6], 50_000, kind="cut", stand_ins=2)
    fold(connection, made, nodes[8], 9_000, policy="wide", kind="migration")
    fold(connection, other, others[0], 7_000)
    assert figures.list_folds(connection, 0) == [
        Folded("small", "fold", 18_300, 0),
        Folded("small", "fold", 18_200, 0),
        Folded("small", "cut", 13_500, 2),
        Folded("wide", "migration", 9_000, 0),
        Folded("small", "fold", 7_000, 0),
    ]


def test_an_earlier_fold_counts_for_the_span_though_not_for_the_list(
    connection: Connection, told: tuple[ConversationRow, list[Node]]
) -> None:
    made, nodes = told
    fold(connection, made, nodes[2], 18_300, now_ms=NOW - DAY)
    fold(connection, made, nodes[4], 36_500)
    fold(connection, made, nodes[6], 36_500)
    spans = [one.span for one in figures.list_folds(connection, NOW)]
    assert spans == [18_200, 0]


def test_texts_of_memory_by_who_wrote_them_and_for_which_policy(
    connection: Connection, told: tuple[ConversationRow, list[Node]]
) -> None:
    made, nodes = told
    for index, (length, took) in enumerate(((1_000, 20_000), (1_200, None), (1_100, 30_000))):
        first, last = nodes[2 * index], nodes[2 * index + 1]
        chapter, _ = chapter_rows.add_chapter(
            connection,
            made.pk,
            Span(first.depth, last.depth, 20),
            first_pk=first.pk,
            last_pk=last.pk,
            now_ms=NOW,
        )
        enqueue(
            connection,
            key=f"chapter:{chapter}",
            kind="chapter",
            conversation_pk=made.pk,
            policy="small",
            payload={},
            run_at_ms=NOW,
            backend=None,
            now_ms=NOW,
        )
        chapter_rows.add_version(
            connection,
            made.pk,
            chapter,
            text="話" * length,
            origin="model",
            backend="local",
            prompt="1",
            now_ms=NOW,
            took_ms=took,
        )
    chapter_rows.add_version(
        connection,
        made.pk,
        chapter,
        text="(…)",
        origin="stand-in",
        backend=None,
        prompt=None,
        now_ms=NOW,
    )
    gist_rows.add_gist(
        connection,
        made.pk,
        policy="small",
        last_pk=nodes[3].pk,
        last_depth=4,
        sources=[],
        text="🌸" * 7,
        origin="model",
        backend="cloud",
        prompt="1",
        now_ms=NOW,
        took_ms=4_000,
    )
    assert figures.list_written(connection, NOW) == [
        Written("chapter", "local", "small", (20_000, 30_000), (1_000, 1_200, 1_100)),
        Written("gist", "cloud", "small", (4_000,), (7,)),
    ]
    assert figures.count_stand_ins(connection, NOW) == {"chapters": 1, "gists": 0}
    assert figures.list_written(connection, NOW + 1) == []


def test_rejections_moves_auxiliary_requests_and_work(
    connection: Connection, told: tuple[ConversationRow, list[Node]]
) -> None:
    made, _ = told
    for reasons in (["thinking", "refusal"], ["refused"], ["short", "echo"]):
        quarantine.add_quarantined(
            connection,
            made.pk,
            chapter_pk=None,
            kind="gist",
            backend="local",
            reasons=reasons,
            text="",
            finish_reason=None,
            now_ms=NOW,
        )
    assert figures.list_rejections(connection, NOW) == [
        Rejection("gist", "local", "thinking", True),
        Rejection("gist", "local", "refused", True),
        Rejection("gist", "local", "short", False),
    ]
    for cause in ("fold", "edit", "fold", None):
        attempt(connection, made, moved_by=cause)
    assert figures.count_moves(connection, NOW) == {"fold": 2, "edit": 1}
    for state in ("done", "failed"):
        connection.execute(
            text(
                "INSERT INTO auxiliary_requests (owner_pk, kind, how, model, backend, state,"
                " started_ms) SELECT owner_pk, 'title', 'header', 'm', 'local', :state, :now"
                " FROM conversations"
            ),
            {"state": state, "now": NOW},
        )
    assert figures.count_auxiliary(connection, NOW) == [
        {"kind": "title", "count": 2, "answered": 1}
    ]
    for number, (state, cause) in enumerate(
        (("parked", "refused"), ("parked", "refused"), ("done", None))
    ):
        enqueue(
            connection,
            key=f"chapter:{number}",
            kind="chapter",
            conversation_pk=made.pk,
            policy="small",
            payload={},
            run_at_ms=NOW,
            backend=None,
            now_ms=NOW,
        )
        connection.execute(
            text("UPDATE jobs SET state = :state, error_kind = :cause WHERE key = :key"),
            {"state": state, "cause": cause, "key": f"chapter:{number}"},
        )
    assert figures.count_work(connection) == {
        "states": {"chapter": {"done": 1, "parked": 2}},
        "parked": [{"kind": "chapter", "cause": "refused", "count": 2}],
    }


def test_an_empty_database_has_nothing_to_tell(connection: Connection) -> None:
    assert figures.count_turns(connection, 0) == []
    assert figures.list_written(connection, 0) == []
    assert figures.list_folds(connection, 0) == []
    assert figures.count_stand_ins(connection, 0) == {"chapters": 0, "gists": 0}
    assert figures.count_work(connection) == {"states": {}, "parked": []}
