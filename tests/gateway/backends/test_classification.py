"""What upstreams say, and the fault it stands for."""

import json
from typing import Any

import pytest

from gateway.backends.classification import (
    RETRY_AFTER_CAP,
    classify_payload,
    classify_response,
    read_retry_after,
)
from gateway.backends.faults import FaultKind as K


def error(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


LLAMA_OVERFLOW = error(
    "the request has more tokens than the slot holds",
    code=400,
    type="exceed_context_size_error",
    n_prompt_tokens=9720,
    n_ctx=4096,
)


@pytest.mark.parametrize(
    ("status", "body", "kind", "told"),
    [
        # overflow: by code, then by words
        (400, LLAMA_OVERFLOW, K.OVERFLOW, 400),
        (400, error("too long", code="context_length_exceeded"), K.OVERFLOW, 400),
        (
            400,
            error("maximum context length is 10 tokens", type="invalid_request_error"),
            K.OVERFLOW,
            400,
        ),
        (
            400,
            error(
                "token count (20) exceeds the maximum number of tokens allowed (10).",
                status="INVALID_ARGUMENT",
            ),
            K.OVERFLOW,
            400,
        ),
        (400, error("prompt is too long: 20 tokens > 10 maximum"), K.OVERFLOW, 400),
        (
            400,
            error("This model's maximum prompt length is 10 but the request contains 20 tokens."),
            K.OVERFLOW,
            400,
        ),
        (
            400,
            error("The total length of all messages is too long.", type="too_many_prompt_tokens"),
            K.OVERFLOW,
            400,
        ),
        (400, error("Prompt 超长", code="1261"), K.OVERFLOW, 400),
        (413, error("too big"), K.OVERFLOW, 400),
        (500, error("Context size has been exceeded.", code=500), K.OVERFLOW, 400),
        (400, error("max_tokens must be at most 8192"), K.BAD_REQUEST, 400),
        # refused content, wherever the provider puts it
        (
            403,
            {"code": "The caller is not allowed", "error": "Content violates usage guidelines."},
            K.REFUSED,
            400,
        ),
        (400, error("Content Exists Risk", type="invalid_request_error"), K.REFUSED, 400),
        (400, error("filtered", code="content_filter"), K.REFUSED, 400),
        (400, error("系统检测到敏感内容", code="1301"), K.REFUSED, 400),
        # the gateway's key and account
        (401, error("Invalid API Key", type="authentication_error"), K.AUTH, 502),
        (403, error("Permission denied"), K.AUTH, 502),
        (402, error("Insufficient Balance"), K.AUTH, 502),
        (429, error("You exceeded your current quota", code="insufficient_quota"), K.AUTH, 502),
        (
            400,
            error(
                "API key not valid.",
                status="INVALID_ARGUMENT",
                details=[{"reason": "API_KEY_INVALID"}],
            ),
            K.AUTH,
            502,
        ),
        # busy, loading, gone
        (429, error("slow down"), K.OVERLOADED, 429),
        (
            429,
            error("Rate limit: 8000 tokens per minute, context length irrelevant"),
            K.OVERLOADED,
            429,
        ),
        (503, error("high demand", status="UNAVAILABLE"), K.OVERLOADED, 503),
        (529, error("Overloaded", type="overloaded_error"), K.OVERLOADED, 503),
        (503, error("Loading model", type="unavailable_error"), K.LOADING, 503),
        (404, error("no such model", code="model_not_found"), K.NOT_FOUND, 502),
        (400, error("x/y is not a valid model ID"), K.NOT_FOUND, 502),
        (408, error("timed out"), K.TIMEOUT, 504),
        (524, b"<html>a timeout occurred</html>", K.TIMEOUT, 504),
        # the rest
        (500, error("oops", type="server_error"), K.SERVER, 502),
        (502, b"<html>Bad gateway</html>", K.SERVER, 502),
        (500, b"", K.SERVER, 502),
        (500, error("image input is not supported", type="server_error"), K.BAD_REQUEST, 400),
        (500, error("Conversation roles must alternate user/assistant"), K.BAD_REQUEST, 400),
        (501, error("not here", type="not_supported_error"), K.BAD_REQUEST, 400),
        (422, {"detail": [{"msg": "field required"}]}, K.BAD_REQUEST, 400),
        (302, b"", K.SERVER, 502),
        # errors inside a 200
        (None, error("overloaded", code=529), K.OVERLOADED, 503),
        (None, error("x", code="rate_limit_exceeded"), K.OVERLOADED, 503),
        (None, error("x", code=404), K.NOT_FOUND, 502),
        (
            None,
            {"code": 400, "message": "the request exceeds the available context size", "type": "x"},
            K.OVERFLOW,
            400,
        ),
        (None, {"error": "something broke"}, K.SERVER, 502),
        (None, [error("x", code=503, status="UNAVAILABLE")], K.OVERLOADED, 503),
        (
            None,
            error("bad tool call", type="invalid_request_error", code="tool_use_failed"),
            K.BAD_REQUEST,
            400,
        ),
    ],
)
def test_kinds(status: int | None, body: Any, kind: K, told: int) -> None:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    fault = classify_response("b", status, raw)
    assert (fault.kind, fault.status) == (kind, told)
    assert fault.message.startswith("The backend b ")


@pytest.mark.parametrize(
    ("message", "prompt", "window"),
    [
        (
            "request (9720 tokens) exceeds the available context size (4096 tokens), try it",
            9720,
            4096,
        ),
        (
            "maximum context length is 1048565 tokens. However, you requested 1250025 tokens "
            "(1250025 in the messages, 0 in the completion).",
            1250025,
            1048565,
        ),
        ("prompt is too long: 3333404 tokens > 200000 maximum", 3333404, 200000),
        (
            "input token count (1250074) exceeds the maximum number of tokens allowed (1048576).",
            1250074,
            1048576,
        ),
        (
            "maximum prompt length is 131,072 but the request contains 537,812 tokens.",
            537812,
            131072,
        ),
        ("Your prompt is too long.", None, None),
    ],
)
def test_figures_of_an_overflow(message: str, prompt: int | None, window: int | None) -> None:
    fault = classify_payload("b", error(message), 400)
    assert (fault.kind, fault.prompt_tokens, fault.window_tokens) == (K.OVERFLOW, prompt, window)


def test_figures_of_llama_server_stand_in_fields() -> None:
    fault = classify_payload("b", LLAMA_OVERFLOW, 400)
    assert (fault.prompt_tokens, fault.window_tokens) == (9720, 4096)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"Retry-After": "86400"}, RETRY_AFTER_CAP),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "7", "Retry-After-Ms": "1500"}, 1.5),
        ({"Retry-After": "1", "Retry-After-Ms": "0"}, 1.0),
        # 30 s after the response's own date, whatever the clock here says
        (
            {
                "Retry-After": "Mon, 30 Nov 2026 12:00:30 GMT",
                "Date": "Mon, 30 Nov 2026 12:00:00 GMT",
            },
            30.0,
        ),
        # 1,796,040,030 is 12:00:30: 20 s after `now`
        ({"Retry-After": "Mon, 30 Nov 2026 12:00:30 GMT"}, 20.0),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert read_retry_after(headers, now=1_796_040_010.0) == seconds


def test_retry_delay_of_google() -> None:
    body = error("x", code=429, details=[{"@type": "RetryInfo", "retryDelay": "34.5s"}])
    assert classify_payload("b", body, 429).retry_after == 34.5


@pytest.mark.parametrize("status", [400, 422, 429, 500, None])
def test_an_upstreams_words_are_passed_on_without_its_keys(status: int | None) -> None:
    said = "Ungültig: temperature 3 (sk-abcdef123456, hunter22)\nsee https://u:p@docs.example"
    fault = classify_payload("b", error(said), status, secrets=("hunter22",))
    assert ": Ungültig: temperature 3 (***, ***) see https://***@docs.example. " in fault.message


def test_the_words_about_a_refused_key_are_not_repeated() -> None:
    assert "hint" not in classify_payload("b", error("Incorrect API key: hint"), 401).message
