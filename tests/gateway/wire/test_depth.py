"""How deep JSON may be nested."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.errors import BadRequest
from gateway.wire.depth import MOST_DEPTH, is_deeper
from gateway.wire.json_text import dump_bytes
from gateway.wire.requests import MOST_MESSAGES, parse_chat


def nested(depth: int, leaf: Any = 0) -> Any:
    for level in range(depth):
        leaf = [leaf] if level % 2 else {"a": leaf}
    return leaf


def test_the_bound_is_exact() -> None:
    assert not is_deeper(nested(MOST_DEPTH))
    assert is_deeper(nested(MOST_DEPTH + 1))
    assert not is_deeper("[[[[") and not is_deeper({"a": [1, {"b": None}]}, 3)
    assert is_deeper({"a": [1, {"b": None}]}, 2)


GOOD = {"role": "user", "content": "やあ"}


@pytest.mark.parametrize("depth", [101, 500, 900, 5_000, 100_000])
@pytest.mark.parametrize("where", ["param", "message", "part", "body"])
def test_a_deep_body_is_a_bad_request(where: str, depth: int) -> None:
    deep = b"[" * depth + b"]" * depth
    body = {
        "param": b'{"model":"m","messages":[%s],"tools":%s}' % (dump_bytes(GOOD), deep),
        "message": b'{"model":"m","messages":[{"role":"user","content":"x","y":%s}]}' % deep,
        "part": b'{"model":"m","messages":[{"role":"user","content":[{"type":"x","y":%s}]}]}'
        % deep,
        "body": deep,
    }[where]
    with pytest.raises(BadRequest) as raised:
        parse_chat(body)
    assert raised.value.status == 400


def test_what_people_send_is_not_deep() -> None:
    schema = nested(90, "string")
    body = {"model": "m", "messages": [{**GOOD, "name": "a"}], "tools": [schema]}
    assert parse_chat(dump_bytes(body)).params["tools"] == [schema]


def test_messages_have_a_bound() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": ""}] * (MOST_MESSAGES + 1)}
    with pytest.raises(BadRequest, match="100,001"):
        parse_chat(dump_bytes(body))
