"""Who plays what in a replay: every backend its understudy, every policy a tier of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.errors import ConfigurationError
from gateway.policy_file import LoadedPolicies
from policies.schema import Backend, Model, Policy, ScriptedBackend, Tier

MODEL = "replay"


@dataclass(frozen=True, slots=True)
class Wish:
    """What is played. policies: their names, the first is where a conversation begins; backend:
    whose place the first one's understudy takes; refusals: percent of summary calls."""

    policies: Sequence[str]
    backend: str | None
    recall: bool
    refusals: float
    seed: int


@dataclass(frozen=True, slots=True)
class Cast:
    """The policies as played, and the backend of each policy's tier."""

    policies: LoadedPolicies
    backends: dict[str, str]


def cast(loaded: LoadedPolicies, wish: Wish) -> Cast:
    """The policy file with every backend played by the scripted one.

    Raises ConfigurationError for a policy or backend that the file does not have.
    """
    file = loaded.file
    for name in wish.policies:
        if name not in file.policies:
            option = "--policy" if name == wish.policies[0] else "--switch"
            raise ConfigurationError(
                f"There is no policy {name!r}; there are: {', '.join(file.policies)}; "
                f"name one with {option}"
            )
    if wish.backend is not None and wish.backend not in file.backends:
        raise ConfigurationError(
            f"There is no backend {wish.backend!r}; there are: {', '.join(file.backends)}; "
            "name one with --backend"
        )
    played = {name: _understudy(config, wish) for name, config in file.backends.items()}
    backends: dict[str, str] = {}
    for name in dict.fromkeys(wish.policies):
        likeness = wish.backend if not backends and wish.backend else _backend_of(loaded, name)
        # Two policies of one backend are two places to be, so that a conversation can move.
        backend = likeness if likeness not in backends.values() else f"{likeness}-{name}"
        played[backend] = played[likeness]
        backends[name] = backend
    tiers = tuple(Tier(backend=backend, policy=name) for name, backend in backends.items())
    policies = {name: _as_played(policy, wish) for name, policy in file.policies.items()}
    changed = file.model_copy(
        update={
            "backends": played,
            "policies": policies,
            "models": {**file.models, MODEL: Model(tiers=tiers)},
        }
    )
    return Cast(replace(loaded, file=changed), backends)


def _as_played(policy: Policy, wish: Wish) -> Policy:
    """Nobody is asked on the way, and the understudy calls no tools."""
    played: dict[str, object] = {"lookups": (), "tool": False}
    if not wish.recall:
        played["budget"] = 0
    return policy.model_copy(update={"recall": policy.recall.model_copy(update=played)})


def _backend_of(loaded: LoadedPolicies, policy: str) -> str:
    """The first backend that some model runs under this policy; else the file's first."""
    file = loaded.file
    for model in file.models.values():
        for tier in model.tiers:
            if tier.policy == policy:
                return tier.backend
    return next(iter(file.backends))


def _understudy(config: Backend, wish: Wish) -> ScriptedBackend:
    return ScriptedBackend(
        window=config.window,
        seed=wish.seed,
        refusals=wish.refusals,
        truncations=0.0,
        latency=0.0,
        image_chars=config.image_chars,
        strict_roles=config.strict_roles,
        max_output=config.max_output,
    )
