"""Asking other sources for notes. One that fails takes nothing from a turn but its own notes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field

from gateway.backends.lookups import MOST_BYTES, Found, LookupFailed, Trouble
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
        told = await ctx.lookups.ask(lookup, question)
        _note_answer(ctx.lookups.troubles, name)
        found = tuple(note for note in told if not _declines(note))
        if len(found) < len(told):
            outcome = "declined"
            log.info("%d notes of the lookup %s decline: left out", len(told) - len(found), name)
        return found
    except LookupFailed as failure:
        outcome = failure.kind
        _note_failure(ctx.lookups.troubles, name, lookup, failure)
        return None
    finally:
        ctx.meters.lookup_ended(name, outcome, ctx.clock.monotonic() - began)


def _declines(note: Found) -> bool:
    """Whether a note is a refusal (of an agent behind the source, say): no memory (law 7)."""
    # Not at every start: its patterns take a sixth of a second to compile.
    from policies.judge import declines_request

    return declines_request(note.text)


def _note_failure(
    troubles: dict[str, Trouble], name: str, lookup: Lookup, failure: LookupFailed
) -> None:
    """Told once, and again where it fails in another way: the meters count every question."""
    known = troubles.get(name)
    if known is None or known.kind != failure.kind:
        what, then = _tell(name, lookup, failure)
        log.warning("the lookup %s failed: %s. Turns go on without its notes. %s", name, what, then)
    times = 0 if known is None else known.times
    troubles[name] = Trouble(failure.kind, times + 1)


def _note_answer(troubles: dict[str, Trouble], name: str) -> None:
    if (known := troubles.pop(name, None)) is not None:
        times = f"{known.times:,} question{'s' if known.times > 1 else ''} that failed"
        log.info("the lookup %s answers again, after %s", name, times)


def _tell(name: str, lookup: Lookup, failure: LookupFailed) -> tuple[str, str]:
    """What happened, and what can be done."""
    field = f"lookups.{name}"
    if failure.kind == "timeout":
        what = f"it gave no whole answer within {lookup.timeout:g} s"
        return what, f"Look whether it runs, or raise {field}.timeout"
    if failure.kind == "unreachable":
        what = "no connection could be made"
        return what, f"Look whether it runs, and at {field}.url"
    if failure.kind == "status":
        what = f"it answered with the status {failure.status}"
        return what, f"Look at what it logged, and at {field}.url and {field}.headers"
    what = f'its answer is not {{"notes": [{{"text": "…"}}]}}, of {MOST_BYTES:,} bytes at most'
    return what, f"Look at what stands behind {field}.url"
