"""How much may be recalled beside one message: the arithmetic of every bound."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.recall.room import between_folds, can_search, notes_room, search_reserve
from policies.schema import Recall
from policies.values import Limits


def limits(ceiling=56_000):
    scale = ceiling / 56_000
    return Limits(
        start=int(48_000 * scale),
        ceiling=ceiling,
        headroom=int(17_000 * scale),
        keep=int(16_000 * scale),
        split=32_000,
        length=1_100,
        stack=6_000,
        gist_length=1_500,
    )


@pytest.mark.parametrize(
    ("total", "spent", "expected", "why"),
    [
        (31_000, 0, 1_500, "the turn's budget"),
        (40_000, 4_166, 1_500, "17,000 / 3 - 4,166 are just left"),
        (40_000, 5_200, 466, "5,666 - 5,200"),
        (40_000, 6_000, 0, "nothing is left until the next fold"),
        (40_000, 7_000, 0, "a budget that was lowered meanwhile"),
        (47_001, 0, 999, "48,000 - 47,001: up to the start of folding"),
        (48_000, 0, 0, "the rest is for what is said while chapters are made"),
        (60_000, 0, 0, "above the ceiling"),
    ],
)
def test_the_least_of_three_bounds(total, spent, expected, why):
    assert notes_room(Recall(), limits(), total=total, spent=spent) == expected, why


def test_a_small_view_gathers_no_more_than_a_share_of_what_a_fold_frees():
    """14,000 of 56,000: a headroom of 4,250, of which a third is 1,416."""
    narrow = limits(14_000)
    assert between_folds(Recall(), limits()) == 5_666
    assert between_folds(Recall(between_folds=5_000), limits()) == 5_000
    assert between_folds(Recall(), narrow) == 1_416
    assert notes_room(Recall(), narrow, total=5_000, spent=0) == 1_416
    assert notes_room(Recall(), narrow, total=5_000, spent=1_200) == 216


def test_a_view_that_counts_messages_has_no_bounds_in_characters():
    counted = replace(limits(100), messages=True)
    assert notes_room(Recall(), counted, total=90_000, spent=0) == 1_500
    assert notes_room(Recall(), counted, total=90_000, spent=5_900) == 100
    assert notes_room(Recall(), counted, total=90_000, spent=6_100) == 0


def test_no_budget_no_notes():
    assert notes_room(Recall(budget=0), limits(), total=0, spent=0) == 0


@given(st.integers(0, 5_000), st.integers(0, 20_000), st.integers(0, 80_000), st.integers(0, 9_000))
def test_no_notes_bring_a_view_above_its_start_or_beyond_a_budget(budget, between, total, spent):
    recall = Recall(budget=budget, between_folds=between)
    room = notes_room(recall, limits(), total=total, spent=spent)
    assert 0 <= room <= budget
    assert room == 0 or spent + room <= min(between, 5_666)
    assert room == 0 or total + room <= 48_000


SEARCHING = Recall(tool=True)


@pytest.mark.parametrize(
    ("ceiling", "reserve", "why"),
    [
        (56_000, 2_833, "half of 5,666"),
        (14_000, 708, "half of 1,416"),
        (10_000, 600, "of 1,011: what one search and its answer take"),
        (5_000, 505, "all of what a third of 1,517 leaves: none can be answered"),
    ],
)
def test_a_part_of_what_may_be_gathered_is_kept_for_the_model_s_own_searches(ceiling, reserve, why):
    assert search_reserve(SEARCHING, limits(ceiling)) == reserve, why
    assert search_reserve(Recall(), limits(ceiling)) == 0
    assert can_search(SEARCHING, limits(ceiling)) is (ceiling > 5_000)
    assert not can_search(Recall(), limits(ceiling))


def test_notes_leave_the_reserve_alone():
    narrow = limits(10_000)
    # 1,011 - 600
    assert notes_room(SEARCHING, narrow, total=1_000, spent=0) == 411
    assert notes_room(SEARCHING, narrow, total=1_000, spent=411) == 0
    assert notes_room(SEARCHING, limits(), total=40_000, spent=2_000) == 833


@given(st.integers(0, 20_000), st.integers(1_000, 200_000), st.integers(0, 9_000))
def test_notes_never_take_what_searches_are_kept(between, ceiling, spent):
    recall = Recall(between_folds=between, tool=True)
    most = between_folds(recall, limits(ceiling))
    room = notes_room(recall, limits(ceiling), total=0, spent=spent)
    assert room == 0 or spent + room + search_reserve(recall, limits(ceiling)) <= most
