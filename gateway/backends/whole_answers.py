"""Answers that came whole, held to the rules of answers.py."""

from typing import Any

from gateway.backends.answer_shapes import has_message_shape, has_substance
from gateway.backends.answers import empty_answer, untrue_end
from gateway.backends.base import Completion
from gateway.backends.classification import classify_payload
from gateway.backends.faults import FaultKind, UpstreamFault, read_finish
from gateway.wire.json_text import dump_bytes, loads


def read_completion(backend: str, data: bytes, secrets: tuple[str, ...] = ()) -> Completion:
    """As check_completion, of the body of a response with status 200."""
    try:
        parsed = loads(data)
    except ValueError:
        parsed = None
    return check_completion(backend, data, parsed, secrets)


def check_completion(
    backend: str, data: bytes, parsed: Any, secrets: tuple[str, ...] = ()
) -> Completion:
    """A whole answer that holds by the rules above, its native finish reasons translated.

    Raises UpstreamFault; where the answer has no true end, `received` holds what came.
    """

    def fault(kind: FaultKind, what: str) -> UpstreamFault:
        return UpstreamFault(kind, f"The backend {backend} {what}")

    if not isinstance(parsed, dict):
        raise fault(FaultKind.MALFORMED, "sent no answer but " + _describe_body(data))
    if parsed.get("error"):
        raise classify_payload(backend, parsed, secrets=secrets)
    choices = parsed.get("choices")
    if choices is not None and (
        not isinstance(choices, list) or not all(map(has_message_shape, choices))
    ):
        raise fault(FaultKind.MALFORMED, "sent an answer of a wrong shape")
    if not choices:
        raise empty_answer(backend)
    natives = [choice.get("finish_reason") for choice in choices]
    finishes = [read_finish(native) for native in natives]
    substantial = any(has_substance(choice.get("message")) for choice in choices)
    if None in finishes:
        failed = untrue_end(backend, natives[finishes.index(None)], secrets)
        failed.partial, failed.received = substantial, parsed
        raise failed
    if not substantial and "content_filter" not in finishes:
        raise empty_answer(backend)
    if finishes != natives or any(choice.get("message") is None for choice in choices):
        parsed = {
            **parsed,
            "choices": [
                {**choice, "message": choice.get("message") or _NOTHING, "finish_reason": finish}
                for choice, finish in zip(choices, finishes, strict=True)
            ],
        }
        data = dump_bytes(parsed)
    return Completion(data, parsed)


_NOTHING = {"role": "assistant", "content": ""}


def _describe_body(data: bytes) -> str:
    return "a web page" if data.lstrip()[:1] == b"<" else "something else"
