"""What policies.yaml may say: frozen, strict models of its parts, and the rules between them.

Sizes are characters unless a key or the written unit says tokens, durations are seconds. The
numbers are the ``local fold`` column of the design ("Numbers"), except where a field says so.

The grammar of the two kinds of quantities, here and nowhere else:

* size: ``48000``, ``48_000``, ``48000 chars``, ``48k chars``, ``1.5M tokens``. Digits may be
  grouped by ``_`` in threes; ``k`` is 1,000 and ``M`` is 1,000,000, and after either the unit
  (``chars`` or ``tokens``) is required. A number without a unit has the unit of its key.
* duration: ``50ms``, ``30s``, ``5m``, ``2h``, ``365d``: one number, one unit, no space. A
  number without a unit is a duration in Python (seconds) but not in a file, save for 0.

No message written here contains a value that was read: a reader of the file adds it where it is
no secret. Only the ``spelling`` of an error is derived from what was read.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError

Unit = Literal["chars", "tokens"]

FROM_FILE = "from_file"
"""Key of the validation context: true where the values were written by a person in a file."""

FAULTS = "faults"
"""Type of the pydantic error that carries faults between fields in ``ctx["faults"]``."""

SIZE_PATTERN = (
    r"^(?:\d+|\d{1,3}(?:_\d{3})+)(?: (?:chars|tokens))?$|^\d+(?:\.\d+)?[kM] (?:chars|tokens)$"
)
DURATION_PATTERN = r"^\d+(?:\.\d+)?(?:ms|s|m|h|d)$"
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}$"

SIZE_ALLOWED = "a size such as 48000, 48_000, 48k chars or 30k tokens"
DURATION_ALLOWED = "a duration such as 50ms, 30s, 5m, 2h or 365d"

CHARS_PER_TOKEN_AT_MOST = 4.5
"""48,000 characters of English are about 11k tokens (design, "Numbers"): 4.4 a token, rounded up.
A text that needs more tokens than a window at this rate fits in no language."""

_SIZE = re.compile(r"(\d+|\d{1,3}(?:_\d{3})+|\d+\.\d+)([kM]?)(?: (chars|tokens))?")
_LOOSE_SIZE = re.compile(r"(\d[\d_,' ]*(?:\.\d+)?) ?([kKmM]?) ?([A-Za-z]*)")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_LOOSE_DURATION = re.compile(r"(\d+(?:\.\d+)?) ?([A-Za-z]+)")
_FACTORS = {"": 1, "k": 1_000, "M": 1_000_000}
_SECONDS = {
    "ms": Decimal("0.001"),
    "s": Decimal(1),
    "m": Decimal(60),
    "h": Decimal(3_600),
    "d": Decimal(86_400),
}
_LOOSE_UNITS = {"c": "chars", "t": "tokens"}
_LOOSE_TIMES = {"mi": "m", "ms": "ms", "s": "s", "m": "m", "h": "h", "d": "d"}


Path = tuple[str | int, ...]
"""Where in the file: keys and positions of list items, counted from 0."""


class Fault(NamedTuple):
    """One broken rule: where, relative to the model that found it; what; and what to do."""

    path: Path
    message: str
    hint: str = ""


class Size(NamedTuple):
    """A size as written: the whole number, and the unit if one stood beside it."""

    amount: int
    unit: Unit | None


def suggest(word: str, known: Iterable[str]) -> str:
    """The one of ``known`` that ``word`` was probably meant to be, or an empty text."""
    lowered = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), lowered, n=1, cutoff=0.6)
    return lowered[near[0]] if near else ""


def parse_size(text: str) -> Size:
    """Read a size by the grammar of this module; a ValueError names the right spelling."""
    match = _SIZE.fullmatch(text)
    if match is None or (match[2] and not match[3]) or ("." in match[1] and not match[2]):
        raise _unreadable("size", SIZE_ALLOWED, _spell_size(text))
    amount = Decimal(match[1].replace("_", "")) * _FACTORS[match[2]]
    if amount != int(amount):
        raise _unreadable("size", "a whole number of characters or tokens", "")
    unit: Unit | None = "chars" if match[3] == "chars" else "tokens" if match[3] else None
    return Size(int(amount), unit)


def parse_duration(text: str) -> float:
    """Read a duration by the grammar of this module as seconds; a ValueError as in parse_size."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise _unreadable("duration", DURATION_ALLOWED, _spell_duration(text))
    return float(Decimal(match[1]) * _SECONDS[match[2]])


