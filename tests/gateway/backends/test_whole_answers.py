"""Answers that came whole: what is one, and what of it is kept where it is none."""

import json
from typing import Any

import pytest

from gateway.backends.faults import FaultKind as K
from gateway.backends.faults import UpstreamFault
from gateway.backends.whole_answers import check_completion
from gateway.wire.replies import ReplyBuilder
from tests.faults.server import completion


def check(body: Any) -> Any:
    return check_completion("b", json.dumps(body).encode(), body)


def test_a_good_answer_is_given_byte_for_byte() -> None:
    body = completion("你好")
    data = json.dumps(body).encode()
    assert check_completion("b", data, body).data == data


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (completion(""), K.EMPTY),
        (completion(None), K.EMPTY),
        (completion(" \n\u200b"), K.EMPTY),
        (completion("", "length"), K.EMPTY),
        ({"choices": []}, K.EMPTY),
        ({"choices": None}, K.EMPTY),
        ({"error": {"code": 503, "message": "x"}}, K.OVERLOADED),
        (None, K.MALFORMED),
        ([], K.MALFORMED),
        ({"choices": [7]}, K.MALFORMED),
        ({"choices": [{"message": {"content": 7}}]}, K.MALFORMED),
        *[
            (completion("Half of a sen", reason), K.INTERRUPTED)
            for reason in ("error", "network_error", "abort", "repetition_truncation", None)
        ],
        (completion("", "error"), K.INTERRUPTED),
    ],
)
def test_faults_of_whole_answers(body: Any, kind: K) -> None:
    """A13, B02, B04."""
    with pytest.raises(UpstreamFault) as caught:
        check(body)
    assert caught.value.kind is kind


def test_an_interrupted_answer_carries_what_came() -> None:
    with pytest.raises(UpstreamFault) as caught:
        check(completion("Half of a sen", "error"))
    fault = caught.value
    assert fault.received is not None
    assert ReplyBuilder.from_completion(fault.received).text == "Half of a sen"
    assert (fault.partial, fault.retryable) == (True, False)


@pytest.mark.parametrize(
    ("native", "finish"),
    [("BLOCKLIST", "content_filter"), ("content_filter", "content_filter")],
)
def test_a_filter_is_no_fault(native: str, finish: str) -> None:
    """A17."""
    answer = check(completion("", native))
    assert answer.parsed["choices"][0]["finish_reason"] == finish
    assert json.loads(answer.data) == answer.parsed
