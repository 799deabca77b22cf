"""Kinds of faults and what a client is told of them."""

import pytest

from gateway.backends.faults import RULES, FaultKind, UpstreamFault, read_finish
from gateway.errors import GatewayError


@pytest.mark.parametrize("kind", FaultKind)
def test_each_kind_has_a_rule_that_blames_the_right_side(kind: FaultKind) -> None:
    rule = RULES[kind]
    fault = UpstreamFault(kind, "The backend b did it")
    assert isinstance(fault, GatewayError)
    assert (fault.status, fault.code, fault.type) == (rule.status, rule.code, rule.type)
    assert fault.message == f"The backend b did it. {rule.advice}"
    # a client's key is never the trouble of an upstream
    assert fault.status not in (401, 403, 404)
    # what the request itself causes is the client's, and not tried again with the same bytes
    assert (400 <= fault.status < 500) is (rule.type == "invalid_request_error")
    if fault.status == 400:
        assert not fault.retryable


def test_the_outline_is_without_an_upstreams_words() -> None:
    fault = UpstreamFault(FaultKind.SERVER, "The backend b failed (status 500): 私の秘密: X")
    assert fault.outline == "The backend b failed (status 500)"
    assert UpstreamFault(FaultKind.EMPTY, "The backend b did it").outline == "The backend b did it"


def test_nothing_is_retryable_once_a_part_was_given() -> None:
    fault = UpstreamFault(FaultKind.INTERRUPTED, "x")
    assert fault.retryable
    assert not fault.after_part().retryable


@pytest.mark.parametrize(
    ("native", "finish"),
    [
        ("stop", "stop"),
        ("STOP", "stop"),
        ("eos", "stop"),
        ("length", "length"),
        ("MAX_TOKENS", "length"),
        ("tool_calls", "tool_calls"),
        ("function_call", "function_call"),
        ("content_filter", "content_filter"),
        *[
            (native, "content_filter")
            for native in (
                "BLOCKLIST",
                "PROHIBITED_CONTENT",
                "SPII",
                "SAFETY",
                "RECITATION",
                "IMAGE_SAFETY",
                "sensitive",
            )
        ],
        *[
            (native, None)
            for native in (
                "error",
                "abort",
                "network_error",
                "insufficient_system_resource",
                "repetition_truncation",
                "OTHER",
                "MALFORMED_FUNCTION_CALL",
                "",
                None,
                7,
            )
        ],
    ],
)
def test_only_true_ends_end_an_answer(native: object, finish: str | None) -> None:
    """B03, B04: what is not known to be an end is none."""
    assert read_finish(native) == finish
