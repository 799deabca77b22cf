"""A policy of policies.yaml: the numbers and choices by which a view is made.

Defaults are the ``local fold`` column of the design ("Numbers"), except where a field says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticKnownError

from policies.masking.kinds import Kind
from policies.schema.parts import Fault, Part, refuse
from policies.schema.quantities import Chars, MaxOutput, Seconds, Text, Timeout, Unit, ViewSize

_VIEW_SIZES = ("start", "ceiling", "headroom", "keep")
_SIZE = Field(le=20_000_000, json_schema_extra={"minimum": 1})
_LEAST = {"start": 500, "ceiling": 1_000, "headroom": 100, "keep": 100}
_LEAST_MESSAGES = {"start": 4, "ceiling": 5, "headroom": 2, "keep": 1}


class View(Part):
    """When a view folds and how much it keeps; memory and verbatim together."""

    unit: Unit = "chars"
    """What the four sizes count: characters, tokens, or the messages of the verbatim text. There
    are defaults in characters only: else all four are written."""
    start: Annotated[ViewSize, _SIZE] = 48_000
    """Folding starts above this."""
    ceiling: Annotated[ViewSize, _SIZE] = 56_000
    """Never more than this; a hard cut above it."""
    headroom: Annotated[ViewSize, _SIZE] = 17_000
    """What one fold frees below start."""
    keep: Annotated[ViewSize, _SIZE] = 16_000
    """The least that stays verbatim."""

    @model_validator(mode="before")
    @classmethod
    def _infer_unit(cls, data: Any) -> Any:
        """Sizes that all say tokens, or all messages, need no ``unit``."""
        if not isinstance(data, Mapping) or "unit" in data:
            return data
        sizes = [data[name] for name in _VIEW_SIZES if name in data]
        for unit in ("tokens", "messages"):
            if sizes and all(isinstance(s, str) and s.endswith(f" {unit}") for s in sizes):
                return {"unit": unit, **data}
        return data

    @field_validator(*_VIEW_SIZES)
    @classmethod
    def _check_least(cls, size: int, info: ValidationInfo) -> int:
        counted = info.data.get("unit") == "messages"
        least = (_LEAST_MESSAGES if counted else _LEAST)[str(info.field_name)]
        if size < least:
            raise PydanticKnownError("greater_than_equal", {"ge": least})
        return size

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        missing = [name for name in _VIEW_SIZES if name not in self.model_fields_set]
        if self.unit != "chars" and missing:
            unit = self.unit
            text = f"a view in {unit} has no defaults: {', '.join(missing)} must be written too"
            self.fail([Fault((), text, f"write start, ceiling, headroom and keep in {unit}")])
        faults = []
        if not self.keep < self.after_fold:
            text = (
                f"keep must be below start − headroom: "
                f"{self.keep:,} is not below {self.start:,} − {self.headroom:,} = "
                f"{self.after_fold:,}"
            )
            where = self.written("keep", "headroom", "start")
            faults.append(Fault(where, text, "lower keep or headroom, or raise start"))
        if not self.start < self.ceiling:
            text = f"start must be below ceiling: {self.start:,} is not below {self.ceiling:,}"
            where = self.written("ceiling", "start")
            faults.append(Fault(where, text, "lower start or raise ceiling"))
        self.fail(faults)
        return self

    @property
    def after_fold(self) -> int:
        """What memory and verbatim are to be at most after a fold, in this view's unit."""
        return self.start - self.headroom


class Chapters(Part):
    """How spans become chapters, in characters."""

    split: Annotated[Chars, Field(ge=200, le=1_000_000)] = 32_000
    """The largest span of one chapter."""
    length: Annotated[Chars, Field(ge=50, le=100_000)] = 1_100
    """The length asked for a chapter."""
    stack: Annotated[Chars, Field(ge=100, le=1_000_000)] = 6_000
    """Chapters above this start a major GC: their older half goes into the gist."""

    @model_validator(mode="after")
    def _check_length(self) -> Self:
        if not self.length < self.split:
            text = (
                f"a chapter must be shorter than its span: "
                f"length {self.length:,} is not below split {self.split:,}"
            )
            where = self.written("length", "split")
            self.fail([Fault(where, text, "lower length or raise split")])
        return self


class Gist(Part):
    """The old generation, in characters."""

    length: Annotated[Chars, Field(ge=50, le=100_000)] = 1_500
    """The length asked for the gist."""


class Summaries(Part):
    """Who writes chapters, when, and how often it is tried."""

    backends: tuple[str, ...] = ()
    """Tried in this order; empty: the conversation's own backend."""
    delay: Annotated[Seconds, Field(ge=0, le=86_400)] = 30.0
    """Seconds between a turn and the summary that it made due."""
    max_output: MaxOutput = 4_096
    """Tokens: there so that nothing is cut, never to make a summary short."""
    redraws: Annotated[int, Field(ge=0, le=10)] = 1
    """How often one backend is asked again after an answer that was judged out."""
    rounds: Annotated[int, Field(ge=1, le=100)] = 3
    """Rounds over all summarizers before a stand-in is prepared."""
    timeout: Timeout = 600.0
    """Seconds for one summary."""

    @field_validator("backends")
    @classmethod
    def _each_once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(names)) < len(names):
            refuse("twice", "each summarizer is named once", "redraws asks one again")
        return names


