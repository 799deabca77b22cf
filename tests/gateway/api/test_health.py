"""Alive and ready, told to whoever keeps the program running."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from gateway.api import health
from gateway.backends.base import Health
from gateway.backends.faults import FaultKind, UpstreamFault
from tests.gateway.api.conftest import OPEN, Door, Opener


class Probed:
    """What /readyz asks of a backend."""

    def __init__(self, answer: Health | None, off_reason: str | None = None) -> None:
        self.answer = answer
        self.off_reason = off_reason
        self.slot_care = None

    async def health(self) -> Health:
        if self.answer is None:
            await asyncio.Event().wait()
        assert self.answer is not None
        return self.answer


UP = Probed(Health(True))
DOWN = Probed(Health(False, "nobody listens"))
OFF = Probed(Health(True), off_reason="its api_key is not set")
MUTE = Probed(None)


async def test_alive_needs_no_key_and_no_backend(opened: Opener) -> None:
    async with opened(keys={"k": "o"}) as door:
        answer = await door.get("/healthz")
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize(
    ("backends", "status", "told"),
    [
        ({"a": UP, "b": DOWN}, 200, {"a": (True, ""), "b": (False, "nobody listens")}),
        ({"a": DOWN}, 503, {"a": (False, "nobody listens")}),
        ({"a": OFF}, 503, {"a": (False, "off: its api_key is not set")}),
        ({"a": MUTE, "b": UP}, 200, {"a": (False, "no answer within 0.01 s"), "b": (True, "")}),
    ],
    ids=["one of two", "none", "off", "mute"],
)
async def test_ready_with_one_healthy_backend(
    door: Door,
    monkeypatch: pytest.MonkeyPatch,
    backends: dict[str, Probed],
    status: int,
    told: dict[str, tuple[bool, str]],
) -> None:
    monkeypatch.setattr(health, "PROBE_SECONDS", 0.01)
    kept, door.context.backends = door.context.backends, backends
    try:
        answer = await door.get("/readyz")
    finally:
        door.context.backends = kept
    assert answer.status_code == status
    assert answer.json() == {
        "ready": status == 200,
        "database": {"ok": True, "reason": ""},
        "unserved": ["foldgate", "vendor/tiny"],  # their tiers are none of these backends
        "backends": {
            name: {"ok": ok, "reason": reason, "circuit": "closed"}
            for name, (ok, reason) in told.items()
        },
        "policies": {"revision": door.context.policies.revision},
    }


async def test_a_backend_that_is_left_alone_makes_nobody_ready(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Healthy as it says it is: its turns would be refused at once."""
    monkeypatch.setattr(door.context, "backends", {"a": UP})
    for _ in range(5):
        with pytest.raises(UpstreamFault), door.context.circuits.call("a"):
            raise UpstreamFault(FaultKind.SERVER, "it failed")
    answer = await door.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["backends"] == {"a": {"ok": True, "reason": "", "circuit": "open"}}
    monkeypatch.undo()


async def test_models_that_nobody_serves_are_named_though_another_is(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """foldgate has a tier on local-glm alone, vendor/tiny one on rehearsal, which answers."""
    for local, unserved in ((DOWN, ["foldgate"]), (UP, [])):
        monkeypatch.setattr(door.context, "backends", {"local-glm": local, "rehearsal": UP})
        answer = await door.get("/readyz")
        assert (answer.status_code, answer.json()["unserved"]) == (200, unserved)
    monkeypatch.undo()


async def test_not_ready_without_a_database(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(door.context.backends, "up", UP)
    door.store.writing(lambda connection: connection.exec_driver_sql("DROP TABLE conversations"))
    answer = await door.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["database"] == {"ok": False, "reason": "OperationalError"}
    monkeypatch.undo()


KNOWN = (" k", " a")


@pytest.mark.parametrize(
    ("client", "headers", "whole"),
    [
        ("127.0.0.1", {}, True),
        ("203.0.113.9", {}, False),
        ("127.0.0.1", {"x-forwarded-for": "203.0.113.9"}, False),
        ("unix", {}, False),
        ("203.0.113.9", {"authorization": "Bearer wrong"}, False),
        ("203.0.113.9", {"authorization": "Bearer k"}, True),
        ("203.0.113.9", {"authorization": "Bearer a"}, True),
    ],
)
async def test_a_stranger_is_told_no_names(
    opened: Opener, client: str, headers: dict[str, str], whole: bool
) -> None:
    async with opened(keys={"k": "o"}, admin_key="a") as door:
        transport = httpx.ASGITransport(door.app, client=(client, 1))
        async with httpx.AsyncClient(transport=transport, base_url=OPEN) as asker:
            told = (await asker.get("/readyz", headers=headers)).json()
            policies = await asker.get("/api/policies", headers=headers)
    assert set(told) == (
        {"ready", "database", "unserved", "backends", "policies"} if whole else {"ready"}
    )
    assert policies.status_code == (200 if headers.get("authorization", "")[-2:] in KNOWN else 401)
