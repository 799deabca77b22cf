"""What is counted, and that a report costs next to nothing to make."""

from __future__ import annotations

import pytest

from gateway.meters import Meters
from gateway.meters.families import MOST_SERIES
from gateway.meters.queues import CIRCUIT_STATES

Read = dict[str, float]


def read(meters: Meters, name: str) -> Read:
    """The series of one metric by its labels' values."""
    return {
        "/".join(sample.labels.values()): sample.value
        for family in meters.registry.collect()
        for sample in family.samples
        if sample.name == name
    }


def test_a_turn_is_counted_by_where_it_went_and_how_it_ended() -> None:
    meters = Meters()
    meters.view_shown("local", "small", "folded")
    meters.attempt_ended("local", "small", "failed", "timeout", None)
    meters.retried("local", "timeout", "elsewhere")
    meters.attempt_ended("cloud", "wide", "done", None, "length")
    meters.tokens_used("cloud", "chat", prompt=120, cached=100, out=30)
    meters.tokens_used("cloud", "chat", prompt=None, cached=None, out=None)
    meters.first_token_came("cloud", 0.4)
    meters.request_ended("chat", 200, None)
    meters.request_ended("chat", 503, "upstream_timeout")
    assert read(meters, "foldgate_attempts_total") == {
        "local/small/failed/timeout": 1,
        "cloud/wide/done/none": 1,
    }
    assert read(meters, "foldgate_retries_total") == {"local/timeout/elsewhere": 1}
    assert read(meters, "foldgate_finishes_total") == {"cloud/wide/length": 1}
    assert read(meters, "foldgate_prompt_tokens_total") == {"cloud/chat": 120}
    assert read(meters, "foldgate_cached_tokens_total") == {"cloud/chat": 100}
    assert read(meters, "foldgate_completion_tokens_total") == {"cloud/chat": 30}
    assert read(meters, "foldgate_first_token_seconds_sum") == {"cloud": 0.4}
    assert read(meters, "foldgate_requests_total") == {
        "chat/200/none": 1,
        "chat/503/upstream_timeout": 1,
    }


def test_folds_cuts_and_what_they_took_out() -> None:
    meters = Meters()
    meters.folded("local", "small", "fold", 18_300)
    meters.folded("local", "small", "cut", 20_000)
    meters.folded("local", "small", "fold", 0)
    meters.stand_ins_made("chapter", "spot", 2)
    assert read(meters, "foldgate_folds_total") == {"small/fold": 2, "small/cut": 1}
    assert read(meters, "foldgate_hard_cuts_total") == {"local/small": 1}
    assert read(meters, "foldgate_fold_span_chars_count") == {"small": 2}
    assert read(meters, "foldgate_fold_span_chars_sum") == {"small": 38_300}
    assert read(meters, "foldgate_stand_ins_total") == {"chapter/spot": 2}


def test_reuse_is_counted_only_where_the_backend_tells_it() -> None:
    meters = Meters()
    meters.prompt_reused("local", 1_000, 900, 850.5)
    meters.prompt_reused("local", 1_000, 900, None)
    assert read(meters, "foldgate_reuse_prompt_chars_total") == {"local": 1_000}
    assert read(meters, "foldgate_reuse_expected_chars_total") == {"local": 900}
    assert read(meters, "foldgate_reuse_actual_chars_total") == {"local": 850.5}


@pytest.mark.parametrize("state", CIRCUIT_STATES)
def test_a_circuit_is_in_the_state_that_it_has_when_somebody_collects(state: str) -> None:
    meters, now = Meters(), ["closed"]
    meters.watch_circuit("cloud", lambda: now[0])
    now[0] = state
    assert read(meters, "foldgate_circuit_state") == {
        f"cloud/{each}": float(each == state) for each in CIRCUIT_STATES
    }
    meters.circuit_opened("cloud")
    assert read(meters, "foldgate_circuit_opened_total") == {"cloud": 1}


def test_queues_are_looked_at_when_somebody_collects() -> None:
    meters, waiting = Meters(), [1]
    meters.watch_queue("local", lambda: len(waiting), lambda: 2)
    meters.watch_turns("local", lambda: 3)
    assert read(meters, "foldgate_queue_length") == {"local": 1}
    waiting.extend((2, 3))
    assert read(meters, "foldgate_queue_length") == {"local": 3}
    assert read(meters, "foldgate_slots_in_use") == {"local": 2}
    assert read(meters, "foldgate_turns_running") == {"local": 3}


def test_a_state_that_no_job_is_in_any_more_goes_back_to_zero() -> None:
    meters = Meters()
    meters.count_jobs([("chapter", "queued", 4), ("gist", "parked", 1)], 12.5)
    meters.count_jobs([("chapter", "done", 4)], 0.0)
    assert read(meters, "foldgate_jobs") == {
        "chapter/queued": 0,
        "gist/parked": 0,
        "chapter/done": 4,
    }
    assert read(meters, "foldgate_jobs_overdue_seconds") == {"": 0}


def test_what_alerts_look_at_begins_at_zero() -> None:
    meters = Meters()
    meters.expect(["local"], [("local", "small")])
    assert read(meters, "foldgate_hard_cuts_total") == {"local/small": 0}
    assert read(meters, "foldgate_finishes_total") == {
        "local/small/stop": 0,
        "local/small/length": 0,
    }
    assert read(meters, "foldgate_summaries_asked_total") == {
        "local/chapter": 0,
        "local/gist": 0,
    }
    assert read(meters, "foldgate_circuit_opened_total") == {"local": 0}


def test_labels_that_are_not_bounded_after_all_end_under_other() -> None:
    meters = Meters()
    for number in range(MOST_SERIES + 50):
        meters.params_dropped(f"backend-{number}")
    counted = read(meters, "foldgate_dropped_params_total")
    assert len(counted) == MOST_SERIES + 1
    assert counted["other"] == 50


@pytest.mark.parametrize(
    ("accept", "content_type", "end"),
    [
        ("", "text/plain", b"\n"),
        ("application/openmetrics-text; version=1.0.0", "application/openmetrics-text", b"# EOF\n"),
    ],
)
def test_it_is_told_as_the_collector_asks(accept: str, content_type: str, end: bytes) -> None:
    meters = Meters()
    meters.params_dropped("local")
    body, told = meters.render(accept)
    assert told.startswith(content_type)
    assert body.endswith(end)
    assert b'foldgate_dropped_params_total{backend="local"} 1.0' in body
    assert b"_created" not in body


def test_two_programs_in_one_process_do_not_share_their_counts() -> None:
    one, two = Meters(), Meters()
    one.params_dropped("local")
    assert read(two, "foldgate_dropped_params_total") == {}
