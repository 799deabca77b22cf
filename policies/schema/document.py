"""The whole of policies.yaml, and what must hold between its parts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from policies.schema.backends import AnyKind, Backend
from policies.schema.lookups import Lookup, find_lookup_faults
from policies.schema.names import check_name, find_missing
from policies.schema.parts import Fault, KeyPath, Part, refuse
from policies.schema.policy import Policy
from policies.schema.quantities import Seconds
from policies.schema.rules import Rule, find_doubles, find_rule_faults

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
    rules: tuple[Rule, ...] = ()
    """Choose among the tiers; the first that holds and whose backend can be used."""

    @field_validator("tiers")
    @classmethod
    def _each_once(cls, tiers: tuple[Tier, ...]) -> tuple[Tier, ...]:
        if len(set(tiers)) < len(tiers):
            refuse("twice", "each tier is listed once")
        return tiers

    @model_validator(mode="after")
    def _check_rules(self) -> Self:
        self.fail([*_find_shared_backends(self.tiers), *find_doubles(self.rules)])
        return self


def _find_shared_backends(tiers: Sequence[Tier]) -> Iterator[Fault]:
    """Tiers of one backend under two policies: a rule or a route could mean either."""
    seen: set[str] = set()
    for index, tier in enumerate(tiers):
        if tier.backend in seen:
            text = f"another tier of this model has the backend {tier.backend}"
            hint = (
                "rules and routes name a tier by its backend: list the server twice under backends,"
                " or make a second model"
            )
            yield Fault(("tiers", index, "backend"), text, hint)
        seen.add(tier.backend)


class PolicyFile(Part):
    """The whole of policies.yaml."""

    version: Annotated[Literal[1], BeforeValidator(_check_version)] = 1
    """Of the file's form."""
    backends: Annotated[dict[str, AnyKind], Field(min_length=1)]
    policies: Annotated[dict[str, Policy], Field(min_length=1)]
    lookups: dict[str, Lookup] = Field(default_factory=dict)
    """Other sources that policies may name in recall.lookups."""
    models: Annotated[dict[str, Model], Field(min_length=1)]

    @field_validator("policies")
    @classmethod
    def _name_policies(cls, policies: dict[str, Policy]) -> dict[str, Policy]:
        return {name: policy.model_copy(update={"name": name}) for name, policy in policies.items()}

    @model_validator(mode="after")
    def _check_references(self) -> Self:
        self.fail(find_faults(self.backends, self.policies, self.models, lookups=self.lookups))
        return self

    def find_model(self, name: str) -> Model | None:
        """The model that clients mean by a name, its own or an alias; None for an unknown one."""
        if (found := self.models.get(name)) is not None:
            return found
        return next((model for model in self.models.values() if name in model.aliases), None)

    def model_names(self) -> list[str]:
        """Every name that clients may ask for, a model's aliases behind it."""
        return [name for own, model in self.models.items() for name in (own, *model.aliases)]


def find_faults(
    backends: Mapping[str, Backend | None],
    policies: Mapping[str, Policy | None],
    models: Mapping[str, Model | None],
    unsure: Collection[str] = (),
    *,
    lookups: Collection[str] = (),
) -> list[Fault]:
    """What is wrong between the parts of a file: names, references, privacy, windows.

    A part that is itself invalid is given as None: its name is known, nothing else of it.
    ``unsure`` names policies whose numbers are not to be judged; ``lookups``: of which only the
    names matter.
    """
    faults: list[Fault] = []
    sections = {"backends": backends, "policies": policies, "lookups": lookups, "models": models}
    for section, names in sections.items():
        for name in names:
            faults += check_name((section, name), name)
    for name, policy in policies.items():
        for index, backend in enumerate(policy.summaries.backends if policy else ()):
            path = ("policies", name, "summaries", "backends", index)
            faults += find_missing(path, "backend", backend, backends, "backends has")
    for name, model in models.items():
        if model is not None:
            faults += _find_tier_faults(name, model, backends, policies, unsure)
            faults += find_rule_faults(
                ("models", name, "rules"),
                model.rules,
                names=(name, *model.aliases),
                tiers=dict.fromkeys(tier.backend for tier in model.tiers),
                backends=backends,
            )
    faults += find_lookup_faults(policies, lookups)
    faults += _find_alias_faults(models)
    return faults


def _find_tier_faults(
    name: str,
    model: Model,
    backends: Mapping[str, Backend | None],
    policies: Mapping[str, Policy | None],
    unsure: Collection[str],
) -> Iterator[Fault]:
    for index, tier in enumerate(model.tiers):
        path = ("models", name, "tiers", index)
        where = (*path, "backend")
        yield from find_missing(where, "backend", tier.backend, backends, "backends has")
        where = (*path, "policy")
        yield from find_missing(where, "policy", tier.policy, policies, "policies has")
        chosen = backends.get(tier.backend), policies.get(tier.policy)
        if tier.policy not in unsure:
            yield from _find_window_faults(path, *chosen)
        if model.private:
            yield from _find_leaks(path, *chosen, backends)


def _find_alias_faults(models: Mapping[str, Model | None]) -> Iterator[Fault]:
    """Aliases that cannot travel, or by which two models would be meant."""
    owners: dict[str, str] = {name: name for name in models}
    for name, model in models.items():
        for index, alias in enumerate(model.aliases if model else ()):
            path = ("models", name, "aliases", index)
            yield from check_name(path, alias)
            if alias in owners:
                text = f"the model {owners[alias]} is asked for by this name already"
                yield Fault(path, text, "take another name")
            owners.setdefault(alias, name)


def _find_window_faults(
    path: KeyPath, backend: Backend | None, policy: Policy | None
) -> list[Fault]:
    """A ceiling that no text could fit under this window; the exact check is made at each call,
    with the window that the server reports."""
    if backend is None or policy is None or backend.window is None:
        return []
    view, window = policy.view, backend.window
    if view.unit == "messages":
        return []
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