class Recall(Part):
    """Notes of the transcript shown beside the newest message."""

    budget: Annotated[Chars, Field(ge=0, le=100_000)] = 1_500
    """Characters a turn at most; 0: no recall."""
    between_folds: Annotated[Chars, Field(ge=0, le=1_000_000)] = 6_000
    """Characters at most between two folds, all turns together."""
    tool: bool = False
    """Models that can call tools may search for themselves: recall_search, recall_expand."""
    lookups: tuple[str, ...] = ()
    """Other sources that are asked beside the transcript."""


class Ledger(Part):
    """What the memory shows of the ledger, behind the chapters."""

    length: Annotated[Chars, Field(ge=0, le=100_000)] = 1_000
    """Characters of open threads and of those closed last, at most; never more than a tenth of what
    a fold leaves."""
    pins: Annotated[Chars, Field(ge=0, le=100_000)] = 4_000
    """Characters of what is pinned, at most: of the room that documents leave, and where that ends,
    of ``length``, before threads."""
    closed: Annotated[int, Field(ge=0, le=50)] = 3
    """How many of the threads that were closed last are shown too."""


class Profile(Part):
    """What the owner told about themselves, across conversations."""

    learn: bool = True
    """Facts of judged chapters are kept for the owner's other conversations."""
    length: Annotated[Chars, Field(ge=0, le=100_000)] = 1_000
    """Characters shown at most, and never more than a tenth of what a fold leaves; 0: none."""


class Privacy(Part):
    """What models off this machine do not get to see."""

    mask: tuple[Kind, ...] = ()
    """Values that ``litellm`` backends are shown placeholders for, in turns, titles and summaries;
    in the replies and in the transcript they stand as they are."""

    @field_validator("mask")
    @classmethod
    def _each_once(cls, kinds: tuple[Kind, ...]) -> tuple[Kind, ...]:
        if len(set(kinds)) < len(kinds):
            refuse("twice", "each kind of value is named once")
        return kinds


class ReplyFields(Part):
    """The fields of replies that are JSON, so that summarizers can tell apart what they hold."""

    narration: tuple[str, ...] = ("narration", "narrator", "scene", "action", "description")
    speaker: tuple[str, ...] = ("speaker", "character", "name", "who")
    speech: tuple[str, ...] = ("speech", "say", "says", "dialogue", "line", "text", "message")
    thoughts: tuple[str, ...] = ("thought", "thoughts", "inner", "monologue", "feeling")


class Policy(Part):
    """The numbers and choices by which a view is made."""

    name: SkipJsonSchema[str] = ""
    """The key under which the file lists it; set by PolicyFile, never written."""
    view: View = View()
    chapters: Chapters = Chapters()
    gist: Gist = Gist()
    summaries: Summaries = Summaries()
    recall: Recall = Recall()
    memory: Literal["generational", "rolling"] = "generational"
    """generational: chapters stack, older ones join a gist now and then; rolling: one summary,
    rewritten at each fold, for chats that are soon forgotten."""
    ledger: Ledger = Ledger()
    profile: Profile = Profile()
    privacy: Privacy = Privacy()
    documents: tuple[Text, ...] = ()
    """Files whose texts stand in every view of this policy, beside the file or by full path."""
    reply_fields: ReplyFields = ReplyFields()
    elsewhere: tuple[Literal["refused", "overflow"], ...] = ()
    """What may be tried on the next tier though the same bytes would fail again: a refusal of the
    content, a prompt that the backend found too long."""
    keep_warm: bool = False
    """After each turn the smaller views of the model's other tiers get their chapters too, for the
    day of a move or an outage."""
    ttl: Annotated[Seconds, Field(ge=3_600)] | None = None
    """Seconds after its last turn at which a whole conversation is deleted; none: never."""

    def __hash__(self) -> int:
        """Of a few fields, enough to tell policies apart: hashing all of them costs more than what
        is kept by policy."""
        return hash((self.name, self.view.start, self.view.keep, self.memory))

    @model_validator(mode="after")
    def _check_memory(self) -> Self:
        """Memory alone may not fill the budget of a fold. Characters bound neither tokens nor
        messages, so a view that counts these is not compared here."""
        memory = self.gist.length + self.chapters.stack
        if self.view.unit == "chars" and not memory < self.view.after_fold:
            text = (
                f"gist and chapters would fill the view: gist.length + chapters.stack = "
                f"{self.gist.length:,} + {self.chapters.stack:,} = {memory:,} is not below "
                f"view.start − view.headroom = {self.view.start:,} − {self.view.headroom:,} = "
                f"{self.view.after_fold:,}"
            )
            where = self.written("chapters", "gist", "view")
            self.fail([Fault(where, text, "lower chapters.stack or gist.length")])
        return self
