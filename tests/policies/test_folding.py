"""Fold plans: the worked numbers of the design as tables, Laws 3 to 6 as properties."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.folding import is_look_due, plan_debt, plan_fold, plan_token_cut
from policies.ground import foresee_length, memory_chars
from policies.values import (
    ChapterState,
    Debt,
    Fold,
    GistState,
    Limits,
    Mark,
    Span,
    ViewState,
)
from tests.policies.life import LOCAL, Life

CLOUD = replace(LOCAL, start=200_000, ceiling=240_000, headroom=40_000, keep=100_000, stack=12_000)


def marks(*sizes: int, after: int = 0) -> tuple[Mark, ...]:
    """User and assistant in turn, the user first, behind the depth ``after``."""
    return tuple(Mark(after + i + 1, size, i % 2 == 0) for i, size in enumerate(sizes))


def even(chars: int, each: int = 100, after: int = 0) -> tuple[Mark, ...]:
    """``chars`` characters in messages of ``each``."""
    return marks(*[each] * (chars // each), after=after)


def row(
    first: int, last: int, source: int, length: int | None, stand_in: bool = False
) -> ChapterState:
    return ChapterState(first, last, source, length, stand_in)


# -- the debt ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("memory", "verbatim", "tail", "chapters"),
    [
        # 31,000 - 1,100 = 29,900; 48,200 - 29,900 = 18,300
        (0, 48_200, 29_900, [18_300]),
        # 31,000 - 4,400 - 1,100 = 25,500; 43,700 - 25,500 = 18,200
        (4_400, 43_700, 25_500, [18_200]),
        # pins: 31,000 - 14,600 - 1,100 = 15,300, so keep 16,000; 33,500 - 16,000 = 17,500
        (14_600, 33_500, 16_000, [17_500]),
        # from the cloud: 31,000 - 4 x 1,100 = 26,600; 123,400 = 4 x 30,850
        (0, 150_000, 26_600, [30_800, 30_900, 30_800, 30_900]),
        # pins: 31,000 - 29,900 - 1,100 = 0, so keep; 18,200 - 16,000 = 2 x 1,100, just enough
        (29_900, 18_200, 16_000, [2_200]),
    ],
)
def test_the_worked_numbers(memory: int, verbatim: int, tail: int, chapters: list[int]) -> None:
    each = 50
    state = ViewState(border=0, memory=memory, fixed=memory, tail=even(verbatim, each))
    debt = plan_debt(LOCAL, state)
    assert debt is not None
    assert verbatim - debt.border * each == tail
    assert sum(span.chars for span in debt.spans) == verbatim - tail
    assert len(debt.spans) == len(chapters)
    for span, wanted in zip(debt.spans, chapters, strict=True):
        assert abs(span.chars - wanted) <= 100


def test_a_giant_message_is_one_chapter_of_its_own() -> None:
    sizes = [500] * 60 + [60_000, 500] + [500] * 178  # 30,000 + 60,500 + 89,000
    debt = plan_debt(LOCAL, ViewState(border=0, memory=0, tail=marks(*sizes)))
    assert debt is not None
    # 30,000 | 60,000 | the rest in spans of at most 32,000
    assert debt.spans[0] == Span(1, 60, 30_000)
    assert debt.spans[1] == Span(61, 61, 60_000)
    assert all(span.chars <= 32_000 for span in debt.spans[2:])
    assert debt.spans[-1].last == debt.border


@pytest.mark.parametrize(
    ("why", "state"),
    [
        ("at start, not above it", ViewState(0, 0, even(48_000))),
        (
            "the row on its way leaves 1,100 + 29,900 = 31,000",
            ViewState(0, 0, even(48_200), coming=(row(1, 183, 18_300, None),)),
        ),
        (
            "it still leaves 1,100 + 36,000 = 37,100 <= 48,000 - 8,500",
            ViewState(0, 0, even(54_300), coming=(row(1, 183, 18_300, None),)),
        ),
        (
            "18,100 - 16,000 = 2,100 is less than 2 x 1,100",
            ViewState(0, 30_000, even(18_100), fixed=30_000),
        ),
        ("nothing stands above keep", ViewState(0, 40_000, even(15_000), fixed=40_000)),
        ("no tail may begin anywhere", ViewState(0, 0, (Mark(1, 50_000, False),))),
        (
            "a gist that came meanwhile makes room by itself: 1,500 + 36,000 = 37,500",
            ViewState(100, 12_500, even(36_000, after=100), gist=GistState(100, 1_500)),
        ),
    ],
)
def test_no_debt(why: str, state: ViewState) -> None:
    assert plan_debt(LOCAL, state) is None, why


def test_new_spans_begin_behind_the_last_row() -> None:
    """Warm rows of another policy are used, and the rest is asked for: B16, B19."""
    coming = (row(1, 200, 20_000, 1_100), row(201, 400, 20_000, None))
    debt = plan_debt(LOCAL, ViewState(0, 0, even(100_000), coming=coming))
    # 31,000 - 2 x 1,100 - 1 x 1,100 = 27,700 to keep; 100,000 - 40,000 - 27,700 = 32,300 > 32,000
    # so two chapters: 26,600 to keep, 33,400 in two spans
    assert debt == Debt(734, (Span(401, 566, 16_600), Span(567, 734, 16_800)))


def test_borders_stand_before_user_messages() -> None:
    # the 29,900 wanted begin inside a reply of 3,000: the next user message is taken
    sizes = [200, 3_000] * 15 + [200]
    debt = plan_debt(LOCAL, ViewState(0, 0, marks(*sizes)))
    assert debt is not None
    # 48,200: 6 x 3,200 = 19,200 folded leave 29,000 <= 29,900; 5 would leave 32,200
    assert debt.border == 12
    assert debt.spans == (Span(1, 12, 19_200),)


# -- the fold ---------------------------------------------------------------------------------


def waiting(*coming: ChapterState, chars: int = 48_600, newest: int = 200) -> ViewState:
    """A first fold's view: ``chars`` verbatim and a newest message."""
    tail = even(chars)
    return ViewState(0, 0, (*tail, Mark(len(tail) + 1, newest, True)), coming=coming)


