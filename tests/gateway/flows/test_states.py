"""The small questions before a plan: what they skip would have planned nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from sqlalchemy import Connection

from gateway.flows import folds, states
from gateway.flows.states import Loaded, Site
from gateway.store.fold_rows import FoldRow
from policies.folding import plan_debt, plan_fold
from policies.values import Fold, Mark
from tests.gateway.flows.test_laws import Laws, LawsOfRecall
from tests.gateway.flows.test_memory_laws import MemoryLaws


def is_as_before(loaded: Loaded, planned: Fold) -> bool:
    """The same chapters behind the same gist: only what stands beside them has become less, which
    is not worth a prompt that is read anew."""
    gist_pk = loaded.gist.pk if loaded.gist else None
    fold = loaded.fold
    return (
        fold is not None
        and (fold.border_depth, fold.gist_pk) == (planned.border, gist_pk)
        and not (planned.chapters or planned.stand_ins or planned.new_spans)
    )


@pytest.mark.parametrize("machine", [Laws, LawsOfRecall, MemoryLaws])
def test_what_is_skipped_would_have_planned_nothing(
    monkeypatch: pytest.MonkeyPatch, machine: type[Laws]
) -> None:
    skipped: Counter[str] = Counter()

    def has_news(connection: Connection, site: Site, fold: FoldRow | None) -> bool:
        found = states.has_news(connection, site, fold)
        loaded = states.load_state(connection, site, fold)
        state = loaded.state
        if not found and state.measure(site.limits) < site.limits.ceiling:
            skipped["fold"] += 1
            coming = Mark(site.head.depth + 1, 0, opens=True)
            for seen in (state, replace(state, tail=(*state.tail, coming))):
                planned = plan_fold(site.limits, seen)
                assert planned is None or is_as_before(loaded, planned)
        return found

    def is_indebted(connection: Connection, site: Site, fold: FoldRow | None, total: int) -> bool:
        found = states.is_indebted(connection, site, fold, total)
        if found:
            skipped["debt"] += 1
            state = states.load_state(connection, site, fold).state
            assert plan_debt(site.limits, state) is None
        return found

    monkeypatch.setattr(folds, "has_news", has_news)
    monkeypatch.setattr(folds, "is_indebted", is_indebted)
    run_state_machine_as_test(
        machine,
        settings=settings(
            settings.default, max_examples=12, stateful_step_count=30, phases=[Phase.generate]
        ),
    )
    assert skipped["fold"]
