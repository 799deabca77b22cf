"""The summarizer's prompt: a span as quoted data, and behind it what to write about it.

The summarizer is cast as the recorder of what happened, who stands outside it: asked plainly to
"summarize", models go on with the story or answer its last question. Everything stands in one user
message, the span first, between marks that it cannot close; the instruction comes after it, in the
conversation's language, and holds no example that could leak into an answer. The threads that are
open are quoted data too, each with the id by which an answer may resolve it. No client's system
text is here: it may hold orders.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gateway.prompts.phrases import PHRASES
from gateway.prompts.wordings import TAGS, THINKS, Wording, wording
from gateway.wire.json_text import dump_bytes
from policies.values import Line

PROMPT_VERSION = "recorder-2"
"""Stored with each text that these prompts produced: another wording is another version."""

Form = Literal["grammar", "schema", "object", "tool", "prose"]
"""How the frame is demanded of a backend: by a grammar that also knows least lengths and most items
(llama.cpp), by a schema, as any JSON object (providers that refuse schemas), by a tool that takes
the frame (those that refuse that too), or as plain text under tags where nothing enforces JSON."""

TOOL = "record"
"""The name of the tool whose arguments are the frame."""

Threads = Sequence[tuple[int, str]]
"""Open threads: their numbers and texts."""

_FIRST_DRAW = 0.3
_REDRAW = 0.8
"""Temperatures. A redraw is warmer: the same bytes at the same temperature tend to be refused
again."""

_LEAST_CHARS = 200
_MOST_ITEMS = {"facts": 8, "claims": 6, "opened": 5, "resolved": 8, "quotes": 3}
"""Items that a grammar allows a list: small models go on with a list for as long as they may."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a backend is asked: messages as JSON in UTF-8, other fields, and the text's length."""

    messages: tuple[bytes, ...]
    params: dict[str, Any]
    chars: int


def prompt_chars(language: str | None, threads: Threads = ()) -> int:
    """What a prompt holds beside the quoted text, in characters: the longest that it may be."""
    words = wording(language)
    tasks = [_task(words, form, 1_000, language, "") for form in _WRITTEN]
    longest = max(*tasks, words.gist + words.gist_tags, key=len)
    return len(_text(words, "", longest, threads)) + _MOST_NAME


def render_threads(threads: Threads) -> str:
    """The list of open threads: `T3: text`, one below the other."""
    return "\n".join(f"T{number}: {text}" for number, text in threads)


def quote(text: str) -> str:
    """The text between marks that it cannot close: they carry a digest of the text itself."""
    mark = hashlib.blake2b(text.encode(errors="replace"), digest_size=4).hexdigest()
    while mark in text:
        mark = hashlib.blake2b(mark.encode(), digest_size=4).hexdigest()
    return f"[begin record {mark}]\n{text}\n[end record {mark}]"


def render_lines(lines: Sequence[Line]) -> str:
    """Lines as the summarizer reads them: `speaker: text`, one below the other."""
    return "\n".join(f"{line.label}: {line.text}" for line in lines)


def ask_chapter(
    lines: Sequence[Line],
    *,
    asked_chars: int,
    language: str | None,
    form: Form,
    draw: int = 0,
    seed: int | None = None,
    threads: Threads = (),
) -> Prompt:
    """What asks for one chapter of about `asked_chars` characters, and what is told beside it.

    draw: 0, or the number of the redraw. seed: for backends that take one. threads: the open ones.
    """
    words = wording(language)
    user = next((line.speaker for line in lines if line.role == "user"), "")
    task = _task(words, form, asked_chars, language, user[:_MOST_NAME])
    text = _text(words, render_lines(lines), task, threads)
    return _prompt(text, _params(form, _chapter_frame(form, asked_chars), draw, seed))


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
    framed = words.gist_tags if form == "prose" else words.gist_json
    task = f"{words.gist.format(chars=asked_chars)}\n{framed}"
    text = _text(words, "\n\n".join(notes), task)
    frame = {"chapter": _prose(form, asked_chars)}
    return _prompt(text, _params(form, frame, draw, seed))


_WRITTEN: tuple[Form, ...] = ("grammar", "prose")
_MOST_NAME = 60


def _task(words: Wording, form: Form, asked_chars: int, language: str | None, user: str) -> str:
    known = language if language in PHRASES else "en"
    framed = "\n".join((words.tags, *TAGS)) if form == "prose" else words.json
    parts = (
        words.marks.format(thinks=THINKS[known]),
        words.items.format(user=user or PHRASES[known].user),
        words.chapter.format(chars=asked_chars),
        framed,
    )
    return "\n".join(parts)


def _text(words: Wording, quoted: str, task: str, threads: Threads = ()) -> str:
    parts = [words.opening, quote(quoted)]
    if threads:
        parts += [words.threads, quote(render_threads(threads))]
    return "\n\n".join((*parts, task))


def _params(form: Form, frame: dict[str, Any], draw: int, seed: int | None) -> dict[str, Any]:
    params: dict[str, Any] = {"temperature": _REDRAW if draw else _FIRST_DRAW}
    if seed is not None:
        params["seed"] = seed
    if form == "object":
        params["response_format"] = {"type": "json_object"}
    elif form == "tool":
        params["tools"] = [_tool(frame)]
        params["tool_choice"] = {"type": "function", "function": {"name": TOOL}}
    elif form != "prose":
        schema = {"name": "chapter", "strict": True, "schema": _object(form, frame)}
        params["response_format"] = {"type": "json_schema", "json_schema": schema}
    return params


def _tool(frame: dict[str, Any]) -> dict[str, Any]:
    function = {"name": TOOL, "parameters": _object("tool", frame)}
    return {"type": "function", "function": function}


def _prose(form: Form, asked_chars: int) -> dict[str, Any]:
    """On a grammar the prose has a least length, without which small models answer one word; never
    a greatest, which would cut in mid-sentence. Providers refuse both."""
    least = {"minLength": min(_LEAST_CHARS, asked_chars // 5)} if form == "grammar" else {}
    return {"type": "string", **least}


def _chapter_frame(form: Form, asked_chars: int) -> dict[str, Any]:
    """The prose first: what a model has written it cannot take back."""
    text = {"type": "string"}
    items: dict[str, dict[str, Any]] = {
        "facts": _object(form, {"about": text, "text": text}, whole=True),
        "claims": _object(form, dict.fromkeys(("who", "to", "said", "truth"), text), whole=True),
        "opened": text,
        "resolved": text,
        "quotes": _object(form, {"who": text, "text": text}, whole=True),
    }
    lists = {
        name: {"type": "array", "items": item}
        | ({"maxItems": _MOST_ITEMS[name]} if form == "grammar" else {})
        for name, item in items.items()
    }
    return {"chapter": _prose(form, asked_chars), **lists}


def _object(form: Form, properties: dict[str, Any], *, whole: bool = False) -> dict[str, Any]:
    """An object of these properties. On a grammar only the prose is required of a frame, so that a
    small model may end with it; strict schemas of providers require everything."""
    is_whole = whole or form != "grammar"
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if is_whole or name == "chapter"],
        "additionalProperties": False,
    }


def _prompt(text: str, params: dict[str, Any]) -> Prompt:
    return Prompt((dump_bytes({"role": "user", "content": text}),), params, len(text))