def test_the_fold_takes_out_exactly_the_span_that_was_summarized() -> None:
    fold = plan_fold(LOCAL, waiting(row(1, 183 - 1, 18_200, 1_250)))
    # 48,800 - 18,200 = 30,600 verbatim, 1,250 memory
    assert fold == Fold("fold", 182, (0,), (), (), memory=1_250, verbatim=30_600)


@pytest.mark.parametrize(
    ("why", "state"),
    [
        ("at start", waiting(row(1, 182, 18_200, 1_100), chars=47_800)),
        (
            "the turn that crosses start goes out as it is, though warm rows are ready",
            waiting(row(1, 182, 18_200, 1_100), chars=47_000, newest=2_000),
        ),
        ("its chapter is pending", waiting(row(1, 182, 18_200, None))),
        ("there is no row", waiting()),
        (
            "the second of two that are needed is pending",
            waiting(row(1, 60, 6_000, 1_100), row(61, 182, 12_200, None)),
        ),
        ("the row's end is no place for a tail to begin", waiting(row(1, 181, 18_100, 1_100))),
        ("the row would leave less than keep", waiting(row(1, 400, 40_000, 1_100))),
        ("the chapter is no shorter than its span", waiting(row(1, 2, 200, 200))),
    ],
)
def test_no_fold(why: str, state: ViewState) -> None:
    assert plan_fold(LOCAL, state) is None, why


def test_a_fold_goes_no_further_than_the_goal() -> None:
    """Of three warm rows two suffice, and the pending third is not waited for."""
    coming = (row(1, 100, 10_000, 1_100), row(101, 220, 12_000, 900), row(221, 300, 8_000, None))
    fold = plan_fold(LOCAL, waiting(*coming))
    # after the first: 1,100 + 38,800 > 31,000; after the second: 2,000 + 26,800 = 28,800
    assert fold == Fold("fold", 220, (0, 1), (), (), memory=2_000, verbatim=26_800)


def test_a_fold_that_cannot_reach_the_goal_stops_at_keep() -> None:
    coming = (row(1, 100, 10_000, 900), row(101, 200, 10_000, 900), row(201, 400, 20_000, 900))
    state = replace(waiting(*coming, chars=41_800), memory=14_600, fixed=14_600)
    fold = plan_fold(LOCAL, state)
    # 14,600 + 1,800 + 22,000 = 38,400 > 31,000, but a third row would leave 2,000 < 16,000
    assert fold == Fold("fold", 200, (0, 1), (), (), memory=16_400, verbatim=22_000)


