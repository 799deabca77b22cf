"""From what an upstream said to a fault: by its codes, then by its words, then by its status.

The words of providers are matched because their codes are not enough: an overflow is a plain
invalid_request_error at DeepSeek, INVALID_ARGUMENT at Gemini, 500 at an older llama-server.
"""

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.redaction import redact
from gateway.wire.json_text import loads

RETRY_AFTER_CAP = 120.0
"""Seconds. A longer wait that an upstream asks for is no reason to keep a person waiting."""

OVERFLOW_CODES = frozenset(
    {
        "context_length_exceeded",
        "exceed_context_size_error",
        "context_window_exceeded",
        "model_context_window_exceeded",
        "too_many_prompt_tokens",
        "input_too_long",
        "prompt_too_long",
        "1261",  # Z.ai: prompt exceeds the maximum length
    }
)
REFUSED_CODES = frozenset(
    {
        "content_filter",
        "content_filtered",
        "content_policy_violation",
        "responsibleaipolicyviolation",
        "data_inspection_failed",
        "safety_check_failed",
        "prohibited_content",
        "moderation_blocked",
        "1301",  # Z.ai: unsafe or sensitive content
    }
)
AUTH_CODES = frozenset(
    {
        "invalid_api_key",
        "api_key_invalid",
        "authentication_error",
        "permission_denied",
        "permission_error",
        "unauthenticated",
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_error",
        "1113",  # Z.ai: the account is in arrears
    }
)
NOT_FOUND_CODES = frozenset({"model_not_found", "not_found", "not_found_error", "model_not_exist"})
OVERLOADED_CODES = frozenset(
    {
        "overloaded_error",
        "overloaded",
        "rate_limit_error",
        "rate_limit_exceeded",
        "ratelimitreached",
        "resource_exhausted",
        "engine_overloaded",
        "server_overloaded",
        "unavailable",
    }
)
BAD_REQUEST_CODES = frozenset(
    {"invalid_request_error", "invalid_argument", "failed_precondition", "tool_use_failed"}
)

_OVERFLOW_TEXT = re.compile(
    r"maximum context length|maximum prompt length|context (?:size|window|length|limit)"
    r"|(?:prompt|input|request) is too (?:long|large)"
    r"|(?:token count|tokens?|length)\b.{0,40}\bexceeds?\b.{0,40}\bmaximum"
    r"|exceeds? (?:the )?(?:model'?s? )?max(?:imum)? (?:length|input|prompt|number of tokens)"
    r"|length of all messages is too long|too many (?:prompt|input) tokens"
    r"|reduce the length of (?:the |your )?(?:messages|prompt|input)|range of input length",
    re.IGNORECASE,
)
_REFUSED_TEXT = re.compile(
    r"content exists risk|content management policy|content[ _]filter|content policy"
    r"|violates? (?:the |our |your )?(?:usage|content|safety|community)"
    r"|safety_check|failed check|usage guidelines|flagged (?:as|by|for)|inappropriate content"
    r"|prompt was blocked|blocked by .{0,30}(?:safety|policy|filter)|harmful content",
    re.IGNORECASE,
)
_AUTH_TEXT = re.compile(
    r"api[ _-]?key (?:not valid|is invalid|expired)|invalid api[ _-]?key|incorrect api key"
    r"|insufficient balance|exceeded your current quota",
    re.IGNORECASE,
)
_NOT_FOUND_TEXT = re.compile(
    r"is not a valid model|model .{0,80}(?:does not exist|not found)|unknown model", re.IGNORECASE
)
_RATE_TEXT = re.compile(r"rate limit|tokens per (?:min|day)|requests per|\btpm\b", re.IGNORECASE)
_DETERMINISTIC_500 = re.compile(
    r"jinja|chat template|must alternate|not supported|cannot use both|does not support"
    r"|failed to parse grammar|invalid (?:grammar|json schema)",
    re.IGNORECASE,
)
"""llama-server answers 500 to some requests that can never succeed."""

_NUMBER = r"(\d[\d,]*)"
_WINDOW_TEXT = (
    re.compile(
        r"(?:maximum (?:context|prompt) length (?:is|of)|context (?:size|window|length)"
        r"(?: of| is|:)?|maximum number of tokens allowed|max(?:imum)? (?:is|of))[ (]*" + _NUMBER,
        re.IGNORECASE,
    ),
    re.compile(rf"> {_NUMBER} maximum|with {_NUMBER} maximum context", re.IGNORECASE),
)
_PROMPT_TEXT = (
    re.compile(rf"{_NUMBER} in the (?:messages|prompt|input)", re.IGNORECASE),
    re.compile(
        r"(?:requested|resulted in|has|contains|request|count|long)"
        rf"(?: about)?:?[ (]*{_NUMBER}",
        re.IGNORECASE,
    ),
)