def _spell_size(text: str) -> str:
    """How a size that was nearly right is written rightly, or an empty text."""
    match = _LOOSE_SIZE.fullmatch(text.strip())
    if match is None:
        return ""
    digits = re.sub(r"[_,' ]", "", match[1])
    factor = {"K": "k", "m": "M"}.get(match[2], match[2])
    unit = _LOOSE_UNITS.get(match[3][:1].lower(), "") if match[3] else ""
    if match[3] and not unit:
        return ""
    if factor and not unit:
        return f"{digits}{factor} chars or {digits}{factor} tokens"
    if "." in digits and not factor:
        return ""
    return f"{digits}{factor} {unit}".rstrip()


def _spell_duration(text: str) -> str:
    """How a duration that was nearly right is written rightly, or an empty text."""
    match = _LOOSE_DURATION.fullmatch(text.strip())
    if match is None:
        return ""
    word = match[2].lower()
    unit = _LOOSE_TIMES.get(word[:2]) or _LOOSE_TIMES.get(word[:1], "")
    return f"{match[1]}{unit}" if unit else ""


def _unreadable(kind: str, allowed: str, spelling: str) -> PydanticCustomError:
    return PydanticCustomError(kind, "allowed is {allowed}", _context(allowed, spelling))


def _context(allowed: str, spelling: str) -> dict[str, Any]:
    return {"allowed": allowed, "spelling": spelling}


def _whole_number(value: object) -> int:
    if type(value) is not int:
        raise _unreadable("size", SIZE_ALLOWED, "")
    return value


def _read_size(value: object, expected: Unit) -> int:
    if not isinstance(value, str):
        return _whole_number(value)
    size = parse_size(value)
    if size.unit not in (None, expected):
        meant = "characters" if expected == "chars" else "tokens"
        raise _unreadable("size", f"a size in {meant}", f"{size.amount} {expected}")
    return size.amount


def _read_chars(value: object) -> int:
    return _read_size(value, "chars")


def _read_tokens(value: object) -> int:
    return _read_size(value, "tokens")


def _read_view_size(value: object, info: ValidationInfo) -> int:
    """A size in the unit of its view, which stands before it among the fields."""
    unit: Unit = info.data.get("unit", "chars")
    if isinstance(value, str) and parse_size(value).unit not in (None, unit):
        raise PydanticCustomError(
            "size",
            "this size is written in another unit than the view counts in ({unit})",
            {
                "unit": unit,
                "hint": "write 'unit: tokens' in this view, or the unit beside all its sizes",
            },
        )
    return _read_size(value, unit)


def _read_duration(value: object, info: ValidationInfo) -> float:
    if isinstance(value, str):
        return parse_duration(value)
    if type(value) not in (int, float):
        raise _unreadable("duration", DURATION_ALLOWED, "")
    if value and (info.context or {}).get(FROM_FILE):
        raise _unreadable("duration", DURATION_ALLOWED, f"{value}s")
    return float(value)  # type: ignore[arg-type]  # narrowed by type() above


_SizeText = Annotated[str, Field(pattern=SIZE_PATTERN)]
_DurationText = Annotated[str, Field(pattern=DURATION_PATTERN)]
Chars = Annotated[int, BeforeValidator(_read_chars, json_schema_input_type=int | _SizeText)]
Tokens = Annotated[int, BeforeValidator(_read_tokens, json_schema_input_type=int | _SizeText)]
ViewSize = Annotated[int, BeforeValidator(_read_view_size, json_schema_input_type=int | _SizeText)]
Seconds = Annotated[
    float, BeforeValidator(_read_duration, json_schema_input_type=Literal[0] | _DurationText)
]
Timeout = Annotated[Seconds, Field(gt=0, le=86_400)]
Window = Annotated[Tokens, Field(ge=256, le=100_000_000)]
MaxOutput = Annotated[Tokens, Field(ge=1, le=1_000_000)]
ImageChars = Annotated[Chars, Field(ge=0, le=1_000_000)]
Percent = Annotated[float, Field(ge=0, le=100)]


