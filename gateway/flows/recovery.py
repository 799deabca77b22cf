"""What a turn does after an attempt failed: its budget, and the next step by policies/attempts."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.flows.context import Context
from gateway.flows.sites import Setting
from policies.attempts import Next, Spent, plan_next
from policies.schema import Tier

log = logging.getLogger("foldgate.turn")


@dataclass(slots=True)
class Recovery:
    """What one turn has spent, over every tier. here: attempts on the tier that serves now; waited:
    seconds; deadline: the event loop's seconds by which the client must have been told."""

    ctx: Context
    request_id: str
    model: str
    deadline: float | None = None
    attempts: int = 1
    here: int = 1
    waited: float = 0.0
    is_cut: bool = False

    async def plan(self, fault: UpstreamFault, setting: Setting, tiers: list[Tier]) -> Next:
        """The next step; where it leads elsewhere, the tier to take stands in front of `tiers`.

        A wait that the step asks for is over when this returns.
        """
        step = plan_next(
            fault.kind,
            self.ctx.model(self.model).attempts,
            Spent(self.attempts, self.here, self.waited, self.is_cut, self._left()),
            has_other=await self._bring_forward(tiers),
            elsewhere=setting.policy.elsewhere,
            # The gateway's own lines ask the client to come again, not the turn to stay.
            retry_after=None if fault.is_ours else fault.retry_after,
        )
        told = self.attempts, self.request_id, setting.backend, fault.kind, step.step, step.wait
        log.info("attempt %d of %s: %s ended it: %s; now: %s after %g s", *told)
        if step.step != "give up":
            self.ctx.meters.retried(setting.backend, fault.kind, step.step)
        if step.wait:
            await self.ctx.clock.sleep(step.wait)
            self.waited += step.wait
        self._spend(fault, step)
        return step

    def _spend(self, fault: UpstreamFault, step: Next) -> None:
        if fault.kind is not FaultKind.RESTING:  # nobody was called
            self.attempts += 1
        self.here = 1 if step.step == "elsewhere" else self.here + 1
        self.is_cut = step.step == "smaller" or (self.is_cut and step.step == "again")

    def _left(self) -> float | None:
        if self.deadline is None:
            return None
        return self.deadline - asyncio.get_running_loop().time()

    async def _bring_forward(self, tiers: list[Tier]) -> bool:
        """Put the first tier that can serve now in front; whether there is one."""
        for at, tier in enumerate(tiers):
            if not self.ctx.circuits.is_passable(tier.backend):
                continue
            if (await self.ctx.backends[tier.backend].health()).ok:
                tiers.insert(0, tiers.pop(at))
                return True
        return False
