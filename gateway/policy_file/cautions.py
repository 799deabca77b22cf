"""What is no fault of a policies file and still good to know before it is used."""

from __future__ import annotations

from collections.abc import Iterator

from policies.budget import find_narrowed, limits_of
from policies.recall.room import ONE_SEARCH, between_folds, can_search
from policies.schema import Policy, PolicyFile, find_waiting
from policies.values import Limits

_RATIO = 3.0
"""Characters per token of a common text: what a view in tokens is reckoned with."""


def find_cautions(file: PolicyFile) -> list[str]:
    """A sentence for each setting that does nothing yet, or less than it says."""
    return [
        *find_waiting(file),
        *_find_unhidden(file),
        *(
            f"policies.{name}.{sentence}"
            for name, policy in file.policies.items()
            for sentence in (
                *find_narrowed(policy),
                *_find_unsearched(policy),
                *_find_undocumented(policy),
            )
        ),
    ]


def _find_unhidden(file: PolicyFile) -> Iterator[str]:
    """Where a fallback or a move shows another cloud model what the first one was not to see."""
    for name, model in file.models.items():
        policies = {t.policy for t in model.tiers if not file.backends[t.backend].is_local}
        hidden = {policy: file.policies[policy].privacy.mask for policy in sorted(policies)}
        if len({frozenset(mask) for mask in hidden.values()}) > 1:
            told = ", ".join(f"{p} {', '.join(m) or 'nothing'}" for p, m in hidden.items())
            yield (
                f"models.{name}: its tiers off this machine do not hide the same "
                f"(privacy.mask), so that a fallback may show what the first one hides: {told}"
            )


def tell_full_room(limits: Limits) -> str:
    """Why views of these limits, whose room for documents is none, have none."""
    if limits.messages:
        return "its tail, gist, chapters, profile and ledger take all that a fold leaves"
    told = limits.gist_length + limits.stack + limits.profile + limits.ledger
    return (
        f"a fold leaves {limits.goal:,} characters (view.start − view.headroom), and view.keep "
        f"takes {limits.keep:,} of them, gist, chapters, profile and ledger up to {told:,}"
    )


def _find_undocumented(policy: Policy) -> list[str]:
    """Told where its memory has sizes that nobody wrote: who wrote them all for a small view knows
    what they leave. A policy with documents of its own is refused where it has no room for them."""
    limits = limits_of(policy, _RATIO)
    if limits.documents or policy.model_fields_set >= {"chapters", "gist"}:
        return []
    return [f"view has no room for documents, and so never shows one: {tell_full_room(limits)}"]


def _find_unsearched(policy: Policy) -> list[str]:
    recall, limits = policy.recall, limits_of(policy, _RATIO)
    if not recall.tool or can_search(recall, limits):
        return []
    return [
        f"recall.tool is on, but from one fold to the next notes and searches may cost "
        f"{between_folds(recall, limits):,} characters together (recall.between_folds, and a third "
        f"of view.headroom) and one search takes {ONE_SEARCH:,}: no model is offered it"
    ]
