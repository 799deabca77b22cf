"""The backends of policies.yaml, told apart by ``kind``."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from policies.schema.parts import Fault, Part
from policies.schema.quantities import (
    ApiKey,
    ImageChars,
    MaxOutput,
    Percent,
    Seconds,
    ServerRoot,
    Text,
    Timeout,
    Url,
    Window,
)


class Timeouts(Part):
    """How long a backend is waited for, in seconds."""

    connect: Timeout = 5.0
    """Until the connection stands."""
    first_token: Timeout = 300.0
    """From the request to the first piece of the reply; a long prompt is read in this time."""
    idle: Timeout = 120.0
    """Between two pieces of a reply."""
    total: Timeout = 1800.0
    """From the request to the end of the reply."""

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        """A wait that is written and could never pass: the whole call would end before it."""
        faults = []
        for name, wait in (("first_token", self.first_token), ("idle", self.idle)):
            if name in self.model_fields_set and wait > self.total:
                text = (
                    f"{name} must not be longer than total: "
                    f"{wait:,g} s is longer than {self.total:,g} s"
                )
                faults.append(Fault((name,), text, f"lower {name} or raise total"))
        self.fail(faults)
        return self


class Circuit(Part):
    """When a backend that keeps failing is left alone."""

    failures: Annotated[int, Field(ge=1, le=1_000)] = 5
    """So many failed calls in a row open the circuit: nobody is sent there."""
    rest: Timeout = 15.0
    """Seconds until one call is let through to see whether it answers again."""


class LlamaCppBackend(Part):
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
    background_slots: Annotated[int, Field(ge=0, le=64)] | None = None
    """pinned: slots kept free of chats, for summaries and titles; none: one from three slots on."""
    queue: Annotated[int, Field(ge=1, le=10_000)] = 64
    """Chats that wait for a slot at most; whoever comes beyond them is told to try again."""
    prefill: bool = True
    """After a fold its prompt is read in ahead, while nobody waits."""
    window: Window | None = None
    """Tokens of one slot; none: read from the server's /props."""
    max_output: MaxOutput | None = 4096
    """Tokens of a reply where the client names no number."""
    image_chars: ImageChars = 3000
    """Characters that one image counts in a budget."""
    strict_roles: bool = False
    """The chat template demands that user and assistant alternate."""
    timeouts: Timeouts = Timeouts()
    circuit: Circuit = Circuit()

    @field_validator("api_key")
    @classmethod
    def _empty_key_is_none(cls, key: SecretStr | None) -> SecretStr | None:
        return key or None

    @model_validator(mode="after")
    def _check_slots(self) -> Self:
        if self.slots == "shared" and self.background_slots is not None:
            text = (
                "background_slots needs slots: pinned: where slots are shared the server chooses "
                "them, and none can be kept free"
            )
            hint = "take background_slots out, or write slots: pinned"
            self.fail([Fault(("background_slots",), text, hint)])
        return self

    @property
    def off_reason(self) -> str | None:
        """Why this backend cannot be used at all: never, for this kind."""
        return None

    @property
    def is_local(self) -> bool:
        """Whether what is sent there stays on this machine."""
        return is_loopback(self.url) if self.local is None else self.local


class LiteLLMBackend(Part):
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
    circuit: Circuit = Circuit()

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


class ScriptedBackend(Part):
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
    circuit: Circuit = Circuit()

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


def is_loopback(url: str) -> bool:
    """Whether an address can only be one of this machine."""
    host = re.sub(r"^https?://|/.*$|:[0-9]+(?=/|$)", "", url.lower()).strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
