"""What clients send to /v1/chat/completions, read strictly where it matters and kept otherwise.

Only the frame is checked (model, messages, roles, kinds of content); every other field is kept as
it came, for llama.cpp to understand or for the cloud backends' allow-list to drop.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.errors import BadRequest
from gateway.wire.depth import MOST_DEPTH, is_deeper
from gateway.wire.json_text import NotJson, loads
from gateway.wire.media import media_urls

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
SYSTEM_ROLES = frozenset({"system", "developer"})
MOST_MESSAGES = 100_000
"""Of one request: twenty times the longest conversation that was measured."""
_TOO_DEEP = f"`{{}}` is nested more than {MOST_DEPTH} deep."
# Header and alias values: what can stand in a header, a log line and a URL.
_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
# Placeholders that clients leave in an id's place before a chat has one: taken as an id, they
# would throw all new chats together.
_NO_IDS = frozenset({"", "new", "null", "none", "undefined"})
# Fields the gateway answers for itself; all others are kept.
_OWN_FIELDS = frozenset(
    {
        "model",
        "messages",
        "stream",
        "stream_options",
        "max_tokens",
        "max_completion_tokens",
        "metadata",
        "user",
        "session_id",
        "litellm_session_id",
        "store",
    }
)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A parsed chat request.

    messages are the client's objects in order; params is what may travel on; max_tokens is the
    client's own limit or None; conversation is the id that the body names; tags are those of its
    metadata, task what it says there that the request is for. media: addresses of images, sounds
    and files.
    """

    model: str
    messages: Sequence[dict[str, Any]]
    stream: bool
    include_usage: bool
    max_tokens: int | None
    params: dict[str, Any] = field(default_factory=dict)
    conversation: str | None = None
    user: str = ""
    tags: frozenset[str] = frozenset()
    task: str = ""
    media: tuple[str, ...] = ()


def parse_chat(body: bytes) -> ChatRequest:
    """Read a request body. Raises BadRequest naming the field that is wrong."""
    try:
        data = loads(body)
    except NotJson as error:
        raise BadRequest(f"The body is not valid JSON: {error}.", code="invalid_json") from None
    if not isinstance(data, dict):
        raise BadRequest("The body must be a JSON object.", code="invalid_json")
    model = data.get("model")
    if not isinstance(model, str) or not model:
        raise BadRequest("`model` must be a non-empty string.", param="model")
    messages = data.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("`messages` must be a non-empty list.", param="messages")
    if len(messages) > MOST_MESSAGES:
        raise BadRequest(
            f"`messages` holds {len(messages):,} messages; {MOST_MESSAGES:,} are the most.",
            param="messages",
        )
    _check_depth(data)
    media: list[str] = []
    for index, message in enumerate(messages):
        if _is_plain(message):
            if len(message) > 2:
                _check_fields(index, message)
        else:
            _check_message(index, message)
            _check_fields(index, message)
            media += media_urls(message.get("content"))
    _check_choices(data)
    options = data.get("stream_options")
    return ChatRequest(
        model=model,
        messages=messages,
        stream=_flag(data, "stream"),
        include_usage=isinstance(options, dict) and options.get("include_usage") is True,
        max_tokens=_limit(data),
        params={name: value for name, value in data.items() if name not in _OWN_FIELDS},
        conversation=_body_conversation(data),
        user=_user(data),
        tags=_body_tags(data),
        task=_body_task(data),
        media=tuple(media),
    )


def _check_depth(data: Mapping[str, Any]) -> None:
    for name, value in data.items():
        if name != "messages" and is_deeper(value):
            raise BadRequest(_TOO_DEEP.format(name), param=name)


def _check_fields(index: int, message: Mapping[str, Any]) -> None:
    """The depth of a message; nearly all fields are texts."""
    for value in message.values():
        kind = type(value)
        if (kind is dict or kind is list) and is_deeper(value, MOST_DEPTH - 1):
            raise BadRequest(_TOO_DEEP.format(f"messages[{index}]"), param="messages")


def _flag(data: Mapping[str, Any], name: str) -> bool:
    value = data.get(name)
    if value is not None and not isinstance(value, bool):
        raise BadRequest(f"`{name}` must be true or false.", param=name)
    return bool(value)


def _check_choices(data: Mapping[str, Any]) -> None:
    """`n`: how many answers are asked for."""
    value = data.get("n")
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BadRequest("`n` must be a whole number of at least 1.", param="n")


