"""Where a live view would have folded: by the program's own plans."""

from __future__ import annotations

from dataclasses import replace

from gateway.evals.forgetting.spans import FoldPlan, ages_of, plan_folds
from policies.budget import limits_of
from policies.schema import Policy
from policies.values import Mark, Span

LIMITS = limits_of(Policy(), 3.0)


def marks(count: int, chars: int = 500) -> list[Mark]:
    return [Mark(depth, chars, depth % 2 == 1) for depth in range(1, count + 1)]


def test_spans_are_a_headroom_and_a_chapter_long_and_follow_each_other() -> None:
    plan = plan_folds(LIMITS, marks(600))
    spans = plan.spans
    # 48,000 are reached at depth 97; 31,000 − 1,100 stay: 18,200 or so go.
    assert len(spans) >= 10
    assert all(17_000 <= span.chars <= 20_000 for span in spans)
    assert spans[0].first == 1
    assert [span.first for span in spans[1:]] == [span.last + 1 for span in spans[:-1]]
    assert all(span.first % 2 == 1 for span in spans)
    assert plan.last == 600
    assert plan.border == spans[-1].last
    # What is left is what a view would show word for word.
    assert 16_000 <= (600 - plan.border) * 500 <= 48_000


def test_nothing_is_folded_below_the_start() -> None:
    plan = plan_folds(LIMITS, marks(90))
    assert (plan.folds, plan.spans, plan.border, plan.last) == ((), (), 0, 90)
    assert plan_folds(LIMITS, []) == FoldPlan((), 0)


def test_with_a_bound_the_rest_is_not_read() -> None:
    whole = plan_folds(LIMITS, marks(600))
    plan = plan_folds(LIMITS, marks(600), 3)
    assert plan.spans == whole.spans[:3]
    # The turn that made the third due, and not more.
    assert plan.border < plan.last < whole.spans[4].last


def test_a_fold_of_several_spans_is_cut_where_the_bound_is() -> None:
    long = [Mark(1, 500, True), Mark(2, 110_000, False), *marks(80)[2:]]
    whole = plan_folds(LIMITS, long)
    assert len(plan_folds(LIMITS, long, 1).spans) == 1
    assert plan_folds(LIMITS, long, 1).spans[0] == whole.spans[0]


def test_a_rolling_policy_is_cut_in_the_same_places() -> None:
    rolling = replace(LIMITS, rolling=True)
    assert plan_folds(rolling, marks(400)) == plan_folds(LIMITS, marks(400))


def test_a_view_that_counts_messages_folds_by_their_number() -> None:
    view = {"unit": "messages", "start": 40, "ceiling": 60, "headroom": 20, "keep": 10}
    limits = limits_of(Policy.model_validate({"view": view}), 3.0)
    plan = plan_folds(limits, marks(200, 100))
    assert [span.last - span.first + 1 for span in plan.spans[:3]] == [22, 22, 22]


def test_ages_count_from_the_newest() -> None:
    spans = [Span(1, 2, 10), Span(3, 4, 10), Span(5, 6, 10)]
    assert ages_of(spans) == [3, 2, 1]
    assert ages_of([]) == []