def test_a_fold_shows_the_newest_gist_and_drops_the_notes() -> None:
    stack = (row(11, 20, 1_000, 700),)
    state = ViewState(
        border=20,
        memory=7_000,  # as shown: the gist before, and two chapters that the new one covers
        tail=even(42_000, after=20),
        coming=(row(21, 220, 20_000, 1_200),),
        stack=stack,
        gist=GistState(10, 1_500),
        fixed=300,
        notes=3_000,
    )
    assert state.total == 7_000 + 42_000 + 3_000
    fold = plan_fold(LOCAL, state)
    # 300 + 1,500 + 700 + 1,200 = 3,700 and 42,000 - 20,000 = 22,000
    assert fold == Fold("fold", 220, (0,), (), (), memory=3_700, verbatim=22_000)


@pytest.mark.parametrize(
    ("newest", "kind", "border"),
    [
        # 48,600 - 18,200 = 30,400 and 1,250: 31,650 is above 31,000, so the second row goes too;
        # what is left, 700 + 1,250 + 28,400 = 30,350, is the same for any newest message
        (0, "fold", 202),
        (200, "fold", 202),
        (7_399, "fold", 202),
        (25_649, "fold", 202),
        # 30,350 + 25,650 = 56,000: the ceiling decides, all rows go and the rest with a stand-in:
        # 31,000 - 25,650 - 1,950 - 1,100 = 2,300 stay beside the newest message
        (25_650, "cut", 464),
    ],
)
def test_a_fold_does_not_look_at_the_newest_message(newest: int, kind: str, border: int) -> None:
    coming = (row(1, 182, 18_200, 1_250), row(183, 202, 2_000, 700))
    fold = plan_fold(LOCAL, waiting(*coming, newest=newest))
    assert fold is not None
    assert (fold.kind, fold.border) == (kind, border)
    assert fold.verbatim == 48_600 - 100 * border + newest


def test_a_greeting_before_the_first_user_message_is_folded_with_it() -> None:
    tail = (Mark(1, 300, False), *even(48_000, after=1), Mark(482, 100, True))
    fold = plan_fold(LOCAL, ViewState(0, 0, tail, coming=(row(1, 181, 18_300, 1_100),)))
    assert fold is not None and fold.border == 181


def test_a_newer_gist_alone_makes_room() -> None:
    """After a migration 30 chapters fill the view; their gist renews it, the border stays."""
    tail = (*even(16_000, after=900), Mark(1_061, 100, True))
    state = ViewState(900, 33_000, tail, gist=GistState(900, 1_500))
    fold = plan_fold(LOCAL, state)
    # 33,000 + 16,100 > 48,000; 1,500 + 16,100 = 17,600
    assert fold == Fold("fold", 900, (), (), (), memory=1_500, verbatim=16_100)
    # 24,000 + 16,100 = 40,100 would not restore half the headroom: 48,000 - 8,500 = 39,500
    assert plan_fold(LOCAL, replace(state, gist=GistState(900, 24_000))) is None
    # at the ceiling whatever it saves is welcome
    full = ViewState(
        900, 41_000, (Mark(901, 15_000, True),), gist=GistState(900, 24_000), fixed=14_500
    )
    fold = plan_fold(LOCAL, full)
    assert fold is not None
    assert (fold.kind, fold.border, fold.memory) == ("fold", 900, 38_500)


# -- the ceiling ------------------------------------------------------------------------------


def test_at_the_ceiling_the_waiting_span_is_folded_with_a_stand_in() -> None:
    fold = plan_fold(LOCAL, waiting(row(1, 182, 18_200, None), chars=55_900, newest=100))
    # 37,800 + 1,100 = 38,900 > 31,000, so a span without a row goes too:
    # 31,000 - 1,100 - 1,100 = 28,800 to keep, 9,000 more to fold
    assert fold == Fold(
        "cut", 272, (0,), (0,), (Span(183, 272, 9_000),), memory=2_200, verbatim=28_800
    )


def test_one_character_below_the_ceiling_waits() -> None:
    assert plan_fold(LOCAL, waiting(row(1, 182, 18_200, None), chars=55_900, newest=99)) is None


def test_ready_rows_spare_a_hard_cut() -> None:
    """What is ready makes room below start by itself: no stand-in is shown then."""
    coming = (row(1, 182, 18_200, 1_000), row(183, 300, 11_800, None))
    fold = plan_fold(LOCAL, waiting(*coming, chars=56_000))
    assert fold == Fold("fold", 182, (0,), (), (), memory=1_000, verbatim=38_000)