def _limit(data: Mapping[str, Any]) -> int | None:
    """The client's own limit of a reply, in tokens. -1, llama.cpp's spelling of "no limit", is
    what clients made for it send by themselves: it names no number, as if it were left out."""
    for name in ("max_completion_tokens", "max_tokens"):
        value = data.get(name)
        if value is None or value == -1:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise BadRequest(
                f"`{name}` must be a whole number of at least 1; left out or -1, the backend's "
                "own limit holds.",
                param=name,
            )
        return value
    return None


def _user(data: Mapping[str, Any]) -> str:
    value = data.get("user")
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadRequest("`user` must be a string.", param="user")
    return value


def _is_plain(message: object) -> bool:
    """Whether a message is one of text, as nearly all are."""
    if type(message) is not dict:
        return False
    role = message.get("role")
    return type(role) is str and role in ROLES and type(message.get("content")) is str


def _check_message(index: int, message: object) -> None:
    where = f"messages[{index}]"
    if not isinstance(message, dict):
        raise BadRequest(f"`{where}` must be an object.", param=where)
    role = message.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise BadRequest(
            f"`{where}.role` must be one of {', '.join(sorted(ROLES))}.", param=f"{where}.role"
        )
    content = message.get("content")
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list):
        raise BadRequest(
            f"`{where}.content` must be a string, a list of parts, or null.",
            param=f"{where}.content",
        )
    for number, part in enumerate(content):
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            raise BadRequest(
                f"`{where}.content[{number}]` must be an object with a `type`.",
                param=f"{where}.content[{number}]",
            )


def is_no_id(value: str) -> bool:
    """What clients send where they have no id yet: an empty field, or a word for nothing."""
    return value.strip().lower() in _NO_IDS


def check_id(value: str, name: str) -> str:
    """A conversation id or key as clients may choose it. Raises BadRequest."""
    if not _ID.fullmatch(value):
        raise BadRequest(
            f"`{name}` must be 1 to 128 characters out of A-Z a-z 0-9 . _ : -", param=name
        )
    return value


def _body_conversation(data: Mapping[str, Any]) -> str | None:
    metadata = data.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise BadRequest("`metadata` must be an object.", param="metadata")
    named = [("metadata.conversation_id", (metadata or {}).get("conversation_id"))]
    named += [(name, data.get(name)) for name in ("session_id", "litellm_session_id")]
    for name, value in named:
        if value is None:
            continue
        if not isinstance(value, str):
            raise BadRequest(f"`{name}` must be a string.", param=name)
        if not is_no_id(value):
            return check_id(value, name)
    return None


def read_tags(text: str) -> frozenset[str]:
    """Tags as a header writes them: one, or several with commas between."""
    return frozenset(filter(None, (tag.strip() for tag in text.split(","))))


def _body_tags(data: Mapping[str, Any]) -> frozenset[str]:
    """`metadata.tag` and `metadata.tags` (text or a list of texts). Anything else is refused: a
    tag chooses the backend, and one that was not understood would send a turn elsewhere."""
    metadata = data.get("metadata") or {}
    found: set[str] = set()
    for name in ("tag", "tags"):
        value = metadata.get(name)
        if value is None:
            continue
        if isinstance(value, str):
            found |= read_tags(value)
        elif isinstance(value, list) and all(isinstance(tag, str) for tag in value):
            found.update(filter(None, (tag.strip() for tag in value)))
        else:
            raise BadRequest(
                f"`metadata.{name}` must be text or a list of texts.", param=f"metadata.{name}"
            )
    return frozenset(found)


def _body_task(data: Mapping[str, Any]) -> str:
    """`metadata.task`: what a client says that a request is for, where it is no turn."""
    task = (data.get("metadata") or {}).get("task")
    return task if isinstance(task, str) else ""


def split_system(
    messages: Sequence[dict[str, Any]],
) -> tuple[list[dict[str, Any]], list[tuple[int, dict[str, Any]]]]:
    """(the chain's messages, system messages with how many of the chain stood before each)."""
    chain: list[dict[str, Any]] = []
    system: list[tuple[int, dict[str, Any]]] = []
    for message in messages:
        if message["role"] in SYSTEM_ROLES:
            system.append((len(chain), message))
        else:
            chain.append(message)
    return chain, system
