"""The scaled numbers are a policies file like any other, and fit their window."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from gateway.demo.policy import BACKEND, MAX_TOKENS, MODEL, POLICY, WINDOW, write_policies
from gateway.demo.script import messages
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
    """13,800 characters at 3.6 a token are 3,833; 4,096 - 80 of a reply - 81 of margin = 3,935."""
    ceiling = loaded.file.policies[POLICY].view.ceiling
    assert ceiling / 3.6 < WINDOW - MAX_TOKENS - WINDOW // 50


def test_two_turns_fit_between_start_and_ceiling(loaded: LoadedPolicies) -> None:
    """The turn that crosses the start goes out whole, and the next one folds below the ceiling."""
    view = loaded.file.policies[POLICY].view
    longest = max(map(len, islice(messages(), 100)))
    reply = 202  # of one sentence, as the grammar allows it
    assert view.start + 2 * longest + reply < view.ceiling


def test_a_stand_in_is_prepared_after_one_round(loaded: LoadedPolicies) -> None:
    summaries = loaded.file.policies[POLICY].summaries
    assert (summaries.rounds, summaries.redraws, summaries.delay) == (1, 0, 2.0)
