"""Major GCs: when, and how much of the stack."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.generations import plan_gist_ahead, plan_gist_stand_in, plan_major
from policies.values import ChapterState, Fold, GistState, Limits, Major, Mark, ViewState
from tests.policies.life import LOCAL, Life


def stack(*lengths: int | None, after: int = 0) -> tuple[ChapterState, ...]:
    """Chapters over ten messages each, behind the depth ``after``."""
    return tuple(
        ChapterState(after + 10 * i + 1, after + 10 * i + 10, 18_000, length)
        for i, length in enumerate(lengths)
    )


@pytest.mark.parametrize(
    ("gist", "chapters", "major"),
    [
        (None, stack(), None),
        # 5 x 1,100 = 5,500
        (None, stack(*[1_100] * 5), None),
        # 6 x 1,100 = 6,600 > 6,000: 3 of 6
        (None, stack(*[1_100] * 6), Major(30, (0, 1, 2))),
        # 6 x 1,000 = 6,000 is not above it
        (None, stack(*[1_000] * 6), None),
        # 7 // 2 = 3
        (None, stack(*[1_000] * 7), Major(30, (0, 1, 2))),
        # one alone: at least one goes
        (None, stack(6_001), Major(10, (0,))),
        # behind a gist over the first 30: again 3 of 6
        (GistState(30, 1_500), stack(*[1_100] * 6, after=30), Major(60, (0, 1, 2))),
        # the newest gist covers three already, whether it is shown or not: 3,300 remain
        (GistState(30, 1_500), stack(*[1_100] * 6)[3:], None),
        # what has no text yet costs nothing
        (None, stack(1_100, 1_100, None, 4_000), None),
        (None, stack(3_100, 3_100, None, 4_000), Major(10, (0,))),
    ],
)
def test_plan_major(
    gist: GistState | None, chapters: tuple[ChapterState, ...], major: Major | None
) -> None:
    assert plan_major(LOCAL, gist, chapters) == major


def test_rows_under_the_gist_are_left_alone() -> None:
    """The stack may be given whole: what the gist covers is counted in no generation twice."""
    whole = stack(*[1_100] * 9)
    assert plan_major(LOCAL, GistState(30, 1_500), whole) == Major(60, (3, 4, 5))


@pytest.mark.parametrize(
    ("chapters", "major"),
    [
        (stack(), None),
        (stack(400), Major(10, (0,))),
        (stack(*[1_100] * 6), Major(60, (0, 1, 2, 3, 4, 5))),
        # what has no text yet waits, and what stands behind it
        (stack(1_100, None, 1_100), Major(10, (0,))),
        # 1,500 + 29 x 1,100 = 33,400 > 32,000: one call reads no more
        (stack(*[1_100] * 29), Major(270, tuple(range(27)))),
    ],
)
def test_a_rolling_memory_folds_all_that_is_written(
    chapters: tuple[ChapterState, ...], major: Major | None
) -> None:
    rolling = replace(LOCAL, rolling=True)
    gist = GistState(0, 1_500) if len(chapters) > 6 else None
    assert plan_major(rolling, gist, chapters) == major


def test_a_rolling_memory_condenses_and_is_made_ahead_as_any_other() -> None:
    """Without a model, and before a view is shown, only what is too much is folded together."""
    rolling = replace(LOCAL, rolling=True)
    state = ViewState(40, 44_000, (Mark(41, 12_000, True),), stack=stack(*[1_100] * 4))
    assert plan_gist_stand_in(rolling, state, None) is None
    assert plan_gist_ahead(rolling, state) is None
    many = replace(state, border=400, tail=(Mark(401, 12_000, True),), stack=stack(*[1_100] * 40))
    assert plan_gist_stand_in(rolling, many, None) == Major(200, tuple(range(20)))


@given(
    st.lists(st.none() | st.integers(1, 3_000), max_size=20),
    st.integers(0, 5),
    st.integers(100, 12_000),
)
def test_only_the_older_half_is_rewritten(
    lengths: list[int | None], covered: int, bound: int
) -> None:
    """Law 6: a major GC takes a row of chapters behind the gist, never the younger half."""
    limits: Limits = replace(LOCAL, stack=bound)
    chapters = stack(*lengths)
    gist = GistState(10 * covered, 1_500) if covered else None
    major = plan_major(limits, gist, chapters)
    behind = [i for i, row in enumerate(chapters) if row.first > 10 * covered]
    written = []
    for index in behind:
        if chapters[index].length is None:
            break
        written.append(index)
    if major is None:
        assert sum(chapters[i].length or 0 for i in written) <= bound
    else:
        assert list(major.chapters) == written[: max(1, len(written) // 2)]
        assert major.covers_to == chapters[major.chapters[-1]].last


def cut(memory: int, verbatim: int) -> Fold:
    return Fold("cut", 410, (0,), (0,), (), memory, verbatim)


@pytest.mark.parametrize(
    ("memory", "verbatim", "chapters", "fold", "major"),
    [
        # 44,000 of chapters and 12,000: a cut leaves 45,100 + 3,000 = 48,100 > 48,000 - 8,500
        (44_000, 12_000, 40, cut(45_100, 3_000), Major(200, tuple(range(20)))),
        # 39,500 is half the headroom
        (22_000, 34_000, 20, cut(23_500, 16_001), Major(100, tuple(range(10)))),
        (22_000, 34_000, 20, cut(23_500, 16_000), None),
        # no fold at all was worth it
        (44_000, 12_000, 40, None, Major(200, tuple(range(20)))),
        # one character below the ceiling there is time yet
        (44_000, 11_999, 40, None, None),
        # what fills the view is no chapter
        (55_000, 1_000, 5, None, None),
    ],
)
def test_plan_gist_stand_in(
    memory: int, verbatim: int, chapters: int, fold: Fold | None, major: Major | None
) -> None:
    state = ViewState(
        10 * chapters,
        memory,
        (Mark(10 * chapters + 1, verbatim, True),),
        stack=stack(*[1_100] * chapters),
    )
    assert plan_gist_stand_in(LOCAL, state, fold) == major


def test_a_summarizer_that_never_answers() -> None:
    """900,000 characters and no model at all: stand-ins and their gists keep the view below
    the ceiling, in steps of 25,000 (from 31,000 to 56,000), so 36 of them."""
    life = Life(LOCAL, wait=10**6)
    for _ in range(3_000):
        life.take_turn(150, 150)
    assert max(life.prompts) < LOCAL.ceiling
    assert {fold.kind for fold in life.folds} == {"cut"}
    assert 30 <= len(life.folds) <= 45
    assert life.condensed > 0