def test_ready_rows_fold_at_the_ceiling_too_though_a_huge_message_keeps_it_above_start() -> None:
    # before it 48,400 > 48,000, with it 62,800; 62,800 - 18,200 + 1,100 = 45,700
    fold = plan_fold(LOCAL, waiting(row(1, 182, 18_200, 1_100), chars=48_400, newest=14_400))
    assert fold is not None
    assert (fold.kind, fold.border, fold.verbatim) == ("fold", 182, 44_600)


def test_a_backlog_from_the_cloud_without_any_row_is_cut_into_stand_ins() -> None:
    fold = plan_fold(LOCAL, waiting(chars=149_900, newest=100))
    assert fold is not None
    assert (fold.kind, len(fold.new_spans)) == ("cut", 4)
    assert (fold.memory, fold.verbatim) == (4_400, 26_600)


def test_stand_ins_made_ahead_count_as_ready() -> None:
    coming = (row(1, 182, 18_200, 1_100, stand_in=True),)
    fold = plan_fold(LOCAL, waiting(*coming))
    assert fold is not None and fold.kind == "fold" and fold.stand_ins == ()


def test_the_newest_user_message_is_never_cut() -> None:
    """E05, E11: a newest message above the ceiling, alone, stays whole; all else is folded."""
    state = ViewState(0, 0, marks(55_000, 10, 57_000))
    fold = plan_fold(LOCAL, state)
    assert fold is not None
    assert (fold.border, fold.verbatim) == (2, 57_000)
    assert fold.new_spans == (Span(1, 1, 55_000), Span(2, 2, 10))
    assert plan_fold(LOCAL, ViewState(0, 0, marks(57_000))) is None


def test_a_tool_group_of_the_newest_turn_stays_with_it() -> None:
    tail = (
        *even(50_000),
        Mark(501, 300, True),
        Mark(502, 100, False),
        Mark(503, 20_000, False, bound=True),
    )
    fold = plan_fold(LOCAL, ViewState(0, 0, tail))
    assert fold is not None
    # 20,400 of the newest group: 31,000 - 2 x 1,100 = 28,800 holds 8,400 more
    assert (fold.border, fold.verbatim) == (416, 28_800)


def test_chapters_that_will_be_condensed_do_not_cost_the_tail() -> None:
    # 2,000,000 - 16,000 = 62 x 32,000: 62 x 1,100 = 68,200 alone are above the ceiling
    state = ViewState(0, 0, even(2_000_000, each=1_000))
    fold = plan_fold(LOCAL, state)
    assert fold is not None
    assert (fold.kind, fold.verbatim, fold.memory) == ("cut", 16_000, 62 * 1_100)
    # behind it 16,000 and 68,200 are above the ceiling still; the stack is condensed, the tail
    # stays, although a cut down to the last user message would be possible
    stack = tuple(row(32 * i + 1, 32 * i + 32, 32_000, 1_100) for i in range(62))
    state = ViewState(1_984, 68_200, even(16_000, each=1_000, after=1_984), stack=stack)
    assert plan_fold(LOCAL, state) is None
    state = replace(state, gist=GistState(1_888, 1_500), stack=stack[59:])  # 1,500 + 3 x 1,100
    fold = plan_fold(LOCAL, state)
    assert fold is not None
    assert (fold.border, fold.memory, fold.verbatim) == (1_984, 4_800, 16_000)


def test_a_cut_goes_below_keep_only_where_the_ceiling_demands_it() -> None:
    # pins of 42,000: with keep 16,000 it is 42,000 + 1,100 + 16,000 > 56,000; goal out of reach
    state = ViewState(0, 42_000, (*even(20_000), Mark(201, 400, True)), fixed=42_000)
    fold = plan_fold(LOCAL, state)
    assert fold is not None
    assert (fold.kind, fold.border, fold.verbatim) == ("cut", 200, 400)
    # pins of 38,000: 38,000 + 1,100 + 16,000 = 55,100 stays below it
    state = ViewState(0, 38_000, (*even(20_000), Mark(201, 400, True)), fixed=38_000)
    fold = plan_fold(LOCAL, state)
    assert fold is not None
    assert (fold.border, fold.verbatim) == (44, 16_000)


def test_memory_that_cannot_shrink_is_no_reason_to_fold_for_ever() -> None:
    """D11, E11: above the ceiling by its pins alone, only a chapter's worth is folded."""
    base = ViewState(0, 60_000, (*marks(300, 300), Mark(3, 200, True)), fixed=60_000)
    assert plan_fold(LOCAL, base) is None
    # 4,000 as one stand-in of 1,100 save 2,900
    worth = replace(base, tail=(*marks(2_000, 2_000), Mark(3, 200, True)))
    fold = plan_fold(LOCAL, worth)
    assert fold is not None and (fold.border, fold.memory) == (2, 61_100)


