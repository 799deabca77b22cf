"""JSON in and out: orjson's speed, and the standard library for what orjson refuses.

orjson rejects lone surrogates (`"\\ud83d"`), which clients and models do send: half an emoji cut
off at a token's border. They are kept here; what goes to a model is cleaned elsewhere.
"""

import json
from typing import Any

import orjson


def decode_json(data: bytes | str) -> Any:
    """Decode JSON, lone surrogates included; a ValueError for anything that is not JSON in UTF-8.

    NaN and Infinity, which the standard library would take, are refused.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data, parse_constant=_refuse_constant)


def encode_json(value: Any) -> bytes:
    """Encode as compact UTF-8; what UTF-8 cannot hold (lone surrogates) and integers beyond 64 bit
    come out as the standard library writes them, escaped."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":")).encode()


def join_surrogates(text: str) -> str:
    """Join halves of a pair that arrived in two pieces; halves that stand alone stay."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