def _check_url(url: str) -> str:
    """An http address without credentials, its trailing slashes taken off."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _bad_url("its host or port cannot be read") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise _bad_url("it needs http:// or https:// and a host")
    if parts.username is not None or parts.password is not None:
        raise _bad_url("credentials do not belong into it", "put the key into api_key")
    if parts.query or parts.fragment or re.search(r"\s", url):
        raise _bad_url("it holds blanks, a query or a fragment")
    return url.rstrip("/")


def _check_server_root(url: str) -> str:
    if urlsplit(url).path.endswith("/v1"):
        raise _bad_url("the root of llama-server is wanted", "take /v1 off the end")
    return url


def _bad_url(why: str, hint: str = "") -> PydanticCustomError:
    return PydanticCustomError(
        "url",
        "allowed is an address such as http://127.0.0.1:8080: {why}",
        {"why": why, "hint": hint},
    )


def _check_key(key: SecretStr) -> SecretStr:
    secret = key.get_secret_value()
    if secret and not (secret.isascii() and secret.isprintable() and " " not in secret):
        raise PydanticCustomError(
            "api_key",
            "the key holds a blank, a line break or a character outside ASCII, "
            "which no HTTP header carries",
            {"hint": "check the variable or file that the key was copied from"},
        )
    return key


Url = Annotated[str, AfterValidator(_check_url)]
ServerRoot = Annotated[Url, AfterValidator(_check_server_root)]
ApiKey = Annotated[SecretStr, AfterValidator(_check_key)]
Text = Annotated[str, Field(min_length=1, max_length=256)]


class _Part(BaseModel):
    """A part of the file: unknown keys refused, types exact, nothing changed afterwards."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
    )

    def _fail(self, faults: list[Fault]) -> None:
        if faults:
            text = "; ".join(fault.message for fault in faults)
            raise PydanticCustomError(FAULTS, "{text}", {"text": text, "faults": tuple(faults)})

    def _written(self, *names: str) -> tuple[str, ...]:
        """The first of these fields that was written and not defaulted, as a path."""
        return next(((name,) for name in names if name in self.model_fields_set), ())


class Timeouts(_Part):
    """How long a backend is waited for, in seconds."""

    connect: Timeout = 5.0
    """Until the connection stands."""
    first_token: Timeout = 300.0
    """From the request to the first piece of the reply; a long prompt is read in this time."""
    idle: Timeout = 120.0
    """Between two pieces of a reply."""
    total: Timeout = 1800.0
    """From the request to the end of the reply."""


class LlamaCppBackend(_Part):
    """A llama-server, spoken to over direct HTTP."""

    kind: Literal["llama_cpp"] = "llama_cpp"
    url: ServerRoot
    """Root address of the server, without /v1."""
    model: Text | None = None
    """The name sent upstream; none: no name is sent."""
    api_key: ApiKey | None = None
    """Only for a server that was started with --api-key."""
    local: bool | None = None
    """Whether a private model may use it; none: true for loopback addresses only. Say true for
    a server on this machine behind another name, such as that of a container."""
    slots: Literal["shared", "pinned"] = "shared"
    """pinned: one conversation a slot, for a server started with --cache-ram 0."""
    window: Window | None = None
    """Tokens of one slot; none: read from the server's /props."""
    max_output: MaxOutput | None = 4096
    """Tokens of a reply where the client names no number."""
    image_chars: ImageChars = 3000
    """Characters that one image counts in a budget."""
    strict_roles: bool = False
    """The chat template demands that user and assistant alternate."""
    timeouts: Timeouts = Timeouts()

    @field_validator("api_key")
    @classmethod
    def _empty_key_is_none(cls, key: SecretStr | None) -> SecretStr | None:
        return key or None

    @property
    def off_reason(self) -> str | None:
        """Why this backend cannot be used at all: never, for this kind."""
        return None

    @property
    def is_local(self) -> bool:
        """Whether what is sent there stays on this machine."""
        return _is_loopback(self.url) if self.local is None else self.local