def test_the_cloud_keeps_its_hundred_thousand() -> None:
    debt = plan_debt(CLOUD, ViewState(0, 0, even(200_400)))
    assert debt is not None
    # 160,000 - 2 x 1,100 = 157,800; 200,400 - 157,800 = 42,600 in two spans
    assert debt == Debt(426, (Span(1, 212, 21_200), Span(213, 426, 21_400)))


# -- the token guard --------------------------------------------------------------------------


def test_a_cut_for_the_window_is_large() -> None:
    """C03: down to 31/48 of the room, so that the next turns need none."""
    state = waiting(chars=40_000)  # below start in characters, but 1 token each
    tokens = [mark.chars for mark in state.tail]
    fold = plan_token_cut(LOCAL, state, tokens=tokens, ratio=1.0, room=36_000)
    assert fold is not None
    # 36,000 x 31 / 48 = 23,250; 23,250 - 1,100 = 22,150 -> 22,000 + 200 would be 50 too many
    assert (fold.kind, fold.border, fold.memory, fold.verbatim) == ("cut", 182, 1_100, 22_000)


def test_a_cut_for_the_window_uses_ready_rows() -> None:
    state = waiting(row(1, 300, 30_000, 1_000), chars=40_000)
    tokens = [mark.chars * 2 for mark in state.tail]
    fold = plan_token_cut(LOCAL, state, tokens=tokens, ratio=0.5, room=36_000)
    # 2,000 tokens of memory, 20,400 of verbatim
    assert fold == Fold("fold", 300, (0,), (), (), memory=2_000, verbatim=20_400)


@pytest.mark.parametrize("room", [-5, 0, 1_299])
def test_what_no_cut_can_fit_is_an_overflow(room: int) -> None:
    state = waiting(chars=40_000)  # the newest message 200, the stand-in 1,100
    tokens = [mark.chars for mark in state.tail]
    assert plan_token_cut(LOCAL, state, tokens=tokens, ratio=1.0, room=room) is None


def test_a_single_message_cannot_be_cut_to_the_window() -> None:
    state = ViewState(0, 0, marks(9_000))
    assert plan_token_cut(LOCAL, state, tokens=[9_000], ratio=1.0, room=8_000) is None


# -- sizes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gist", "chapters", "fixed", "total"),
    [
        (0, [], 0, 0),
        (0, [1_100, 900], 250, 2_250),
        (1_500, [1_100], 250, 2_850),
    ],
)
def test_memory_chars(gist: int, chapters: list[int], fixed: int, total: int) -> None:
    assert memory_chars(gist, chapters, fixed) == total


@pytest.mark.parametrize(
    ("chapter", "length"),
    [
        (Span(1, 2, 18_000), 1_100),
        (Span(1, 2, 700), 700),
        (row(1, 2, 18_000, None), 1_100),
        (row(1, 2, 700, None), 700),
        (row(1, 2, 18_000, 1_900), 1_900),
    ],
)
def test_a_coming_chapter_is_reckoned_with_its_asked_length(
    chapter: ChapterState | Span, length: int
) -> None:
    assert foresee_length(chapter, LOCAL) == length


# -- laws -------------------------------------------------------------------------------------

SMALL = Limits(
    start=4_800,
    ceiling=5_600,
    headroom=1_700,
    keep=1_600,
    split=3_200,
    length=110,
    stack=600,
    gist_length=150,
)

message_sizes = st.integers(0, 400) | st.integers(0, 8_000)


@st.composite
def view_states(draw: st.DrawFn) -> ViewState:
    """Any view: rows ready, pending or stand-in, tools, a greeting, giant messages."""
    border = draw(st.integers(0, 50))
    sizes = draw(st.lists(message_sizes, min_size=1, max_size=80))
    kinds = draw(st.lists(st.sampled_from("uaat"), min_size=len(sizes), max_size=len(sizes)))
    tail = [
        Mark(border + 1 + i, size, kind == "u", kind == "t" and i > 0)
        for i, (size, kind) in enumerate(zip(sizes, kinds, strict=True))
    ]
    coming = []
    at = 0
    while at < len(tail) and draw(st.booleans()):
        end = draw(st.integers(at + 1, len(tail)))
        source = sum(mark.chars for mark in tail[at:end])
        length = draw(st.none() | st.integers(1, 200))
        coming.append(ChapterState(tail[at].depth, tail[end - 1].depth, source, length))
        at = end
    fixed = draw(st.integers(0, 2_000))
    return ViewState(
        border=border,
        memory=fixed + draw(st.integers(0, 1_000)),
        tail=(*tail, Mark(border + len(tail) + 1, draw(message_sizes), True)),
        coming=tuple(coming),
        fixed=fixed,
        notes=draw(st.integers(0, 600)),
    )


