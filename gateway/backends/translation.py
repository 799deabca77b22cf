"""Answers that LiteLLM translates from a provider's own format, brought back to what was said."""

from collections.abc import AsyncGenerator
from typing import Any

from gateway.backends.answers import Course
from gateway.backends.base import Chunk
from gateway.backends.classification import classify_payload
from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.backends.tap import Tap

_CONSTANT = ("id", "created", "model", "object")


async def translate(
    backend: str, reply: Any, tap: Tap, secrets: tuple[str, ...]
) -> AsyncGenerator[Chunk, None]:
    """The chunks of LiteLLM's stream `reply`, in one id and with the ends that `tap` saw.

    Raises UpstreamFault; what LiteLLM had received is given first.
    """
    course = Course(backend, secrets)
    first: dict[str, Any] = {}
    ended = False
    while not ended and course.fault is None:
        try:
            piece = await anext(reply, None)
        except Exception as error:  # of a library with a hundred providers: all mean the same here
            course.fail(tap.fault or explain(backend, error, secrets, in_body=True))
            break
        ended = piece is None
        if piece is None:
            chunks = course.fail(tap.fault) if tap.fault else course.close()
        else:
            parsed = piece.model_dump(exclude_none=True)
            first = first or parsed
            parsed.update((key, first[key]) for key in _CONSTANT if key in first)
            parsed = _correct(parsed, tap)
            chunks = [] if _says_nothing(parsed) else course.take(parsed)
        for chunk in chunks:
            yield chunk
    if course.fault is not None:
        raise course.fault


def _correct(parsed: dict[str, Any], tap: Tap) -> dict[str, Any]:
    """A chunk or an answer with true ends; figures of usage that nobody sent are left out."""
    for choice in parsed.get("choices") or ():
        finish = None if tap.fault else tap.evidence.correct(choice.get("finish_reason"))
        choice["finish_reason"] = finish
    if tap.evidence.known and not tap.evidence.counted:
        parsed.pop("usage", None)
    return {key: value for key, value in parsed.items() if value or not key.startswith("vertex_")}


def _says_nothing(parsed: dict[str, Any]) -> bool:
    """Whether a chunk is left of an end that LiteLLM made up."""
    choices = parsed.get("choices") or ()
    ended = any(choice.get("finish_reason") or choice.get("delta") for choice in choices)
    return bool(choices) and not ended and not parsed.get("usage")


def read_translated(reply: Any, tap: Tap) -> dict[str, Any]:
    """LiteLLM's whole answer as an object, its ends corrected; content null stays null."""
    parsed: dict[str, Any] = reply.model_dump(exclude_none=True)
    for choice in parsed.get("choices") or ():
        if isinstance(choice.get("message"), dict):
            choice["message"].setdefault("content", None)
        native = choice.pop("provider_specific_fields", None) or {}
        if not tap.evidence.known and native.get("native_finish_reason"):
            choice["finish_reason"] = native["native_finish_reason"]
    return _correct(parsed, tap)


_BY_NAME = {
    "ContextWindowExceededError": FaultKind.OVERFLOW,
    "ContentPolicyViolationError": FaultKind.REFUSED,
    "Timeout": FaultKind.TIMEOUT,
    "APIConnectionError": FaultKind.UNAVAILABLE,
    "ImportError": FaultKind.SERVER,
}


def explain(
    backend: str, error: Exception, secrets: tuple[str, ...], in_body: bool = False
) -> UpstreamFault:
    """The fault for an exception of LiteLLM's, where the tap saw nothing of it."""
    names = [kind.__name__ for kind in type(error).__mro__]
    if in_body and {"MidStreamFallbackError", "APIConnectionError"} & set(names):
        return UpstreamFault(FaultKind.INTERRUPTED, f"The backend {backend} broke off its answer")
    status = getattr(error, "status_code", None)
    headers = getattr(getattr(error, "response", None), "headers", None)
    payload = {"error": {"message": str(getattr(error, "message", error))}}
    fault = classify_payload(
        backend, payload, status if isinstance(status, int) else None, headers, secrets=secrets
    )
    for name, kind in _BY_NAME.items():
        if name in names and kind is not fault.kind:
            return UpstreamFault(kind, fault.what, retry_after=fault.retry_after)
    return fault