class LiteLLMBackend(_Part):
    """A cloud model behind LiteLLM."""

    kind: Literal["litellm"] = "litellm"
    model: Text
    """LiteLLM's name of the model, with its provider: deepseek/deepseek-v4-flash."""
    api_key: ApiKey | None = None
    """A backend without its key is off."""
    api_base: Url | None = None
    """Another address than the provider's own."""
    window: Window = 1_000_000
    """Tokens of prompt and reply together."""
    max_output: MaxOutput | None = 4096
    """Tokens of a reply where the client names no number."""
    reasoning: Literal["drop", "keep"] = "drop"
    """Whether reasoning_content of past replies is sent back."""
    image_chars: ImageChars = 3000
    """Characters that one image counts in a budget."""
    strict_roles: bool = True
    """The model demands that user and assistant alternate."""
    timeouts: Timeouts = Timeouts()

    @field_validator("api_key")
    @classmethod
    def _empty_key_is_none(cls, key: SecretStr | None) -> SecretStr | None:
        return key or None

    @property
    def off_reason(self) -> str | None:
        """Why this backend cannot be used at all, or none."""
        return "its api_key is not set" if self.api_key is None else None

    @property
    def is_local(self) -> bool:
        """Whether what is sent there stays on this machine: never, for this kind."""
        return False


class ScriptedBackend(_Part):
    """The backend that ships with the product: no network, the same answers for the same seed."""

    kind: Literal["scripted"] = "scripted"
    window: Window | None = None
    """Tokens; none: no limit."""
    seed: Annotated[int, Field(ge=0)] = 7
    refusals: Percent = 11.0
    """Percent of its summaries that are refusals (11 of 100: the rate that replay assumes)."""
    truncations: Percent = 3.0
    """Percent of its summaries that end in the middle."""
    latency: Annotated[Seconds, Field(ge=0, le=3_600)] = 0.05
    """Seconds before its first piece."""
    max_output: MaxOutput | None = 4096
    """Tokens of a reply where the client names no number."""
    image_chars: ImageChars = 3000
    """Characters that one image counts in a budget."""
    strict_roles: bool = False
    """It demands that user and assistant alternate."""
    timeouts: Timeouts = Timeouts()

    @property
    def off_reason(self) -> str | None:
        """Why this backend cannot be used at all: never, for this kind."""
        return None

    @property
    def is_local(self) -> bool:
        """Whether what is sent there stays on this machine: always, for this kind."""
        return True


Backend = LlamaCppBackend | LiteLLMBackend | ScriptedBackend
AnyKind = Annotated[Backend, Field(discriminator="kind")]


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


_VIEW_SIZES = ("start", "ceiling", "headroom", "keep")


class View(_Part):
    """When a view folds and how much it keeps; memory and verbatim together."""

    unit: Unit = "chars"
    """What the four sizes count. There are no defaults in tokens: all four are written then."""
    start: Annotated[ViewSize, Field(ge=500, le=20_000_000)] = 48_000
    """Folding starts above this."""
    ceiling: Annotated[ViewSize, Field(ge=1_000, le=20_000_000)] = 56_000
    """Never more than this; a hard cut above it."""
    headroom: Annotated[ViewSize, Field(ge=100, le=20_000_000)] = 17_000
    """What one fold frees below start."""
    keep: Annotated[ViewSize, Field(ge=100, le=20_000_000)] = 16_000
    """The least that stays verbatim."""

    @model_validator(mode="before")
    @classmethod
    def _infer_unit(cls, data: Any) -> Any:
        """Sizes that all say tokens need no ``unit``."""
        if not isinstance(data, Mapping) or "unit" in data:
            return data
        sizes = [data[name] for name in _VIEW_SIZES if name in data]
        if sizes and all(isinstance(size, str) and size.endswith(" tokens") for size in sizes):
            return {"unit": "tokens", **data}
        return data

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        missing = [name for name in _VIEW_SIZES if name not in self.model_fields_set]
        if self.unit == "tokens" and missing:
            text = f"a view in tokens has no defaults: {', '.join(missing)} must be written too"
            self._fail([Fault((), text, "write start, ceiling, headroom and keep in tokens")])
        faults = []
        if not self.keep < self.after_fold:
            text = (
                f"keep must be below start − headroom: "
                f"{self.keep:,} is not below {self.start:,} − {self.headroom:,} = "
                f"{self.after_fold:,}"
            )
            where = self._written("keep", "headroom", "start")
            faults.append(Fault(where, text, "lower keep or headroom, or raise start"))
        if not self.start < self.ceiling:
            text = f"start must be below ceiling: {self.start:,} is not below {self.ceiling:,}"
            where = self._written("ceiling", "start")
            faults.append(Fault(where, text, "lower start or raise ceiling"))
        self._fail(faults)
        return self

    @property
    def after_fold(self) -> int:
        """What memory and verbatim are to be at most after a fold, in this view's unit."""
        return self.start - self.headroom


