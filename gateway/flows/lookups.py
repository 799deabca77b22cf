"""Asking other sources for notes. One that fails takes nothing from a turn but its own notes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field

from gateway.backends.lookups import Found, LookupFailed
from gateway.flows.context import Context
from policies.schema import Lookup

log = logging.getLogger("foldgate.turn")


@dataclass(frozen=True, slots=True)
class Answers:
    """What sources told about a question: notes by source, the names of those that failed, how
    many characters each may have."""

    notes: Mapping[str, tuple[Found, ...]] = field(default_factory=dict)
    failed: tuple[str, ...] = ()
    budgets: Mapping[str, int] = field(default_factory=dict, compare=False)

    def of(self, names: Iterable[str]) -> list[tuple[str, int, tuple[Found, ...]]]:
        """What these of them told: name, budget, notes."""
        return [
            (name, self.budgets[name], self.notes[name]) for name in names if name in self.notes
        ]


NOTHING = Answers()


@dataclass(frozen=True, slots=True)
class Question:
    """What a source is sent. conversation: its id, None for one that begins now."""

    query: str
    conversation: str | None
    owner: str
    user: str


async def ask_lookups(ctx: Context, named: Mapping[str, Lookup], question: Question) -> Answers:
    """What these sources tell, asked all at once. Never raises for a source's sake."""
    sent = asdict(question)
    told = await asyncio.gather(*(_ask(ctx, name, one, sent) for name, one in named.items()))
    answers = dict(zip(named, told, strict=True))
    return Answers(
        notes={name: found for name, found in answers.items() if found},
        failed=tuple(name for name, found in answers.items() if found is None),
        budgets={name: one.budget for name, one in named.items()},
    )


async def _ask(
    ctx: Context, name: str, lookup: Lookup, question: Mapping[str, object]
) -> tuple[Found, ...] | None:
    """One source's notes; None where it failed, which is counted and logged without a word of what
    was asked or told."""
    began = ctx.clock.monotonic()
    outcome = "done"
    try:
        return await ctx.lookups.ask(lookup, question)
    except LookupFailed as failure:
        outcome = failure.kind
        log.warning("the lookup %s failed: %s", name, outcome)
        return None
    finally:
        ctx.meters.lookup_ended(name, outcome, ctx.clock.monotonic() - began)
