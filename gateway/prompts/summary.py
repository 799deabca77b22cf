"""The summarizer's prompt: a span as quoted data, and behind it what to write about it.

The summarizer is cast as the recorder of what happened, who stands outside it: asked plainly to
"summarize", models go on with the story or answer its last question. Everything stands in one user
message, the span first, between marks that it cannot close; the instruction comes after it, in the
conversation's language, and holds no example that could leak into an answer. No client's system
text is here: it may hold orders.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gateway.prompts.wordings import Wording, wording
from gateway.wire.json_text import dump_bytes
from policies.values import Line

PROMPT_VERSION = "recorder-1"
"""Stored with each text that these prompts produced: another wording is another version."""

Form = Literal["grammar", "schema", "object", "prose"]
"""How the JSON frame is demanded of a backend: by a grammar that also knows a least length
(llama.cpp), by a schema, as any JSON object (providers that refuse schemas), or in words only."""

_FIRST_DRAW = 0.3
_REDRAW = 0.8
"""Temperatures. A redraw is warmer: the same bytes at the same temperature tend to be refused
again."""

_LEAST_CHARS = 200


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a backend is asked: messages as JSON in UTF-8, other fields, and the text's length."""

    messages: tuple[bytes, ...]
    params: dict[str, Any]
    chars: int


def prompt_chars(language: str | None) -> int:
    """What a prompt holds beside the quoted text, in characters."""
    words = wording(language)
    longest = max(words.chapter, words.gist, key=len)
    return len(_text(words, "", longest, 1_000))


def quote(text: str) -> str:
    """The text between marks that it cannot close: they carry a digest of the text itself."""
    mark = hashlib.blake2b(text.encode(errors="replace"), digest_size=4).hexdigest()
    while mark in text:
        mark = hashlib.blake2b(mark.encode(), digest_size=4).hexdigest()
    return f"[begin record {mark}]\n{text}\n[end record {mark}]"


def render_lines(lines: Sequence[Line]) -> str:
    """Lines as the summarizer reads them: `speaker: text`, one below the other."""
    return "\n".join(f"{line.speaker}: {line.text}" for line in lines)


def ask_chapter(
    lines: Sequence[Line],
    *,
    asked_chars: int,
    language: str | None,
    form: Form,
    draw: int = 0,
    seed: int | None = None,
) -> Prompt:
    """What asks for one chapter of about `asked_chars` characters.

    draw: 0, or the number of the redraw. seed: for backends that take one.
    """
    words = wording(language)
    text = _text(words, render_lines(lines), words.chapter, asked_chars)
    return _prompt(text, _params(form, asked_chars, draw, seed))


def ask_gist(
    notes: Sequence[str],
    *,
    asked_chars: int,
    language: str | None,
    form: Form,
    draw: int = 0,
    seed: int | None = None,
) -> Prompt:
    """What asks for one gist of at most `asked_chars` characters.

    notes: the earlier gist, if there is one, and the chapters behind it, oldest first.
    """
    words = wording(language)
    text = _text(words, "\n\n".join(notes), words.gist, asked_chars)
    return _prompt(text, _params(form, asked_chars, draw, seed))


def _text(words: Wording, quoted: str, task: str, asked_chars: int) -> str:
    return f"{words.opening}\n\n{quote(quoted)}\n\n{task.format(chars=asked_chars)}\n{words.frame}"


def _params(form: Form, asked_chars: int, draw: int, seed: int | None) -> dict[str, Any]:
    params: dict[str, Any] = {"temperature": _REDRAW if draw else _FIRST_DRAW}
    if seed is not None:
        params["seed"] = seed
    if form == "object":
        params["response_format"] = {"type": "json_object"}
    elif form != "prose":
        params["response_format"] = _schema(form, asked_chars)
    return params


def _schema(form: Form, asked_chars: int) -> dict[str, Any]:
    """A string under `chapter`. On a grammar it has a least length, without which small models
    answer one word; never a greatest, which would cut in mid-sentence. Providers refuse both."""
    text: dict[str, Any] = {"type": "string"}
    if form == "grammar":
        text["minLength"] = min(_LEAST_CHARS, asked_chars // 5)
    return {
        "type": "json_schema",
        "json_schema": {
            "name": "chapter",
            "strict": True,
            "schema": {
                "type": "object",
                "properties": {"chapter": text},
                "required": ["chapter"],
                "additionalProperties": False,
            },
        },
    }


def _prompt(text: str, params: dict[str, Any]) -> Prompt:
    return Prompt((dump_bytes({"role": "user", "content": text}),), params, len(text))
