"""How long one call may take, and in which words it is told that it took longer.

Four waits, each with its key under `timeouts`: until the connection stands, until the first token
(pings and progress count as life), between two pieces, and in all. A whole answer ends besides when
its client would give up: whoever waits in vain is told.
"""

from __future__ import annotations

from typing import Literal

from gateway.backends.faults import FaultKind, UpstreamFault
from policies.schema import Timeouts

Stage = Literal["connect", "first_token", "idle"]

_WORDS: dict[Stage, str] = {
    "connect": "could not be reached within {seconds:g} s (timeouts.connect)",
    "first_token": "gave no first token within {seconds:g} s (timeouts.first_token)",
    "idle": "fell silent for {seconds:g} s (timeouts.idle)",
}


class Waits:
    """The clock of one call. `began`: the event loop's seconds then; `limit`: the moment at which
    the client gives up, None where it is patient; `end`: when the call is over at the latest."""

    __slots__ = ("_limit", "_timeouts", "_total", "began", "end")

    def __init__(self, timeouts: Timeouts, began: float, limit: float | None = None) -> None:
        self.began = began
        self._timeouts = timeouts
        self._total = began + timeouts.total
        self._limit = limit
        self.end = self._total if limit is None else min(self._total, limit)

    def until(self, now: float, seconds: float) -> float:
        """The moment at which a wait of so many seconds ends, or the whole call."""
        return min(self.end, now + seconds)

    def fault(self, backend: str, stage: Stage, now: float) -> UpstreamFault:
        """What is told when a wait ended in this stage at this moment."""
        timeouts, limit = self._timeouts, self._limit
        if limit is not None and limit <= self._total and now >= limit:
            what = f"The backend {backend} had not finished when its client would have given up"
            return UpstreamFault(FaultKind.TIMEOUT, what, is_ours=True)
        if now >= self._total:
            what = f"took longer than {timeouts.total:g} s in all (timeouts.total)"
        else:
            what = _WORDS[stage].format(seconds=getattr(timeouts, stage))
        return UpstreamFault(FaultKind.TIMEOUT, f"The backend {backend} {what}")
