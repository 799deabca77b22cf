"""What a conversation waits for when it comes from a larger view, and what is kept warm for it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.backlog import plan_backlog, plan_warm
from policies.folding import plan_fold
from policies.generations import plan_gist_ahead
from policies.values import (
    ChapterState,
    Debt,
    GistState,
    Limits,
    Major,
    Mark,
    Span,
    ViewState,
)
from tests.policies.life import LOCAL
from tests.policies.test_folding import SMALL, even, row, view_states


def arrived(chars: int, *coming: ChapterState, newest: int = 100, each: int = 100) -> ViewState:
    """A conversation without any fold, and the message with which it comes."""
    tail = even(chars, each)
    return ViewState(0, 0, (*tail, Mark(len(tail) + 1, newest, True)), coming=coming)


def written(state: ViewState, debt: Debt, length: int = 1_100) -> ViewState:
    """The same view once all of its chapters have their texts."""
    rows = [*state.coming, *(row(s.first, s.last, s.chars, None) for s in debt.spans)]
    done = (replace(one, length=one.length or min(length, one.source_chars)) for one in rows)
    return replace(state, coming=tuple(done))


# -- the backlog ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chars", "tail", "spans"),
    [
        # 31,000 - 4 x 1,100 = 26,600; 150,000 - 26,600 = 123,400 = 4 x 30,850
        (150_000, 26_600, 4),
        # 31,000 - 2 x 1,100 = 28,800; 60,000 - 28,800 = 31,200 is one; 31,000 - 1,100 = 29,900
        (60_000, 29_800, 1),
        # 7 x 1,100 = 7,700: 23,300 stay; 220,000 - 23,300 = 196,700 = 6.1 x 32,000
        (220_000, 23_200, 7),
        # as many as 62 chapters will cost 6,000 and a gist of at most 1,875: 23,100 stay
        (2_000_000, 23_100, 62),
    ],
)
def test_all_of_the_backlog(chars: int, tail: int, spans: int) -> None:
    debt = plan_backlog(LOCAL, arrived(chars))
    assert debt is not None
    assert debt.spans[0].first == 1
    assert chars - 100 * debt.border == pytest.approx(tail, abs=200)
    assert len(debt.spans) == spans
    assert max(span.chars for span in debt.spans) <= 32_000


@pytest.mark.parametrize(
    ("why", "state"),
    [
        ("one character below the ceiling it goes out whole", arrived(55_900, newest=99)),
        ("its chapter is ready", arrived(60_000, row(1, 302, 30_200, 1_100))),
        ("a stand-in is ready too", arrived(60_000, row(1, 302, 30_200, 900, stand_in=True))),
        ("the newest message is all there is", ViewState(0, 0, (Mark(1, 70_000, True),))),
        ("nothing but it is worth a chapter", arrived(15_000, newest=60_000)),
        # 7 x 1,100 and 23,300: their gist comes behind the move
        (
            "seven chapters fit",
            arrived(220_000, *(row(280 * i + 1, 280 * i + 280, 28_000, 1_100) for i in range(7))),
        ),
    ],
)
def test_no_waiting(why: str, state: ViewState) -> None:
    assert plan_backlog(LOCAL, state) is None, why


@pytest.mark.parametrize(
    ("why", "state", "debt"),
    [
        (
            "all is asked for already",
            arrived(60_000, row(1, 302, 30_200, None)),
            Debt(302, ()),
        ),
        (
            # 60,000 - 10,000 - 2 x 1,100 - 28,800 = 21,200 more
            "what is there is used",
            arrived(60_000, row(1, 100, 10_000, 1_100)),
            Debt(312, (Span(101, 312, 21_200),)),
        ),
        (
            # 40,000 is below start, and with 30,000 more above the ceiling; down to keep
            "a newest message that is itself too large",
            arrived(40_000, newest=30_000),
            Debt(240, (Span(1, 240, 24_000),)),
        ),
        (
            # 30 x 1,100 = 33,000 shown and 30,000 behind them; 33,000 + 1,100 + 16,000 is far
            # above 39,500, half the headroom: a gist would be made on the spot; with one made
            # ahead, 6,000 + 1,875 + 30,000 = 37,875 are below start
            "chapters that an earlier fold shows fill the view",
            ViewState(
                3_000,
                33_000,
                even(30_000, after=3_000),
                stack=tuple(row(100 * i + 1, 100 * i + 100, 10_000, 1_100) for i in range(30)),
            ),
            Debt(3_000, ()),
        ),
        (
            # 12 x 1,100 = 13,200 > 2 x 6,000: 6 of 12 go into a gist first
            "a gist is missing",
            arrived(360_000, *(row(280 * i + 1, 280 * i + 280, 28_000, 1_100) for i in range(12))),
            Debt(3_360, ()),
        ),
    ],
)
def test_waiting(why: str, state: ViewState, debt: Debt) -> None:
    assert plan_backlog(LOCAL, state) == debt, why


@pytest.mark.parametrize("giant", [60_000, 400_000])
def test_a_message_larger_than_the_budget_is_one_chapter(giant: int) -> None:
    sizes = [500] * 120 + [giant, 500] + [500] * 178
    tail = tuple(Mark(i + 1, size, i % 2 == 0) for i, size in enumerate(sizes))
    state = replace(arrived(0), tail=(*tail, Mark(301, 100, True)))
    debt = plan_backlog(LOCAL, state)
    assert debt is not None
    assert [span for span in debt.spans if span.chars > 32_000] == [Span(121, 121, giant)]
    assert plan_backlog(LOCAL, written(state, debt)) is None


def test_gists_come_ahead_of_the_view() -> None:
    """2,000,000 characters: 62 chapters of 1,100 would be more than the ceiling."""
    state = arrived(2_000_000)
    debt = plan_backlog(LOCAL, state)
    assert debt is not None
    assert plan_gist_ahead(LOCAL, replace(state, coming=(row(1, 9, 900, None),))) is None
    state = written(state, debt)
    taken: list[int] = []
    while plan_backlog(LOCAL, state) is not None:
        major = plan_gist_ahead(LOCAL, state)
        assert major is not None
        taken.append(len(major.chapters))
        state = replace(state, ahead=(*state.ahead, GistState(major.covers_to, 1_500)))
    # 62 // 2 = 31, but 29 x 1,100 = 31,900; then 1,500 + 27 x 1,100 = 31,200 is the most:
    # 33 // 2, 17 // 2, and 9 x 1,100 = 9,900 is at most 2 x 6,000
    assert taken == [29, 16, 8]
    fold = plan_fold(LOCAL, state)
    assert fold is not None
    # 1,500 + 9 x 1,100 = 11,400, and 23,100 verbatim
    assert (fold.kind, fold.memory) == ("fold", 11_400)
    assert fold.verbatim == pytest.approx(23_100, abs=300)


def test_a_gist_ahead_is_shown_only_where_all_that_it_covers_is_folded() -> None:
    coming = (row(1, 100, 10_000, 1_100), row(101, 200, 10_000, 1_100), row(201, 300, 10_000, 900))
    state = arrived(48_600, *coming)
    # 1,100 + 38,600 > 31,000; 2,200 + 28,600 = 30,800
    fold = plan_fold(LOCAL, state)
    assert fold is not None and (fold.border, fold.memory) == (200, 2_200)
    fold = plan_fold(LOCAL, replace(state, ahead=(GistState(200, 700),)))
    assert fold is not None and (fold.border, fold.memory) == (200, 700)
    # a gist to 300 is not on the way to 200
    fold = plan_fold(LOCAL, replace(state, ahead=(GistState(300, 700),)))
    assert fold is not None and (fold.border, fold.memory) == (200, 2_200)


def test_the_next_gist_begins_behind_the_newest() -> None:
    coming = tuple(row(10 * i + 1, 10 * i + 10, 10_000, 1_100) for i in range(12))
    state = replace(arrived(20_000, *coming), ahead=(GistState(60, 1_500),))
    # 6 behind it: 6,600 > 6,000
    assert plan_gist_ahead(LOCAL, state) == Major(90, (6, 7, 8))


@pytest.mark.parametrize(
    ("ready", "major"),
    [
        # 10 x 1,100 = 11,000 is no more than 2 x 6,000
        (10, None),
        # 11 x 1,100 = 12,100 is: 5 of the 11 that are written
        (11, Major(50, (0, 1, 2, 3, 4))),
    ],
)
def test_a_great_stack_does_not_wait_for_the_last_chapter(ready: int, major: Major | None) -> None:
    coming = tuple(
        row(10 * i + 1, 10 * i + 10, 10_000, 1_100 if i < ready else None) for i in range(12)
    )
    assert plan_gist_ahead(LOCAL, arrived(20_000, *coming)) == major


@given(view_states(), st.integers(1, 300), st.integers(1, 300))
def test_waiting_ends(state: ViewState, length: int, gist: int) -> None:
    """Whatever a conversation comes with: once what was asked for is written, it need not wait,
    and what it asks for continues its rows."""
    for _ in range(40):
        debt = plan_backlog(SMALL, state)
        if debt is None:
            break
        end = state.coming[-1].last if state.coming else state.border
        for span in debt.spans:
            assert span.first == end + 1
            end = span.last
        assert end == debt.border < state.tail[-1].depth
        state = written(state, debt, length)
        if major := plan_gist_ahead(SMALL, state):
            state = replace(state, ahead=(*state.ahead, GistState(major.covers_to, gist)))
    assert plan_backlog(SMALL, state) is None


# -- kept warm --------------------------------------------------------------------------------


def test_what_is_kept_warm_is_ready_at_any_time() -> None:
    """200,000 characters in the cloud, and a local view that is never above start."""
    state = ViewState(0, 0, ())
    sources: list[int] = []
    for turn in range(1_000):
        pair = (Mark(2 * turn + 1, 100, True), Mark(2 * turn + 2, 100, False))
        state = replace(state, tail=(*state.tail, *pair))
        debt = plan_warm(LOCAL, state)
        if debt is not None:
            sources += [span.chars for span in debt.spans]
            state = written(state, debt)
        arriving = replace(state, tail=(*state.tail, Mark(2 * turn + 3, 100, True)))
        assert plan_backlog(LOCAL, arriving) is None
        if arriving.total > LOCAL.ceiling:
            fold = plan_fold(LOCAL, arriving)
            assert fold is not None and fold.kind == "fold"
            assert fold.memory + fold.verbatim <= LOCAL.start + 200
    # 48,000 - 16,000 = 32,000, then 1,100 less each time
    assert sources[:3] == [32_000, 31_000, 30_000]
    assert len(sources) == 6


def test_an_import_is_warmed_in_spans_as_large_as_may_be() -> None:
    debt = plan_warm(LOCAL, ViewState(0, 0, even(150_000)))
    assert debt is not None
    # (150,000 - 16,000) / 32,000 = 4.2: 4 x 32,000 now, the rest when it is worth it
    assert [span.chars for span in debt.spans] == [32_000] * 4


@pytest.mark.parametrize(
    ("limits", "state"),
    [
        (LOCAL, ViewState(0, 0, even(48_000))),
        (LOCAL, ViewState(0, 0, even(70_000), coming=(row(1, 240, 24_000, None),))),
        (LOCAL, ViewState(0, 0, (Mark(1, 70_000, True),))),
        (replace(LOCAL, keep=47_000), ViewState(0, 0, even(48_200))),
    ],
)
def test_nothing_to_warm(limits: Limits, state: ViewState) -> None:
    assert plan_warm(limits, state) is None


# -- views that count messages --------------------------------------------------------------------

COUNTED = replace(LOCAL, start=40, ceiling=60, headroom=20, keep=10, messages=True)


def test_a_backlog_in_messages() -> None:
    assert plan_backlog(COUNTED, arrived(5_800)) is None, "59 with the newest"
    state = arrived(6_000)
    debt = plan_backlog(COUNTED, state)
    assert debt is not None
    # 60 - 40 = 20 are what a fold leaves, beside the newest
    assert debt.border == 40
    told = written(state, debt)
    assert plan_backlog(COUNTED, told) is None
    fold = plan_fold(COUNTED, told)
    assert fold is not None
    assert (fold.kind, fold.border) == ("fold", 40)


def test_too_many_chapters_wait_for_their_gist_also_where_messages_are_counted() -> None:
    rows = [row(at * 10 + 1, at * 10 + 10, 1_000, 1_100) for at in range(15)]
    # 15 x 1,100 = 16,500 > 2 x 6,000
    state = arrived(15_000 + 1_000, *rows)
    assert plan_backlog(COUNTED, state) == Debt(150, ())


def test_what_is_kept_warm_in_messages() -> None:
    state = arrived(10_000)
    debt = plan_warm(COUNTED, state)
    assert debt is not None
    assert 101 - debt.border >= COUNTED.keep
    assert plan_warm(COUNTED, written(state, debt)) is None