def check_spans(state: ViewState, spans: tuple[Span, ...], first: int, border: int) -> None:
    """No gap, no overlap, messages' own sizes, tool groups whole, large only where one is."""
    by_depth = {mark.depth: mark for mark in state.tail}
    at = first
    for span in spans:
        assert span.first == at
        inside = [by_depth[depth] for depth in range(span.first, span.last + 1)]
        assert span.chars == sum(mark.chars for mark in inside)
        assert span.first == first or not inside[0].bound
        if span.chars > SMALL.split:
            assert all(mark.bound for mark in inside[1:])
        at = span.last + 1
    assert at == border + 1
    assert by_depth[border + 1].opens


def lengths_of(*chapters: ChapterState | Span) -> list[int]:
    return [foresee_length(chapter, SMALL) for chapter in chapters]


@given(view_states())
def test_a_debt_continues_the_rows_up_to_a_border_within_keep(state: ViewState) -> None:
    debt = plan_debt(SMALL, state)
    assert plan_debt(SMALL, state) == debt
    if debt is None:
        return
    assert state.total > SMALL.start
    first = state.coming[-1].last + 1 if state.coming else state.border + 1
    check_spans(state, debt.spans, first, debt.border)
    tail = sum(mark.chars for mark in state.tail if mark.depth > debt.border)
    lengths = lengths_of(*state.coming, *debt.spans)
    after = memory_chars(0, lengths, state.fixed) + tail
    assert tail >= SMALL.keep
    if after > SMALL.goal:
        # the floor decided: at the next opening the tail would be smaller than keep
        later = [m.depth for m in state.tail if m.opens and m.depth > debt.border + 1]
        assert not later or SMALL.keep > sum(m.chars for m in state.tail if m.depth >= later[0])


@given(view_states())
def test_a_fold_moves_forward_keeps_the_newest_message_and_saves(state: ViewState) -> None:
    fold = plan_fold(SMALL, state)
    assert plan_fold(SMALL, state) == fold
    if fold is None:
        return
    rows = [state.coming[index] for index in fold.chapters]
    assert fold.chapters == tuple(range(len(rows)))
    end = rows[-1].last if rows else state.border
    if fold.border > state.border:
        check_spans(state, fold.new_spans, end + 1, fold.border)
    assert state.border <= fold.border < state.tail[-1].depth
    assert fold.border > state.border or not (rows or fold.new_spans)
    assert fold.stand_ins == tuple(i for i in fold.chapters if state.coming[i].length is None)
    assert (fold.kind == "cut") == bool(fold.stand_ins or fold.new_spans)
    assert fold.verbatim == sum(m.chars for m in state.tail if m.depth > fold.border)
    lengths = lengths_of(*rows, *fold.new_spans)
    assert fold.memory == memory_chars(0, lengths, state.fixed)
    assert fold.memory + fold.verbatim < state.total
    if fold.kind == "cut":
        assert state.total >= SMALL.ceiling


@given(view_states(), message_sizes)
def test_a_fold_is_known_before_the_newest_message(state: ViewState, newest: int) -> None:
    """What is due at a reply's end, with a newest message of nothing, is what comes."""
    *before, last = state.tail
    empty = replace(state, tail=(*before, replace(last, chars=0)))
    foreseen = plan_fold(SMALL, empty)
    now = replace(state, tail=(*before, replace(last, chars=newest)))
    fold = plan_fold(SMALL, now)
    if foreseen is None or foreseen.kind == "cut":
        assert fold is None or now.total >= SMALL.ceiling
    elif foreseen.border == state.border and empty.total >= SMALL.ceiling:
        pass  # above the ceiling a renewed memory may have to give way to a cut
    elif foreseen.memory + foreseen.verbatim + newest < SMALL.ceiling:
        assert fold == replace(foreseen, verbatim=foreseen.verbatim + newest)