@dataclass(frozen=True, slots=True)
class ErrorText:
    """An upstream's error, brought to one form."""

    status: int | None
    codes: frozenset[str]
    message: str
    prompt_tokens: int | None = None
    window_tokens: int | None = None
    retry_delay: float | None = None


def read_error(payload: Any, status: int | None = None) -> ErrorText:
    """Bring an error body (decoded JSON of any provider's shape, or text) to one form.

    Known shapes: {"error": {…}}, {"error": "text", "code": "…"}, {"type": "error", "error": {…}},
    [{"error": {…}}], {"message": …}, {"detail": …}, and the inner object alone.
    """
    if isinstance(payload, list):
        payload = next((item for item in payload if isinstance(item, dict)), "")
    if not isinstance(payload, dict):
        return ErrorText(status, frozenset(), str(payload or ""))
    inner = payload.get("error")
    error = inner if isinstance(inner, dict) else payload
    fields = [error.get(key) for key in ("code", "type", "status", "reason")]
    if error is not payload:
        fields += [payload.get("code")]
    delay = None
    for detail in error.get("details") or () if isinstance(error.get("details"), list) else ():
        if isinstance(detail, dict):
            fields.append(detail.get("reason"))
            delay = delay or _read_seconds(str(detail.get("retryDelay", "")).rstrip("s"))
    codes = frozenset(str(field).lower() for field in fields if isinstance(field, str | int))
    words = inner if isinstance(inner, str) else error.get("message") or error.get("detail") or ""
    if not isinstance(words, str):
        words = str(words)
    return ErrorText(
        status if status is not None else _read_status(error, payload),
        codes,
        words,
        _read_count(error.get("n_prompt_tokens")),
        _read_count(error.get("n_ctx")),
        delay,
    )


def _read_status(*objects: dict[str, Any]) -> int | None:
    for found in objects:
        for key in ("status_code", "code", "http_code", "status"):
            text = str(found.get(key) or "")
            if text.isdecimal() and 400 <= int(text) <= 599:
                return int(text)
    return None


def _read_count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _read_seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if seconds == seconds else None


# --- kinds ---------------------------------------------------------------------------------------


def decide_kind(error: ErrorText) -> FaultKind:
    """The kind of an error: by its codes, then by its words, then by its status."""
    kind = _kind_by_code(error)
    if kind is None:
        kind = _kind_by_words(error)
    return kind or _kind_by_status(error)


def _kind_by_code(error: ErrorText) -> FaultKind | None:
    if error.status == 503 and "loading" in error.message.lower():
        return FaultKind.LOADING
    for codes, kind in (
        (OVERFLOW_CODES, FaultKind.OVERFLOW),
        (REFUSED_CODES, FaultKind.REFUSED),
    ):
        if error.codes & codes:
            return kind
    if error.codes & AUTH_CODES and not _REFUSED_TEXT.search(error.message):
        return FaultKind.AUTH
    return None


def _kind_by_words(error: ErrorText) -> FaultKind | None:
    words = error.message
    if error.status in (None, 400, 403, 422, 451) and _REFUSED_TEXT.search(words):
        return FaultKind.REFUSED
    if _RATE_TEXT.search(words) and error.status in (None, 413, 429):
        return FaultKind.OVERLOADED
    if error.status in (None, 400, 413, 422, 500) and _OVERFLOW_TEXT.search(words):
        return FaultKind.OVERFLOW
    if _AUTH_TEXT.search(words):
        return FaultKind.AUTH
    if error.status in (None, 400, 404) and _NOT_FOUND_TEXT.search(words):
        return FaultKind.NOT_FOUND
    if error.status == 500 and _DETERMINISTIC_500.search(words):
        return FaultKind.BAD_REQUEST
    return None


_BY_STATUS = {
    401: FaultKind.AUTH,
    402: FaultKind.AUTH,
    403: FaultKind.AUTH,
    404: FaultKind.NOT_FOUND,
    408: FaultKind.TIMEOUT,
    413: FaultKind.OVERFLOW,
    425: FaultKind.OVERLOADED,
    429: FaultKind.OVERLOADED,
    501: FaultKind.BAD_REQUEST,
    503: FaultKind.OVERLOADED,
    504: FaultKind.TIMEOUT,
    524: FaultKind.TIMEOUT,
    529: FaultKind.OVERLOADED,
}


