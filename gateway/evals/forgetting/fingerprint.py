"""What a run evaluates, as digests: the code and prompts of memory, the policy, who was asked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import gateway
import policies
from policies.schema import Policy

_EVALUATED = (
    "prompts",
    "flows/assignments.py",
    "flows/drawing.py",
    "flows/recorder.py",
    "flows/rounds.py",
    "flows/summary_forms.py",
    "flows/recollection.py",
    "flows/backgrounds.py",
    "store/search.py",
    "evals/forgetting",
)


def take_fingerprint(
    policy: Policy,
    people: Mapping[str, str],
    conversations: Iterable[Sequence[tuple[str, str]]],
) -> dict[str, str]:
    """people: who writes and who examines, as texts that change when they do."""
    return {
        "code": code_digest(),
        "policy": _digest([policy.model_dump_json()]),
        **{name: _digest([told]) for name, told in people.items()},
        "conversation": _digest(
            f"{role}\n{text}" for messages in conversations for role, text in (*messages, ("", ""))
        ),
    }


def code_digest() -> str:
    """Of the sources that decide what is remembered and how it is examined."""
    house = Path(gateway.__file__).parent
    roots = [Path(policies.__file__).parent, *(house / name for name in _EVALUATED)]
    files = [
        file for root in roots for file in (sorted(root.rglob("*.py")) if root.is_dir() else [root])
    ]
    return _digest(file.read_text(encoding="utf-8") for file in files)


def _digest(texts: Iterable[str]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for text in texts:
        digest.update(text.encode(errors="surrogatepass") + b"\0")
    return digest.hexdigest()
