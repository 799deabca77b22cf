"""The whole of policies.yaml, and what must hold between its parts."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from policies.schema.backends import AnyKind, Backend
from policies.schema.parts import Fault, KeyPath, Part, refuse
from policies.schema.policy import Policy
from policies.schema.quantities import Seconds, suggest

NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}"

CHARS_PER_TOKEN_AT_MOST = 4.5
"""48,000 characters of English are about 11k tokens (design, "Numbers"): 4.4 a token, rounded up.
A text that needs more tokens than a window at this rate fits in no language."""


class Tier(Part):
    """A backend together with its policy."""

    backend: str
    policy: str


def _check_version(version: object) -> object:
    """1.0 and true are equal to 1, but no version."""
    if type(version) is not int or version != 1:
        refuse("version", "allowed is 1")
    return version


def _refuse_rules(rules: object) -> tuple[()]:
    if rules not in ((), []):
        refuse(
            "rules",
            "rules come with a later version: only an empty list is allowed",
            "write 'rules: []'; the first healthy tier is taken",
        )
    return ()


class Attempts(Part):
    """The one budget of a turn over retries, fallbacks and waits."""

    most: Annotated[int, Field(ge=1, le=20)] = 3
    """Upstream calls at most."""
    wait: Annotated[Seconds, Field(ge=0, le=600)] = 20.0
    """Seconds that a turn may wait, all in all, where an upstream asks for patience."""


class Model(Part):
    """A name that clients may ask for."""

    tiers: Annotated[tuple[Tier, ...], Field(min_length=1)]
    """In order of preference."""
    aliases: tuple[str, ...] = ()
    """Other names under which clients ask for it."""
    private: bool = False
    """No tier and no summarizer off this machine."""
    auxiliary: bool = False
    """Whatever is asked under this name is no turn of a conversation: titles, tags."""
    attempts: Attempts = Attempts()
    rules: Annotated[tuple[()], BeforeValidator(_refuse_rules)] = ()
    """Choose among the tiers; none yet."""

    @field_validator("tiers")
    @classmethod
    def _each_once(cls, tiers: tuple[Tier, ...]) -> tuple[Tier, ...]:
        if len(set(tiers)) < len(tiers):
            refuse("twice", "each tier is listed once")
        return tiers


class PolicyFile(Part):
    """The whole of policies.yaml."""

    version: Annotated[Literal[1], BeforeValidator(_check_version)] = 1
    """Of the file's form."""
    backends: Annotated[dict[str, AnyKind], Field(min_length=1)]
    policies: Annotated[dict[str, Policy], Field(min_length=1)]
    models: Annotated[dict[str, Model], Field(min_length=1)]

    @field_validator("policies")
    @classmethod
    def _name_policies(cls, policies: dict[str, Policy]) -> dict[str, Policy]:
        return {name: policy.model_copy(update={"name": name}) for name, policy in policies.items()}

    @model_validator(mode="after")
    def _check_references(self) -> Self:
        self.fail(find_faults(self.backends, self.policies, self.models))
        return self


def find_faults(
    backends: Mapping[str, Backend | None],
    policies: Mapping[str, Policy | None],
    models: Mapping[str, Model | None],
    unsure: Collection[str] = (),
) -> list[Fault]:
    """What is wrong between the parts of a file: names, references, privacy, windows.

    A part that is itself invalid is given as None: its name is known, nothing else of it.
    ``unsure`` names policies whose numbers are not to be judged.
    """
    faults: list[Fault] = []
    path: KeyPath
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
            if tier.policy not in unsure:
                faults += _find_window_faults(path, *chosen)
            if model and model.private:
                faults += _find_leaks(path, *chosen, backends)
    return faults


def _find_missing(path: KeyPath, noun: str, name: str, known: Mapping[str, object]) -> list[Fault]:
    if name in known:
        return []
    near = suggest(name, known)
    plural = {"backend": "backends", "policy": "policies"}[noun]
    hint = f"did you mean {near}?" if near else f"{plural} has: {', '.join(known) or 'nothing'}"
    return [Fault(path, f"there is no {noun} of this name", hint)]


def _find_window_faults(
    path: KeyPath, backend: Backend | None, policy: Policy | None
) -> list[Fault]:
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
    path: KeyPath,
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