@given(view_states(), st.integers(-100, 6_000), st.sampled_from([0.4, 1.0, 4.0]))
def test_a_token_cut_fits_the_room(state: ViewState, room: int, ratio: float) -> None:
    tokens = [round(mark.chars / ratio) for mark in state.tail]
    fold = plan_token_cut(SMALL, state, tokens=tokens, ratio=ratio, room=room)
    if fold:
        assert fold.memory + fold.verbatim <= room
        assert state.border < fold.border < state.tail[-1].depth


@given(
    st.lists(st.tuples(message_sizes, message_sizes, st.integers(1, 60)), min_size=20, max_size=120)
)
def test_a_life_never_passes_the_ceiling_but_by_its_newest_message(
    turns: list[tuple[int, int, int]],
) -> None:
    """Late and failing summaries, giant messages: Laws 4, 5 and 6 over whole conversations."""
    life = Life(SMALL, fixed=60)
    shown_before = life.shown
    for user, reply, wait in turns:
        sent = life.take_turn(user, reply, wait)
        assert sent.tail[-1] == Mark(len(life.marks) - 1, user, True)
        if sent.total >= SMALL.ceiling:
            assert sent.tail == (sent.tail[-1],) or sent.total - user < SMALL.ceiling
        assert life.shown[1] >= shown_before[1]
        shown_before = life.shown
        # B16: the rows cover the path from its root without gap or overlap, the view too
        starts = [1, *(row.last + 1 for row in life.rows)]
        assert [row.first for row in life.rows] == starts[:-1]
        assert life.shown[1] in [0, *(row.last for row in life.rows)]
    again = Life(SMALL, fixed=60)
    for user, reply, wait in turns:
        again.take_turn(user, reply, wait)
    assert again == life


@pytest.mark.parametrize("seed", range(3))
def test_an_even_conversation_comes_near_the_ideal(seed: int) -> None:
    """C08: 1,650 messages, 252,800 characters: 12 folds, 3 major GCs, as an ideal fold would.

    A fold frees 17,000 and reads 31,000 again: 12 x 31,000 + 252,800 = 2.5 times the floor at
    most; chapters written 60 s after the turn, a turn every 20 s.
    """
    draw = Random(seed)
    sizes = [max(5, round(draw.gauss(153.2, 60))) for _ in range(1_650)]
    life = Life(LOCAL)
    for user, reply in zip(sizes[::2], sizes[1::2], strict=True):
        life.take_turn(user, reply)
    assert 11 <= len(life.folds) <= 13
    assert [fold.kind for fold in life.folds] == ["fold"] * len(life.folds)
    assert life.majors == 3
    assert max(life.prompts) < 50_000
    assert 1 - life.reread / sum(life.prompts) >= 0.97
    assert life.reread <= 2.6 * sum(sizes)


def test_turns_of_2500_change_the_prefix_once_a_fold() -> None:
    """C03: 30 turns of 2,500 characters; without any summary in time the ceiling still cuts
    in large steps."""
    for wait, kind in ((3, "fold"), (1_000, "cut")):
        life = Life(LOCAL, wait=wait)
        for _ in range(30):
            life.take_turn(1_250, 1_250)
        # 75,000 in all: 48,000 fill it, each step frees 17,000 (cuts wait for 56,000: 25,000)
        assert [fold.kind for fold in life.folds] in ([kind], [kind] * 2)


def test_the_turn_after_the_chapter_is_ready_folds() -> None:
    """Law 5 turn by turn: crossing, two turns of waiting, the fold, and the prefix after it."""
    life = Life(LOCAL, wait=3)
    folded: list[int] = []
    for turn in range(1, 105):
        life.take_turn(250, 250)
        if life.folds and not folded:
            folded.append(turn)
    # 96 turns are 48,000; with turn 97 it is 48,500 and the debt stands; its text comes at 100
    assert folded == [100]
    # 31,000 - 1,100 = 29,900: 59 turns of 500 stay, 48,500 - 29,500 = 19,000 go
    assert life.debts == [Debt(76, (Span(1, 76, 19_000),))]
    assert life.prompts[96:99] == [48_250, 48_750, 49_250]  # 96 x 500 + 250 and so on: whole
    assert life.prompts[99:101] == [49_750 - 19_000 + 1_100, 49_750 - 19_000 + 1_100 + 500]


# -- views that count messages --------------------------------------------------------------------

