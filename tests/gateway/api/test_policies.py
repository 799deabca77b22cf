"""The numbers in force, without keys and addresses."""

from __future__ import annotations

from tests.gateway.api.conftest import Door, Opener


async def test_numbers_are_written_out_and_addresses_are_not(door: Door) -> None:
    answer = (await door.get("/api/policies")).json()
    assert answer["revision"] == door.context.policies.revision
    assert answer["policies"]["local-fold"]["view"]["start"] == 48_000
    assert answer["backends"]["local-glm"] == {
        "kind": "llama_cpp",
        "local": True,
        "window": 65_536,
        "off": None,
    }
    assert answer["models"]["foldgate"]["tiers"] == [
        {"backend": "local-glm", "policy": "local-fold"}
    ]


async def test_it_is_for_those_with_a_key(opened: Opener) -> None:
    async with opened(keys={"k": "o"}) as door:
        assert (await door.get("/api/policies")).status_code == 401
