"""What one turn has spent, and where it may go after a failure."""

from __future__ import annotations

import pytest

from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.flows.recovery import Recovery
from policies.schema import Tier
from tests.gateway.house import House, user

LOCAL = Tier(backend="local", policy="small")
CLOUD = Tier(backend="cloud", policy="wide")


def fault(
    kind: FaultKind, retry_after: float | None = None, *, is_ours: bool = False
) -> UpstreamFault:
    return UpstreamFault(kind, f"it is {kind}", retry_after=retry_after, is_ours=is_ours)


async def recovery(house: House) -> tuple[Recovery, list[Tier]]:
    turn = await house.open(user("hi"), model="both")
    assert [tier.backend for tier in turn.tiers] == ["cloud"]
    return turn.recovery, turn.tiers


async def plan(house: House, found: Recovery, told: UpstreamFault, tiers: list[Tier]) -> str:
    setting = (await house.open(user("hi"), id="other")).prepared.setting
    return (await found.plan(told, setting, tiers)).step


async def test_each_call_is_counted_and_another_tier_begins_at_one(house: House) -> None:
    found, tiers = await recovery(house)
    assert await plan(house, found, fault(FaultKind.EMPTY), tiers) == "again"
    assert (found.attempts, found.here) == (2, 2)
    assert await plan(house, found, fault(FaultKind.EMPTY), tiers) == "elsewhere"
    assert (found.attempts, found.here) == (3, 1)
    assert await plan(house, found, fault(FaultKind.EMPTY), tiers) == "give up"


async def test_a_circuit_that_refuses_costs_no_attempt(house: House) -> None:
    found, tiers = await recovery(house)
    assert await plan(house, found, fault(FaultKind.RESTING, 9.0), tiers) == "elsewhere"
    assert found.attempts == 1


async def test_the_waits_are_added_up(house: House) -> None:
    found, _ = await recovery(house)
    before = house.clock.ms
    assert await plan(house, found, fault(FaultKind.OVERLOADED, 8.0), []) == "again"
    assert found.waited == 8.0
    assert house.clock.ms - before >= 8_000
    assert await plan(house, found, fault(FaultKind.OVERLOADED, 12.5), []) == "give up"


async def test_the_gateways_own_line_asks_the_client_to_come_again(house: House) -> None:
    """A full line names a moment; the turn does not stand there meanwhile, before the others."""
    found, _ = await recovery(house)
    full = fault(FaultKind.OVERLOADED, 2.0, is_ours=True)
    assert await plan(house, found, full, []) == "give up"


async def test_the_next_tier_is_the_first_that_can_serve(house: House) -> None:
    found, _ = await recovery(house)
    house.local.healthy = False
    tiers = [LOCAL, CLOUD]
    assert await plan(house, found, fault(FaultKind.TIMEOUT), tiers) == "elsewhere"
    assert [tier.backend for tier in tiers] == ["cloud", "local"]


@pytest.mark.parametrize("why", ["unhealthy", "resting"])
async def test_where_no_other_can_serve_there_is_no_elsewhere(house: House, why: str) -> None:
    found, tiers = await recovery(house)
    if why == "unhealthy":
        house.cloud.healthy = False
    else:
        for _ in range(5):
            with pytest.raises(UpstreamFault), house.ctx.circuits.call("cloud"):
                raise fault(FaultKind.SERVER)
    assert await plan(house, found, fault(FaultKind.UNAVAILABLE), tiers) == "give up"


async def test_a_view_is_cut_once_on_a_tier(house: House) -> None:
    found, tiers = await recovery(house)
    assert await plan(house, found, fault(FaultKind.OVERFLOW), tiers) == "smaller"
    assert found.is_cut
    assert await plan(house, found, fault(FaultKind.EMPTY), []) == "give up"  # drawn twice here
    assert await plan(house, found, fault(FaultKind.OVERFLOW), tiers) == "give up"