class Chapters(_Part):
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
            where = self._written("length", "split")
            self._fail([Fault(where, text, "lower length or raise split")])
        return self


class Gist(_Part):
    """The old generation, in characters."""

    length: Annotated[Chars, Field(ge=50, le=100_000)] = 1_500
    """The length asked for the gist."""


class Summaries(_Part):
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
            raise PydanticCustomError(
                "twice", "each summarizer is named once", {"hint": "redraws asks one again"}
            )
        return names


class Recall(_Part):
    """Notes of the transcript shown beside the newest message."""

    budget: Annotated[Chars, Field(ge=0, le=100_000)] = 1_500
    """Characters a turn at most; 0: no recall."""


class Policy(_Part):
    """The numbers and choices by which a view is made."""

    name: SkipJsonSchema[str] = ""
    """The key under which the file lists it; set by PolicyFile, never written."""
    view: View = View()
    chapters: Chapters = Chapters()
    gist: Gist = Gist()
    summaries: Summaries = Summaries()
    recall: Recall = Recall()
    keep_warm: bool = False
    """Chapters are made ahead of any need, for the day of a migration to a smaller view."""
    ttl: Annotated[Seconds, Field(ge=3_600)] | None = None
    """Seconds after its last turn at which a whole conversation is deleted; none: never."""

    @model_validator(mode="after")
    def _check_memory(self) -> Self:
        """Memory alone may not fill the budget of a fold. Characters bound no tokens, so a view
        that counts tokens is not compared here."""
        memory = self.gist.length + self.chapters.stack
        if self.view.unit == "chars" and not memory < self.view.after_fold:
            text = (
                f"gist and chapters would fill the view: gist.length + chapters.stack = "
                f"{self.gist.length:,} + {self.chapters.stack:,} = {memory:,} is not below "
                f"view.start − view.headroom = {self.view.start:,} − {self.view.headroom:,} = "
                f"{self.view.after_fold:,}"
            )
            where = self._written("chapters", "gist", "view")
            self._fail([Fault(where, text, "lower chapters.stack or gist.length")])
        return self


class Tier(_Part):
    """A backend together with its policy."""

    backend: str
    policy: str


def _refuse_rules(rules: object) -> tuple[()]:
    if rules not in ((), []):
        raise PydanticCustomError(
            "rules",
            "rules come with a later version: only an empty list is allowed",
            {"hint": "write 'rules: []'; the first healthy tier is taken"},
        )
    return ()


class Model(_Part):
    """A name that clients may ask for."""

    tiers: Annotated[tuple[Tier, ...], Field(min_length=1)]
    """In order of preference."""
    private: bool = False
    """No tier and no summarizer off this machine."""
    rules: Annotated[tuple[()], BeforeValidator(_refuse_rules)] = ()
    """Choose among the tiers; none yet."""

    @field_validator("tiers")
    @classmethod
    def _each_once(cls, tiers: tuple[Tier, ...]) -> tuple[Tier, ...]:
        if len(set(tiers)) < len(tiers):
            raise PydanticCustomError("twice", "each tier is listed once", {"hint": ""})
        return tiers


