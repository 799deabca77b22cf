"""What follows an attempt at a turn that failed before the client was given anything.

One budget spans retries, fallbacks and waits (design law 12). A failure has one of four natures,
by its kind:

outage   nobody there, overloaded, a refused key: another tier serves; where there is none, the
         backend is asked again only if it named a moment and that moment is near
chance   an empty, broken or garbled answer: the same bytes may do better, once; then another tier
request  refused content, an overflow: the same bytes fare the same; another tier only where the
         policy says so, and an overflow is cut to fit, once
final    the request itself is wrong: nothing helps
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from policies.schema import Attempts

Step = Literal["elsewhere", "again", "smaller", "give up"]

_OUTAGES = frozenset(
    {"unavailable", "loading", "timeout", "overloaded", "auth", "not_found", "resting"}
)
_CHANCES = frozenset({"empty", "interrupted", "malformed", "server"})
_NAMES_A_MOMENT = frozenset({"overloaded", "loading"})


@dataclass(frozen=True, slots=True)
class Spent:
    """What a turn has used up. attempts: calls made, this one included. here: those of them on
    the backend that failed now. waited: seconds. is_cut: the view was already cut after an
    overflow. left: seconds until the client must have been told, None without bound."""

    attempts: int
    here: int = 1
    waited: float = 0.0
    is_cut: bool = False
    left: float | None = None


@dataclass(frozen=True, slots=True)
class Next:
    """What is done now; `wait` seconds before."""

    step: Step
    wait: float = 0.0


GIVE_UP = Next("give up")


def plan_next(
    kind: str,
    budget: Attempts,
    spent: Spent,
    *,
    has_other: bool,
    elsewhere: tuple[str, ...] = (),
    retry_after: float | None = None,
) -> Next:
    """Decide what follows a failure of this kind.

    has_other: another tier could serve now. elsewhere: the kinds of failed requests that the
    policy sends to another tier. retry_after: seconds that the upstream asked for.
    """
    if spent.attempts >= budget.most:
        return GIVE_UP
    other = Next("elsewhere") if has_other else None
    if kind in _OUTAGES:
        return other or _wait(kind, budget, spent, retry_after)
    if kind in _CHANCES:
        return _draw_again(kind, spent, other)
    if kind in elsewhere and other is not None:
        return other
    if kind == "overflow" and not spent.is_cut:
        return Next("smaller")
    return GIVE_UP


def _draw_again(kind: str, spent: Spent, other: Next | None) -> Next:
    """An error of the server's own may last: another tier is the better chance, if there is one."""
    if spent.here == 1 and not (kind == "server" and other):
        return Next("again")
    return other or GIVE_UP


def _wait(kind: str, budget: Attempts, spent: Spent, retry_after: float | None) -> Next:
    """The same tier once more at the moment that it named, where budget and client reach so far."""
    if kind not in _NAMES_A_MOMENT or retry_after is None:
        return GIVE_UP
    if spent.waited + retry_after > budget.wait:
        return GIVE_UP
    if spent.left is not None and retry_after >= spent.left:
        return GIVE_UP
    return Next("again", retry_after)