COUNTED = replace(LOCAL, start=40, ceiling=60, headroom=20, keep=10, messages=True)
"""Of 40 messages a fold leaves 20, and 10 at the least."""


def counted(count: int, *coming: ChapterState, memory: int = 0, chars: int = 100) -> ViewState:
    return ViewState(0, memory, marks(*[chars] * count), coming=coming, notes=900)


@pytest.mark.parametrize("memory", [0, 500_000])
@pytest.mark.parametrize("chars", [3, 100])
def test_a_debt_in_messages(memory: int, chars: int) -> None:
    """Neither memory nor notes nor lengths count; 41 - 22 = 19 is the first below 21."""
    assert plan_debt(COUNTED, counted(40, memory=memory, chars=chars)) is None
    debt = plan_debt(COUNTED, counted(41, memory=memory, chars=chars))
    assert debt == Debt(22, (Span(1, 22, 22 * chars),))
    asked = row(1, 22, 22 * chars, None)
    assert plan_debt(COUNTED, counted(42, asked, memory=memory, chars=chars)) is None


def test_a_fold_in_messages() -> None:
    ready = row(1, 22, 2_200, 1_100)
    # without the newest there are 40: not above the start yet
    assert plan_fold(COUNTED, counted(41, ready)) is None
    assert plan_fold(COUNTED, counted(43, ready)) == Fold("fold", 22, (0,), (), (), 0, 21)
    assert plan_fold(COUNTED, counted(43, row(1, 22, 2_200, None))) is None


def test_a_cut_in_messages() -> None:
    # 60 - 40 = 20 are the first that are not above what a fold leaves
    assert plan_fold(COUNTED, counted(59)) is None
    plan = plan_fold(COUNTED, counted(60))
    assert plan == Fold("cut", 40, (), (), (Span(1, 40, 4_000),), 0, 20)


def test_a_window_is_guarded_in_tokens_all_the_same() -> None:
    state = counted(30, row(1, 10, 1_000, 400), memory=0)
    plan = plan_token_cut(COUNTED, state, tokens=[100] * 30, ratio=4.0, room=1_500)
    # room x 20/40 = 750 tokens, of which 400 + 1,100 characters of memory take 375: 375 / 100
    assert plan is not None
    assert (plan.border, plan.memory, plan.verbatim) == (28, 375, 200)


@given(st.integers(1, 400), st.integers(1, 60))
def test_a_view_in_messages_never_holds_more_than_its_ceiling(turns: int, wait: int) -> None:
    tail: list[Mark] = []
    border = 0
    rows: list[ChapterState] = []
    for turn in range(1, turns + 1):
        tail.append(Mark(2 * turn - 1, turn % 7 * 40, True))
        state = ViewState(
            border, 0, tuple(tail), coming=tuple(one for one in rows if one.first > border)
        )
        if plan := plan_fold(COUNTED, state):
            rows += [row(one.first, one.last, one.chars, 9, True) for one in plan.new_spans]
            rows = [
                replace(one, length=9) if one.last <= plan.border and one.length is None else one
                for one in rows
            ]
            border = plan.border
            tail = [mark for mark in tail if mark.depth > border]
        assert len(tail) < COUNTED.ceiling
        tail.append(Mark(2 * turn, 50, False))
        state = ViewState(
            border, 0, tuple(tail), coming=tuple(one for one in rows if one.first > border)
        )
        if debt := plan_debt(COUNTED, state):
            rows += [row(span.first, span.last, span.chars, None) for span in debt.spans]
        if turn % wait == 0:
            rows = [replace(one, length=one.length or 9) for one in rows]


@pytest.mark.parametrize(
    ("before", "after", "due"),
    [
        (47_900, 48_300, False),  # 43 x 1,100 = 47,300 and 44 x 1,100 = 48,400: none is passed
        (48_300, 48_500, True),
        (48_400, 49_400, False),
        (10_000, 30_000, True),
        (48_400, 48_400, False),
    ],
)
def test_more_debt_is_looked_for_once_a_chapter_length(before: int, after: int, due: bool) -> None:
    assert is_look_due(LOCAL, before, after) is due


@given(st.lists(st.integers(0, 5_000), min_size=1, max_size=60), st.integers(0, 100_000))
def test_a_look_is_put_off_by_less_than_a_chapter_length(turns: list[int], before: int) -> None:
    put_off = 0
    for chars in turns:
        if is_look_due(LOCAL, before, before + chars):
            put_off = 0
        else:
            put_off += chars
            assert put_off < LOCAL.length
        before += chars