class PolicyFile(_Part):
    """The whole of policies.yaml."""

    version: Literal[1] = 1
    backends: Annotated[dict[str, AnyKind], Field(min_length=1)]
    policies: Annotated[dict[str, Policy], Field(min_length=1)]
    models: Annotated[dict[str, Model], Field(min_length=1)]

    @field_validator("policies")
    @classmethod
    def _name_policies(cls, policies: dict[str, Policy]) -> dict[str, Policy]:
        return {name: policy.model_copy(update={"name": name}) for name, policy in policies.items()}

    @model_validator(mode="after")
    def _check_references(self) -> Self:
        self._fail(find_faults(self.backends, self.policies, self.models))
        return self


def find_faults(
    backends: Mapping[str, Backend | None],
    policies: Mapping[str, Policy | None],
    models: Mapping[str, Model | None],
) -> list[Fault]:
    """What is wrong between the parts of a file: names, references, privacy, windows.

    A part that is itself invalid is given as None: its name is known, nothing else of it.
    """
    faults: list[Fault] = []
    path: Path
    for section, names in (("backends", backends), ("policies", policies), ("models", models)):
        faults += (
            Fault(
                (section, name),
                "a name is 1 to 128 letters, digits and . _ : / @ + -, a letter or digit first",
                "names travel in HTTP headers, so only ASCII is allowed",
            )
            for name in names
            if not re.fullmatch(NAME_PATTERN, name)
        )
    for name, policy in policies.items():
        for index, backend in enumerate(policy.summaries.backends if policy else ()):
            path = ("policies", name, "summaries", "backends", index)
            faults += _find_missing(path, "backend", backend, backends)
    for name, model in models.items():
        for index, tier in enumerate(model.tiers if model else ()):
            path = ("models", name, "tiers", index)
            faults += _find_missing((*path, "backend"), "backend", tier.backend, backends)
            faults += _find_missing((*path, "policy"), "policy", tier.policy, policies)
            chosen = backends.get(tier.backend), policies.get(tier.policy)
            faults += _find_window_faults(path, *chosen)
            if model and model.private:
                faults += _find_leaks(path, *chosen, backends)
    return faults


def _find_missing(path: Path, noun: str, name: str, known: Mapping[str, object]) -> list[Fault]:
    if name in known:
        return []
    near = suggest(name, known)
    plural = {"backend": "backends", "policy": "policies"}[noun]
    hint = f"did you mean {near}?" if near else f"{plural} has: {', '.join(known) or 'nothing'}"
    return [Fault(path, f"there is no {noun} of this name", hint)]


def _find_window_faults(path: Path, backend: Backend | None, policy: Policy | None) -> list[Fault]:
    """A ceiling that no text could fit under this window; the exact check is made at each call,
    with the window that the server reports."""
    if backend is None or policy is None or backend.window is None:
        return []
    view, window = policy.view, backend.window
    if view.unit == "tokens":
        needed, how = view.ceiling, f"ceiling {view.ceiling:,} tokens"
    else:
        needed = int(view.ceiling / CHARS_PER_TOKEN_AT_MOST)
        how = (
            f"ceiling {view.ceiling:,} characters / {CHARS_PER_TOKEN_AT_MOST} a token at best"
            f" = {needed:,} tokens"
        )
    if needed < window:
        return []
    text = f"the policy's ceiling does not fit the backend's window: {how}, window {window:,}"
    return [Fault((*path, "policy"), text, "lower the policy's numbers or raise the window")]


def _find_leaks(
    path: Path,
    backend: Backend | None,
    policy: Policy | None,
    backends: Mapping[str, Backend | None],
) -> list[Fault]:
    """What a private model would send off this machine."""
    hint = (
        "list only llama_cpp backends on a loopback address (or with 'local: true') and scripted "
        "ones, or set private: false"
    )
    faults = []
    if backend is not None and not backend.is_local:
        text = "a private model must not use a backend off this machine"
        faults.append(Fault((*path, "backend"), text, hint))
    for name in policy.summaries.backends if policy else ():
        summarizer = backends.get(name)
        if summarizer is not None and not summarizer.is_local:
            text = (
                f"a private model must not be summarized off this machine: "
                f"the policy's summaries.backends names {name}"
            )
            faults.append(Fault((*path, "policy"), text, hint))
    return faults
