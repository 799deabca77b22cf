"""The bodies of requests to a llama-server.

It prefers n_predict and max_completion_tokens over max_tokens, so only one of them is sent.
"""

from collections.abc import Sequence
from typing import Any

from gateway.backends.base import Call
from gateway.wire.json_text import dump_bytes
from gateway.wire.media import withhold_media

BLOCKED = frozenset({"id_slot", "cache_prompt", "n_cache_reuse", "return_progress"})
"""Fields that would let a client reach another conversation's slot or spoil its cache, and the one
that the gateway asks for itself."""

MANAGED = frozenset(
    {
        "messages",
        "model",
        "stream",
        "stream_options",
        "max_tokens",
        "max_completion_tokens",
        "n_predict",
    }
)
"""Fields that the gateway decides; their values reach the server in the call's own form."""


def chat_body(call: Call, model: str | None, slot: int | None) -> bytes:
    """What asks for an answer to a call, streamed, in this slot (None: the server chooses)."""
    fields = {key: value for key, value in call.params.items() if passes(key)}
    if model is not None:
        fields["model"] = model
    fields["max_tokens"] = call.max_tokens
    fields["stream"] = True
    fields["stream_options"] = {"include_usage": True}
    # A word after each batch of the prompt: the server notices a closed connection only when
    # it writes, and a silent server is told from a reading one.
    fields["return_progress"] = True
    if slot is not None:
        fields["id_slot"] = slot
        fields.pop("n", None)
    if call.purpose == "prefill":
        fields["max_tokens"], fields["add_generation_prompt"] = 0, False
        fields.pop("n", None)
    if call.purpose in ("summary", "gist"):
        given = fields.get("chat_template_kwargs") or {}
        fields["chat_template_kwargs"] = {**given, "enable_thinking": False}
    return join_body(call.messages, fields)


def join_body(messages: Sequence[bytes], fields: dict[str, Any]) -> bytes:
    """One JSON object: the messages as they are, and the other fields. Images are passed on as
    data alone: by an address the server would fetch them itself, from wherever it stands, and
    follow where that sends it."""
    rest = dump_bytes(fields)[1:] if fields else b"}"
    shown = map(withhold_media, messages)
    return b'{"messages":[' + b",".join(shown) + (b"]," if fields else b"]") + rest


def passes(key: str) -> bool:
    """Whether a parameter of a client's travels as it came."""
    return key not in BLOCKED and key not in MANAGED
