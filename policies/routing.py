"""Which tier serves a turn.

In this order:
1. the route: the backend that somebody chose for this conversation;
2. the rules of the asked model: the first whose conditions all hold;
3. its home: the backend on which the conversation lives;
4. the first tier, in the order of the file.
At each step only a tier counts that can be used now, and in a private conversation only one on
this machine. Where none can be used, the same order without that condition names the one whose
error the client is told. Nothing is ever chosen that is not allowed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from policies.schema import Extent, Rule, When, parse_hours

ROUTE = "route"
HOME = "home"
FIRST = "first-healthy"
FALLBACK = "fallback"
MIGRATING = "migrating"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A tier of the asked model. is_local: on this machine. is_usable: it can be called now.

    images and tools: whether the turns that its view will hold, the newest among them, have any.
    """

    backend: str
    policy: str
    is_local: bool
    is_usable: bool
    images: bool = False
    tools: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """What rules may ask about a turn.

    model: the name asked for. headers: by name in lower case. chars: the whole conversation, the
    newest message with it. minute: of the day, from 0; day: mon to sun; both by the machine's own
    clock. usable: every backend, of any model, that can be called now.
    """

    model: str
    owner: str
    user: str = ""
    headers: Mapping[str, str] | None = None
    tags: frozenset[str] = frozenset()
    chars: int = 0
    minute: int = 0
    day: str = "mon"
    usable: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Stand:
    """What is known of the conversation. route: chosen for it by somebody. home: where it lives.
    private: nothing of it may leave this machine."""

    route: str | None = None
    home: str | None = None
    private: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """The candidate (its place in the list), the rule that chose it, and whether the conversation
    lives there from now on."""

    index: int
    rule: str
    settles: bool


@dataclass(frozen=True, slots=True)
class Step:
    """One way that was looked at. tier: the backend it names, None where there is none. misses:
    the conditions that do not hold; blocked: why its tier cannot serve ("" where it can)."""

    rule: str
    tier: str | None
    misses: tuple[str, ...]
    blocked: str

    @property
    def holds(self) -> bool:
        return self.tier is not None and not self.misses and not self.blocked


def choose(
    facts: Facts, stand: Stand, candidates: Sequence[Candidate], rules: Sequence[Rule]
) -> Choice | None:
    """The tier for a turn; None where no candidate is allowed."""
    allowed = [at for at, tier in enumerate(candidates) if is_allowed(tier, stand)]
    for only_usable in (True, False):
        for choice in _ways(facts, stand, candidates, rules):
            if choice.index in allowed and (not only_usable or candidates[choice.index].is_usable):
                return choice if only_usable else Choice(choice.index, choice.rule, False)
    return None


def is_allowed(tier: Candidate, stand: Stand) -> bool:
    """What is private goes to backends on this machine, and to no others."""
    return tier.is_local or not stand.private


def order_rest(stand: Stand, candidates: Sequence[Candidate], taken: int) -> list[int]:
    """Where a turn may go when the tier that it went to fails: the usable ones first, the home
    before the others, then those that seem out of order; none that is not allowed."""
    rest = [at for at, tier in enumerate(candidates) if at != taken and is_allowed(tier, stand)]
    return sorted(
        rest,
        key=lambda at: (
            not candidates[at].is_usable,
            candidates[at].backend != stand.home,
            at,
        ),
    )


def explain(
    facts: Facts, stand: Stand, candidates: Sequence[Candidate], rules: Sequence[Rule]
) -> list[Step]:
    """Every way in its order, and what speaks against it: the first that holds is the choice."""
    steps = [_named(ROUTE, stand.route, stand, candidates)]
    for rule in rules:
        at = _find(candidates, rule.tier)
        if at is not None:
            misses = tuple(_misses(rule.when, facts, candidates[at]))
            steps.append(Step(rule.name, rule.tier, misses, _blocked(candidates[at], stand)))
    steps.append(_named(HOME, stand.home, stand, candidates))
    steps += (Step(FIRST, tier.backend, (), _blocked(tier, stand)) for tier in candidates)
    return steps


def _named(rule: str, backend: str | None, stand: Stand, candidates: Sequence[Candidate]) -> Step:
    at = _find(candidates, backend)
    if at is None:
        blocked = "" if backend is None else "it is no tier of the model"
        return Step(rule, backend, (), blocked)
    return Step(rule, backend, (), _blocked(candidates[at], stand))


def _blocked(tier: Candidate, stand: Stand) -> str:
    if not is_allowed(tier, stand):
        return "the conversation is private"
    return "" if tier.is_usable else "it cannot be used now"


def _ways(
    facts: Facts, stand: Stand, candidates: Sequence[Candidate], rules: Sequence[Rule]
) -> Iterator[Choice]:
    if (at := _find(candidates, stand.route)) is not None:
        yield Choice(at, ROUTE, True)
    for rule in rules:
        at = _find(candidates, rule.tier)
        if at is not None and not any(_misses(rule.when, facts, candidates[at])):
            yield Choice(at, rule.name, rule.settles)
    home = _find(candidates, stand.home)
    if home is not None:
        yield Choice(home, HOME, True)
    # A home that cannot be used now is still the home: its cache is warm when it comes back.
    yield from (Choice(at, FIRST, home is None) for at in range(len(candidates)))


def _find(candidates: Sequence[Candidate], backend: str | None) -> int | None:
    return next((at for at, tier in enumerate(candidates) if tier.backend == backend), None)


def _misses(when: When, facts: Facts, tier: Candidate) -> Iterator[str]:
    """The conditions that do not hold, by their keys in the file."""
    checks = (
        ("model", when.model is None or facts.model in when.model),
        ("owner", when.owner is None or facts.owner in when.owner),
        ("user", when.user is None or facts.user in when.user),
        ("header", _has_headers(when, facts)),
        ("tag", when.tag is None or not facts.tags.isdisjoint(when.tag)),
        ("chars", when.chars is None or _is_within(when.chars, facts.chars)),
        ("images", when.images in (None, tier.images)),
        ("tools", when.tools in (None, tier.tools)),
        ("hours", when.hours is None or any(is_during(h, facts.minute) for h in when.hours)),
        ("days", when.days is None or facts.day in when.days),
        ("healthy", when.healthy is None or not facts.usable.isdisjoint(when.healthy)),
        ("unhealthy", when.unhealthy is None or not facts.usable.issuperset(when.unhealthy)),
    )
    return (name for name, holds in checks if not holds)


def _has_headers(when: When, facts: Facts) -> bool:
    given = facts.headers or {}
    return all(given.get(name.lower()) in allowed for name, allowed in (when.header or {}).items())


def _is_within(extent: Extent, chars: int) -> bool:
    return (extent.over is None or chars > extent.over) and (
        extent.under is None or chars < extent.under
    )


def is_during(hours: str, minute: int) -> bool:
    """Whether a minute of the day (from 0) lies in hours such as 22:00-06:00."""
    start, end = parse_hours(hours)
    if start < end:
        return start <= minute < end
    return minute >= start or minute < end
