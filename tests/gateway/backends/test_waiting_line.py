"""The order of those who wait, as tables."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gateway.backends.waiting_line import Line, Reason, Waiter, Wish

PATIENCE = 60.0


def waiter(name: str, purpose: Reason = "chat", since: float = 0.0) -> Waiter[Any]:
    """Somebody of the conversation `name`; "-" is nobody's."""
    loop = asyncio.new_event_loop()
    loop.close()
    conversation = None if name == "-" else name
    return Waiter(Wish(purpose, conversation), since, asyncio.Future(loop=loop))


def line_of(*waiters: Waiter[Any]) -> Line[Any]:
    line: Line[Any] = Line(PATIENCE)
    for one in waiters:
        line.add(one)
    return line


def serve_all(line: Line[Any], now: float = 0.0) -> list[tuple[str | None, float]]:
    """Everybody in the order of being served: conversation and arrival."""
    order = []
    while (first := next(line.candidates(now), None)) is not None:
        line.serve(first)
        order.append((first.wish.conversation, first.since))
    return order


def test_conversations_take_turns_and_each_keeps_its_own_order() -> None:
    line = line_of(
        waiter("아", since=1),
        waiter("아", since=2),
        waiter("아", since=3),
        waiter("雨", since=4),
        waiter("雨", since=5),
        waiter("Ж", since=6),
    )
    # One of each, then the second of each, then what is left.
    assert serve_all(line) == [("아", 1), ("雨", 4), ("Ж", 6), ("아", 2), ("雨", 5), ("아", 3)]
    assert len(line) == 0


def test_a_conversation_that_comes_back_stands_behind_who_came_meanwhile() -> None:
    line = line_of(waiter("a", since=1), waiter("a", since=2), waiter("b", since=3))
    first = next(line.candidates(0.0))
    line.serve(first)
    line.add(waiter("c", since=4))
    assert serve_all(line) == [("b", 3), ("a", 2), ("c", 4)]


def test_requests_of_nobody_each_stand_for_themselves() -> None:
    line = line_of(waiter("-", since=1), waiter("-", since=2), waiter("a", since=3))
    assert serve_all(line) == [(None, 1), (None, 2), ("a", 3)]


@pytest.mark.parametrize(
    ("now", "order"),
    [
        (60.0, ["wipe", "chat", "auxiliary", "summary", "gist", "prefill"]),
        # 60.5 s waited: auxiliary and summaries go before chats, a prefill never does.
        (60.5, ["wipe", "auxiliary", "summary", "gist", "chat", "prefill"]),
    ],
)
def test_purposes_come_in_their_order(now: float, order: list[Reason]) -> None:
    reasons: list[Reason] = ["prefill", "gist", "summary", "auxiliary", "chat", "wipe"]
    line = line_of(*(waiter(reason, reason) for reason in reasons))
    told = [name for name, _ in serve_all(line, now)]
    # summary and gist share a rank, the gist came first here
    expected = [name for name in order if name not in ("summary", "gist")]
    assert [name for name in told if name not in ("summary", "gist")] == expected
    assert told.index("gist") + 1 == told.index("summary")


def test_who_leaves_takes_no_one_elses_place() -> None:
    gone, second = waiter("a", since=1), waiter("a", since=2)
    line = line_of(gone, second, waiter("b", since=3))
    assert line.remove(gone)
    assert not line.remove(gone)
    assert serve_all(line) == [("a", 2), ("b", 3)]


def test_the_counts_know_ranks_and_conversations() -> None:
    line = line_of(waiter("a"), waiter("b"), waiter("a", "summary"), waiter("c", "prefill"))
    assert (len(line), line.count("chat"), line.count("chat", "auxiliary")) == (4, 2, 2)
    assert (line.count("summary"), line.count("gist")) == (1, 1)  # they share a rank
    assert line.has_chat_of("a") and not line.has_chat_of("c")
    assert [line.is_first(purpose) for purpose in ("chat", "summary", "prefill")] == [
        True,
        False,
        False,
    ]
    assert [one.wish.conversation for one in line.waiting("prefill", "c")] == ["c"]
    assert line.waiting("prefill", "a") == []
    assert len(line.everybody()) == 4
