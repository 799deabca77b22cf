"""When work that failed is tried again, and when it is given up.

Failures have four causes. ``outage``: nobody answered, or not in order; time heals it. ``judged``:
answers came and were no good; another draw may be. ``final``: a provider refuses the content or the
request, or no window holds it; the same bytes will fare the same for ever. ``broken``: an error of
our own; one more round may find a row mended, many will not.
"""

import hashlib
from dataclasses import dataclass
from typing import Literal

Cause = Literal["outage", "judged", "final", "broken"]

BASE_SECONDS = 30.0
"""The first wait; each further one is twice as long."""

CAP_SECONDS: dict[Cause, float] = {
    "outage": 3_600.0,
    "judged": 900.0,
    "final": 0.0,
    "broken": 300.0,
}
"""No wait is longer, whatever an upstream asks for: an outage is left alone for up to an hour; a
model that answers may be asked again sooner; an error of our own is looked at while its cause can
still be found; what is final is not tried again."""

JITTER = 0.25
"""Waits are spread by this share to either side, so that what failed together does not come back
together."""

FURTHER_ROUNDS: dict[Cause, int] = {"outage": 24, "judged": 3, "final": 0, "broken": 0}
"""Rounds after the stand-in was prepared: a day of hourly attempts outlasts an outage; a model that
failed so often on one text will hardly do better."""

BROKEN_ROUNDS = 3
"""Attempts at work that raises an error of our own before it is parked."""


@dataclass(frozen=True, slots=True)
class Retry:
    """What follows a failed round. ``wait``: seconds, None to park the work; ``stand_in``: prepare
    what can be made without a model."""

    wait: float | None
    stand_in: bool


def plan_retry(
    key: str, attempt: int, rounds: int, cause: Cause, retry_after: float | None = None
) -> Retry:
    """Decide what follows round number ``attempt`` (from 1) of the work named ``key``.

    ``rounds``: how many are tried before a stand-in is prepared. ``retry_after``: the seconds that
    an upstream asked for.
    """
    if cause == "broken":
        done = attempt >= BROKEN_ROUNDS
        return Retry(None if done else wait_seconds(key, attempt, cause), stand_in=False)
    if cause == "final":
        return Retry(None, stand_in=True)
    done = attempt >= rounds + FURTHER_ROUNDS[cause]
    wait = None if done else wait_seconds(key, attempt, cause, retry_after)
    return Retry(wait, stand_in=attempt >= rounds)


def wait_seconds(
    key: str, attempt: int, cause: Cause = "outage", retry_after: float | None = None
) -> float:
    """How long to wait after attempt number ``attempt`` (from 1), in seconds.

    30, 60, 120 … up to the cause's cap, give or take a quarter: where in that range is a digest of
    key and attempt, so that the same rows give the same times. An upstream's own wish lengthens the
    wait, up to the same cap.
    """
    cap = CAP_SECONDS[cause]
    plain = min(cap, BASE_SECONDS * 2.0 ** min(attempt - 1, 16))
    spread = plain * (1 - JITTER + 2 * JITTER * draw_share(f"{key}:{attempt}"))
    return min(cap, max(spread, retry_after or 0.0))


def draw_share(text: str) -> float:
    """A number from 0 up to 1 that depends on the text alone, and evenly so over many texts."""
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64