def _kind_by_status(error: ErrorText) -> FaultKind:
    status = error.status
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status is not None and 400 <= status < 500 and status != 409:
        return FaultKind.BAD_REQUEST
    for codes, kind in (
        (OVERLOADED_CODES, FaultKind.OVERLOADED),
        (NOT_FOUND_CODES, FaultKind.NOT_FOUND),
        (BAD_REQUEST_CODES, FaultKind.BAD_REQUEST),
    ):
        if status is None and error.codes & codes:
            return kind
    return FaultKind.SERVER


# --- faults --------------------------------------------------------------------------------------


def classify_response(
    backend: str,
    status: int | None,
    body: bytes | str,
    headers: Mapping[str, str] | None = None,
    *,
    secrets: Iterable[str] = (),
    now: float | None = None,
) -> UpstreamFault:
    """The fault that a response which is no answer stands for.

    status None: an error inside a 200. now: seconds since 1970, for a Retry-After that is a date
    (None: the machine's clock; a Date header of the response wins). secrets: texts that must not
    be repeated.
    """
    try:
        payload = loads(body)
    except ValueError:
        payload = _plain_text(body)
    return classify_payload(backend, payload, status, headers, secrets=secrets, now=now)


def classify_payload(
    backend: str,
    payload: Any,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    secrets: Iterable[str] = (),
    now: float | None = None,
) -> UpstreamFault:
    """As classify_response, of a body that is decoded: an error event, or what a library kept."""
    error = read_error(payload, status)
    kind = decide_kind(error)
    prompt, window = error.prompt_tokens, error.window_tokens
    if kind is FaultKind.OVERFLOW:
        prompt = prompt or _find_number(_PROMPT_TEXT, error.message)
        window = window or _find_number(_WINDOW_TEXT, error.message)
    wait = read_retry_after(headers or {}, now=now)
    return UpstreamFault(
        kind,
        _describe(backend, kind, error, secrets),
        status=429 if kind is FaultKind.OVERLOADED and error.status == 429 else None,
        retry_after=wait if wait is not None else _cap(error.retry_delay),
        prompt_tokens=prompt,
        window_tokens=window,
    )


def _plain_text(body: bytes | str) -> str:
    text = body.decode(errors="replace") if isinstance(body, bytes) else body
    return "a web page" if text.lstrip()[:1] == "<" else text


_SUMMARY = {
    FaultKind.LOADING: "is loading its model",
    FaultKind.OVERLOADED: "is overloaded",
    FaultKind.OVERFLOW: "cannot hold this prompt",
    FaultKind.REFUSED: "refuses this content",
    FaultKind.BAD_REQUEST: "refuses this request",
    FaultKind.AUTH: "refuses the gateway's key or account",
    FaultKind.NOT_FOUND: "does not know this model or path",
    FaultKind.TIMEOUT: "took too long",
    FaultKind.SERVER: "failed",
}


def _describe(backend: str, kind: FaultKind, error: ErrorText, secrets: Iterable[str]) -> str:
    """The upstream's own words are passed on, but for those about a refused key: what stands in
    them is the operator's, and nothing that who asked could do anything about."""
    text = f"The backend {backend} {_SUMMARY[kind]}"
    status = f" (status {error.status})" if error.status is not None else ""
    if kind is FaultKind.AUTH or not error.message:
        return text + status
    return f"{text}{status}: {redact(error.message, secrets)}"


def _find_number(patterns: Iterable[re.Pattern[str]], text: str) -> int | None:
    for pattern in patterns:
        match = pattern.search(text)
        if match is not None:
            digits = next(group for group in match.groups() if group)
            return int(digits.replace(",", ""))
    return None


def read_retry_after(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Seconds to wait by `retry-after-ms` or `retry-after` (a number or an HTTP date), from 0 to
    RETRY_AFTER_CAP; None where nothing readable is said."""
    lowered = {key.lower(): value for key, value in headers.items()}
    exact = _read_seconds(lowered.get("retry-after-ms", ""))
    if exact is not None and exact > 0:
        return _cap(exact / 1000)
    text = lowered.get("retry-after", "").strip()
    if not text:
        return None
    seconds = _read_seconds(text)
    if seconds is not None:
        return _cap(seconds)
    moment = _read_date(text)
    if moment is None:
        return None
    origin = _read_date(lowered.get("date", ""))
    return _cap(moment - (origin or now or time.time()))


def _read_date(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except ValueError:
        return None


def _cap(seconds: float | None) -> float | None:
    return None if seconds is None else min(max(seconds, 0.0), RETRY_AFTER_CAP)
