"""The scaled numbers are a policies file like any other, and fit their window."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.demo.policy import BACKEND, MAX_TOKENS, MODEL, POLICY, WINDOW, write_policies
from gateway.policy_file import LoadedPolicies, load_policies


@pytest.fixture
def loaded(tmp_path: Path) -> LoadedPolicies:
    path = tmp_path / "policies.yaml"
    path.write_text(write_policies("http://127.0.0.1:4567"))
    return load_policies(path, {})


def test_the_model_stays_on_this_machine(loaded: LoadedPolicies) -> None:
    model = loaded.file.models[MODEL]
    assert [(tier.backend, tier.policy) for tier in model.tiers] == [(BACKEND, POLICY)]
    assert model.private


def test_the_ceiling_fits_the_window_beside_a_reply(loaded: LoadedPolicies) -> None:
    """13,300 characters at 3.5 a token are 3,800; 4,096 - 96 of a reply - 81 of margin = 3,919."""
    ceiling = loaded.file.policies[POLICY].view.ceiling
    assert ceiling / 3.5 < WINDOW - MAX_TOKENS - WINDOW // 50


def test_the_numbers_keep_the_proportions_of_local_fold(loaded: LoadedPolicies) -> None:
    """Two turns of at most 1,900 characters lie between start and ceiling: 11,000 + 1,900 < 13,300,
    so the turn that crosses the start goes out whole."""
    view = loaded.file.policies[POLICY].view
    assert (view.start, view.ceiling, view.after_fold, view.keep) == (11_000, 13_300, 4_500, 3_000)


def test_a_stand_in_is_prepared_after_one_round(loaded: LoadedPolicies) -> None:
    summaries = loaded.file.policies[POLICY].summaries
    assert (summaries.rounds, summaries.redraws, summaries.delay) == (1, 0, 2.0)
