"""Rules of a model: which of its tiers serves a turn, by conditions that must all hold."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from typing import Annotated, Literal, Self, TypeVar, get_args

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from policies.schema.names import check_name, find_missing
from policies.schema.parts import Fault, KeyPath, Part, refuse
from policies.schema.quantities import Chars, Text

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: tuple[Day, ...] = get_args(Day)

RESERVED = ("route", "home", "first-healthy", "fallback", "migrating", "auxiliary")
"""What the header says where no rule of the file decided."""

HOURS_PATTERN = r"^(?:[01][0-9]|2[0-3]):[0-5][0-9]-(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]|24:00)$"
_HOURS = re.compile(HOURS_PATTERN)
_NEARLY_HOURS = re.compile(
    r"([0-9]{1,2})(?:[:.h]([0-9]{2}))? ?[-–—~] ?([0-9]{1,2})(?:[:.h]([0-9]{2}))?"
)
_HEADER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
_KEPT_OUT = frozenset({"authorization", "cookie", "proxy-authorization", "x-api-key", "api-key"})
_DAY_MINUTES = 24 * 60
_T = TypeVar("_T")


def parse_hours(text: str) -> tuple[int, int]:
    """The first minute of the day that is meant and the first that is not any more (1440: none).

    A ValueError for what is no ``22:00-06:00``. Where the second is not above the first, the
    hours go over midnight.
    """
    if _HOURS.match(text) is None:
        refuse("hours", "allowed are hours such as 22:00-06:00, by the clock of this machine")
    start, end = (int(part[:2]) * 60 + int(part[3:]) for part in text.split("-"))
    if start == end % _DAY_MINUTES:
        refuse("hours", "these hours begin when they end", "leave hours out for the whole day")
    return start, end


def spell_hours(text: str) -> str:
    """How hours that are nearly right are written rightly; empty where nobody can know."""
    match = _NEARLY_HOURS.fullmatch(unicodedata.normalize("NFKC", text[:32]).strip())
    if match is None:
        return ""
    parts = [f"{int(match[at]):02}:{match[at + 1] or '00'}" for at in (1, 3)]
    written = "-".join(parts)
    return written if _HOURS.match(written) else ""


def _check_hours(text: str) -> str:
    parse_hours(text)
    return text


def _one_or_more(value: object) -> object:
    """One value stands for a list of one."""
    return (value,) if isinstance(value, str) else value


def _not_empty(values: tuple[_T, ...]) -> tuple[_T, ...]:
    if not values:
        refuse("too_short", "at least one entry is needed")
    return values


_Hours = Annotated[str, AfterValidator(_check_hours), Field(json_schema_extra={"type": "string"})]
Texts = Annotated[
    tuple[Text, ...],
    AfterValidator(_not_empty),
    BeforeValidator(_one_or_more, json_schema_input_type=str | tuple[str, ...]),
]
"""A text, or a list of which any one will do."""
Days = Annotated[
    tuple[Day, ...],
    AfterValidator(_not_empty),
    BeforeValidator(_one_or_more, json_schema_input_type=Day | tuple[Day, ...]),
]
HourSpans = Annotated[
    tuple[_Hours, ...],
    AfterValidator(_not_empty),
    BeforeValidator(_one_or_more, json_schema_input_type=str | tuple[str, ...]),
]


class Extent(Part):
    """How long a conversation is, all of it, in characters. Both bounds are left out of it."""

    over: Annotated[Chars, Field(ge=0, le=1_000_000_000)] | None = None
    """More than this."""
    under: Annotated[Chars, Field(ge=1, le=1_000_000_000)] | None = None
    """Less than this."""

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        if self.over is None and self.under is None:
            self.fail([Fault((), "over or under is needed", "such as {over: 100_000}")])
        if self.over is not None and self.under is not None and self.under <= self.over + 1:
            text = f"no length is over {self.over:,} and under {self.under:,}"
            self.fail([Fault(self.written("under", "over"), text, "lower over or raise under")])
        return self


class When(Part):
    """Conditions; all that are written must hold. In a list any one will do."""

    model: Texts | None = None
    """The name that was asked for: the model's own or one of its aliases."""
    owner: Texts | None = None
    """The owner of the key, as FOLDGATE_KEYS names it; local without keys."""
    user: Texts | None = None
    """The user whom the client forwards."""
    header: dict[str, Texts] | None = None
    """Request headers with this value; each of those named."""
    tag: Texts | None = None
    """Of the request: X-Foldgate-Tag, or tag or tags of the body's metadata."""
    chars: Extent | None = None
    """The length of the whole conversation, the newest message with it."""
    images: bool | None = None
    """Whether the view of this rule's tier will hold an image."""
    tools: bool | None = None
    """Whether it will hold a tool's call or result, or the request offers tools."""
    hours: HourSpans | None = None
    """By the clock of this machine; over midnight where the end is before the beginning."""
    days: Days | None = None
    """By the same clock: after midnight it is the next day."""
    healthy: Texts | None = None
    """Backends; one of them can be used now."""
    unhealthy: Texts | None = None
    """Backends; one of them cannot be used now."""

    @model_validator(mode="after")
    def _check_headers(self) -> Self:
        faults = []
        seen: dict[str, str] = {}
        for name in self.header or ():
            if (first := seen.setdefault(name.lower(), name)) != name:
                text = f"{first} is the same header: case says nothing in their names"
                hint = "write it once, with a list where any of several values will do"
                faults.append(Fault(("header", name), text, hint))
            if not _HEADER.fullmatch(name):
                hint = "such as X-My-Header"
                faults.append(Fault(("header", name), "this is no name of a header", hint))
            elif name.lower() in _KEPT_OUT:
                text = "a key must not stand in this file"
                faults.append(Fault(("header", name), text, "owner tells whose key it was"))
        if self.header == {}:
            faults.append(Fault(("header",), "at least one entry is needed"))
        self.fail(faults)
        return self

    @model_validator(mode="after")
    def _check_health(self) -> Self:
        """Of several backends one may be well and another not; of the same one never both."""
        able, unable = set(self.healthy or ()), set(self.unhealthy or ())
        if len(able) == 1 and able == unable:
            text = f"{min(able)} is never healthy and unhealthy at once: this rule would never hold"
            self.fail([Fault(("unhealthy",), text, "drop one of the two, or name another backend")])
        return self


