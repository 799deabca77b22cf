"""The lines of an export as they are read again: their shapes, each checked before it is used.

Rows name each other: messages, chapters, entries, facts and documents by ids, chapter versions by
[chapter, version], gists by [policy, last message, version], folds and system texts by number.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from gateway.errors import BadRequest
from gateway.wire.json_text import NotJson, loads

FORMAT = 2
"""Of the lines. 1 left out what a reader needs to store them whole, and is not read."""


def _milliseconds(value: Any) -> Any:
    """ISO 8601 in UTC as milliseconds since 1970."""
    if not isinstance(value, str):
        raise ValueError("a time such as 2026-01-31T12:00:00.000Z is wanted")
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError("a time without its zone")
    return round(moment.timestamp() * 1_000)


Moment = Annotated[int, BeforeValidator(_milliseconds)]
Version = tuple[str, int]
GistName = tuple[str, str, int]
Number = Annotated[int, Field(ge=0, lt=1 << 62)]


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=False, frozen=True)


class OwnerLine(_Line):
    type: Literal["owner"]
    format: int
    name: str
    user: str
    created_at: Moment


class ConversationLine(_Line):
    type: Literal["conversation"]
    format: int
    id: Annotated[str, Field(pattern=r"^conv_[0-9a-f]{8,64}$")]
    owner: str
    user: str
    model: str
    created_at: Moment
    updated_at: Moment
    archived: bool
    backend: str | None
    route: str | None
    private: bool
    head: str | None
    aliases: list[str]
    resends: bool
    noted: bool
    renew_after: Number | None


class MessageLine(_Line):
    type: Literal["message"]
    id: str
    parent: str | None
    raw: str
    chars: Number
    produced: bool
    partial: bool
    backend: str | None
    finish_reason: str | None
    created_at: Moment


class SystemLine(_Line):
    type: Literal["system"]
    number: Number
    messages: list[Any]
    created_at: Moment


class VersionPart(_Line):
    version: Number
    text: str
    origin: str
    backend: str | None
    prompt: str | None
    took_ms: Number | None
    created_at: Moment


class ChapterLine(_Line):
    type: Literal["chapter"]
    id: str
    first: str
    last: str
    source_chars: Number
    versions: list[VersionPart]
    created_at: Moment


class GistLine(_Line):
    type: Literal["gist"]
    last: str
    sources: list[Version]
    retired_at: Moment | None
    policy: str
    version: Number
    text: str
    origin: str
    backend: str | None
    prompt: str | None
    took_ms: Number | None
    created_at: Moment


class EntryLine(_Line):
    type: Literal["entry"]
    id: str
    chapter: str | None
    told_by: Version | None
    gist: GistName | None
    source: str | None
    last: str
    kind: str
    number: Number | None
    text: str
    about: str | None
    who: str | None
    target: str | None
    truth: str | None
    origin: str
    created_at: Moment


class MarkLine(_Line):
    type: Literal["mark"]
    entry: str
    by: str | None
    chapter: str | None
    last: str | None
    mark: str
    origin: str
    created_at: Moment


class MemoryLine(_Line):
    """learned_here: in the conversation whose lines these are; None among the lines of an owner."""

    type: Literal["memory"]
    id: str
    learned_here: bool | None
    replaces: str | None
    text: str
    about: str | None
    source: str | None
    origin: str
    state: Literal["active", "replaced", "deleted"]
    ended_at: Moment | None
    created_at: Moment


class DocumentLine(_Line):
    type: Literal["document"]
    id: str
    removed_at: Moment | None
    policy: str | None
    name: str
    text: str
    digest: str
    created_at: Moment


class FoldLine(_Line):
    type: Literal["fold"]
    number: Number
    at: str
    border: str | None
    gist: GistName | None
    memory: list[Version]
    shown: dict[Literal["profile", "documents", "pins", "open", "closed"], list[str | None]] | None
    policy: str
    kind: str
    memory_chars: Number
    stand_ins: Number
    revision: str
    created_at: Moment


class NoteLine(_Line):
    type: Literal["note"]
    fold: Number
    asked: str
    body: Any
    policy: str
    kind: str
    chars: Number
    created_at: Moment


class AttemptLine(_Line):
    type: Literal["attempt"]
    id: str
    asked: str
    reply: str | None
    system: Number | None
    fold: Number | None
    backend: str
    policy: str
    model: str
    view_kind: str
    state: str
    finish_reason: str | None
    error: str | None
    idempotency_key: str | None
    memory_chars: Number
    verbatim_chars: Number
    prompt_tokens: Number | None
    cached_tokens: Number | None
    completion_tokens: Number | None
    rule: str | None
    slot: int | None
    prompt_chars: Number | None
    expected_chars: Number | None
    moved_at: Number | None
    moved_by: str | None
    first_token_ms: Number | None
    queued_ms: Number | None
    started_at: Moment
    ended_at: Moment | None


class QuarantineLine(_Line):
    type: Literal["quarantine"]
    chapter: str | None
    reasons: list[str]
    kind: str
    backend: str
    text: str
    finish_reason: str | None
    created_at: Moment


class RatioLine(_Line):
    type: Literal["ratio"]
    backend: str
    chars_per_token: Annotated[float, Field(gt=0, lt=1_000, allow_inf_nan=False)]


Line = (
    OwnerLine
    | ConversationLine
    | MessageLine
    | SystemLine
    | ChapterLine
    | GistLine
    | EntryLine
    | MarkLine
    | MemoryLine
    | DocumentLine
    | FoldLine
    | NoteLine
    | AttemptLine
    | QuarantineLine
    | RatioLine
)
_LINE: TypeAdapter[Line] = TypeAdapter(Annotated[Line, Field(discriminator="type")])


def read_line(text: str | bytes, number: int) -> Line:
    """One line of an export. Raises BadRequest that names the line, and what is wrong with it
    without its words."""
    try:
        line = _LINE.validate_python(loads(text))
    except NotJson as error:
        raise BadRequest(f"Line {number:,} is not JSON: {error}.") from None
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "it"
        raise BadRequest(
            f"Line {number:,} is no line of an export: {where}: {first['msg']}."
        ) from None
    if isinstance(line, OwnerLine | ConversationLine) and line.format != FORMAT:
        raise BadRequest(
            f"Line {number:,} is of format {line.format}; this program reads format {FORMAT}. "
            "Export it again with a program of this version."
        )
    return line
