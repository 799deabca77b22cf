"""The kinds of everything that can go wrong behind the gateway.

Each failure is classified once (classification.py reads what an upstream said). Its kind alone
decides the status, code and type that a client is told, and whether another attempt can help.

kind         status  code                       again?  what happened
unavailable  503     upstream_unavailable       yes     nobody answers at the address
loading      503     upstream_loading           yes     the server is reading its model
timeout      504     upstream_timeout           yes     connect, first token, idle or total
overloaded   503*    upstream_overloaded        yes     rate limits and full servers (*429 stays)
overflow     400     context_length_exceeded    no      the prompt does not fit the window
refused      400     content_filter             no      the provider refuses the content
bad_request  400     upstream_bad_request       no      the provider refuses the request's form
auth         502     upstream_auth              no      the gateway's key or account is refused
not_found    502     upstream_not_found         no      no such model or path
interrupted  502     upstream_interrupted       yes**   the answer broke off
malformed    502     upstream_malformed         yes**   what came is not what the protocol says
empty        502     upstream_empty             yes     a success with nothing in it
server       502     upstream_error             yes**   anything else of the upstream's
resting      503     upstream_resting           no      failed too often: nobody is sent there now
(** not once a part of the answer was given)

401 and 403 of an upstream are about the gateway's key, never about the client's: hence 502.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from gateway.errors import UpstreamFailed
from gateway.redaction import FAULT_CHARS, redact


class FaultKind(StrEnum):
    UNAVAILABLE = "unavailable"
    LOADING = "loading"
    TIMEOUT = "timeout"
    OVERLOADED = "overloaded"
    OVERFLOW = "overflow"
    REFUSED = "refused"
    BAD_REQUEST = "bad_request"
    AUTH = "auth"
    NOT_FOUND = "not_found"
    INTERRUPTED = "interrupted"
    MALFORMED = "malformed"
    EMPTY = "empty"
    SERVER = "server"
    RESTING = "resting"


@dataclass(frozen=True, slots=True)
class FaultRule:
    """What a client is told about a kind; `advice` says what to do about it."""

    status: int
    code: str
    type: str
    retryable: bool
    advice: str


_K = FaultKind
RULES: dict[FaultKind, FaultRule] = {
    _K.UNAVAILABLE: FaultRule(
        503, "upstream_unavailable", "upstream_error", True, "Is it running at that address?"
    ),
    _K.LOADING: FaultRule(
        503, "upstream_loading", "upstream_error", True, "Try again in a few seconds."
    ),
    _K.TIMEOUT: FaultRule(
        504, "upstream_timeout", "upstream_error", True, "Try again, or raise its timeouts."
    ),
    _K.OVERLOADED: FaultRule(
        503, "upstream_overloaded", "overloaded_error", True, "Try again later."
    ),
    _K.OVERFLOW: FaultRule(
        400, "context_length_exceeded", "invalid_request_error", False, "Send less text."
    ),
    _K.REFUSED: FaultRule(
        400, "content_filter", "invalid_request_error", False, "Change the text or the model."
    ),
    _K.BAD_REQUEST: FaultRule(
        400, "upstream_bad_request", "invalid_request_error", False, "Change the request."
    ),
    _K.AUTH: FaultRule(
        502,
        "upstream_auth",
        "upstream_error",
        False,
        "Check this backend's key and account in the gateway's configuration.",
    ),
    _K.NOT_FOUND: FaultRule(
        502,
        "upstream_not_found",
        "upstream_error",
        False,
        "Check this backend's model name and address in the gateway's configuration.",
    ),
    _K.INTERRUPTED: FaultRule(
        502, "upstream_interrupted", "upstream_error", True, "The answer is incomplete; try again."
    ),
    _K.MALFORMED: FaultRule(
        502, "upstream_malformed", "upstream_error", True, "The answer is unusable; try again."
    ),
    _K.EMPTY: FaultRule(502, "upstream_empty", "upstream_error", True, "Try again."),
    _K.SERVER: FaultRule(502, "upstream_error", "upstream_error", True, "Try again."),
    _K.RESTING: FaultRule(
        503, "upstream_resting", "upstream_error", False, "Try again when its rest is over."
    ),
}


class UpstreamFault(UpstreamFailed):
    """A backend failed. `message` says what happened and what to do, on one line, of bounded
    length and without a key, whatever it is made of.

    `retry_after`: seconds. `partial`: raised after a part of the answer was given. `received`: the
    whole answer as far as it came, where a whole answer was asked for and had no true end.
    `is_ours`: the gateway itself ended the call, so that nothing was learned about the backend.
    `prompt_tokens` and `window_tokens`: the upstream's own figures for an overflow.
    """

    def __init__(
        self,
        kind: FaultKind,
        what: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        partial: bool = False,
        received: dict[str, Any] | None = None,
        prompt_tokens: int | None = None,
        window_tokens: int | None = None,
        is_ours: bool = False,
    ) -> None:
        rule = RULES[kind]
        what = redact(what, most=FAULT_CHARS)
        super().__init__(
            f"{what.rstrip('. ')}. {rule.advice}",
            status=status or rule.status,
            type=rule.type,
            code=rule.code,
            retry_after=retry_after,
        )
        self.kind = kind
        self.what = what
        self.partial = partial
        self.received = received
        self.prompt_tokens = prompt_tokens
        self.window_tokens = window_tokens
        self.is_ours = is_ours

    @property
    def outline(self) -> str:
        """What happened, for rows and logs: an upstream's own words, which stand behind a colon,
        may repeat what it was sent."""
        return self.what.partition(": ")[0]

    @property
    def retryable(self) -> bool:
        """Whether the same bytes may do better: never once a part was given."""
        return RULES[self.kind].retryable and not self.partial

    def after_part(self) -> "UpstreamFault":
        """The same fault, marked as raised after a part of the answer was given."""
        self.partial = True
        return self


_ENDS = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_calls": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "function_call",
    "content_filter": "content_filter",
    "content_filtered": "content_filter",
    "refusal": "content_filter",
    "safety": "content_filter",
    "blocklist": "content_filter",
    "prohibited_content": "content_filter",
    "spii": "content_filter",
    "recitation": "content_filter",
    "image_safety": "content_filter",
    "image_prohibited_content": "content_filter",
    "image_recitation": "content_filter",
    "model_armor": "content_filter",
    "sensitive": "content_filter",
    "guardrail_intervened": "content_filter",
}


def read_finish(native: Any) -> str | None:
    """OpenAI's finish_reason for a provider's own, or None for one that is no true end.

    An allow-list: error, abort, network_error, insufficient_system_resource, an unknown word and
    null end nothing, whatever a library makes of them.
    """
    return _ENDS.get(native.lower()) if isinstance(native, str) else None