_PASSING = ("chars", "images", "tools", "hours", "days", "healthy", "unhealthy")


class Rule(Part):
    """One way to choose among a model's tiers."""

    name: str
    """Told in x-foldgate-rule."""
    when: When = When()
    """Left out: always."""
    tier: str
    """The backend of one of the model's tiers."""
    sticky: bool | None = None
    """Whether the conversation stays on that tier when the rule does not hold any more; none: yes
    for what a client says (header, tag), no for what passes by itself (the others)."""

    @model_validator(mode="after")
    def _check_name(self) -> Self:
        faults = check_name(("name",), self.name)
        if self.name in RESERVED:
            text = "this name tells that no rule decided"
            faults.append(Fault(("name",), text, "taken are: " + ", ".join(RESERVED)))
        self.fail(faults)
        return self

    @property
    def settles(self) -> bool:
        """Whether the conversation lives on that tier from then on."""
        if self.sticky is not None:
            return self.sticky
        return all(getattr(self.when, name) is None for name in _PASSING)


def find_doubles(rules: Sequence[Rule]) -> list[Fault]:
    """Rules that share a name, which then would tell nothing."""
    seen: set[str] = set()
    faults = []
    for index, rule in enumerate(rules):
        if rule.name in seen:
            text = "another rule of this model has this name"
            faults.append(Fault(("rules", index, "name"), text, "names tell which rule decided"))
        seen.add(rule.name)
    return faults


def find_rule_faults(
    path: KeyPath,
    rules: Sequence[Rule],
    *,
    names: Collection[str],
    tiers: Collection[str],
    backends: Collection[str],
) -> list[Fault]:
    """What the rules of a model name and is not there. names: the model's own and its aliases;
    tiers: the backends of its tiers; backends: all of the file."""
    faults: list[Fault] = []
    for index, rule in enumerate(rules):
        place = (*path, index)
        faults += find_missing((*place, "tier"), "tier", rule.tier, tiers, "the model has")
        where = (*place, "when")
        for at, name in enumerate(rule.when.model or ()):
            faults += find_missing((*where, "model", at), "model", name, names, "asked for here is")
        for key in ("healthy", "unhealthy"):
            for at, name in enumerate(getattr(rule.when, key) or ()):
                faults += find_missing((*where, key, at), "backend", name, backends, "backends has")
    return faults


def content_tiers(rules: Iterable[Rule]) -> frozenset[str]:
    """The tiers, by their backends, in whose views these rules look for images or tools."""
    return frozenset(
        rule.tier for rule in rules if rule.when.images is not None or rule.when.tools is not None
    )


def named_headers(rules: Iterable[Rule]) -> frozenset[str]:
    """The headers that these rules look at, in lower case."""
    return frozenset(name.lower() for rule in rules for name in rule.when.header or ())
