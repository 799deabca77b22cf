"""The names that clients may ask for, and the window they are told."""

from __future__ import annotations

from tests.gateway.api.conftest import Door


async def test_models_are_listed_with_the_virtual_window(door: Door) -> None:
    answer = (await door.get("/v1/models")).json()
    began = door.app.state.began_s
    assert answer == {
        "object": "list",
        "data": [
            {
                "id": name,
                "object": "model",
                "created": began,
                "owned_by": "foldgate",
                "context_length": 1_000_000,
            }
            for name in ("foldgate", "vendor/tiny")
        ],
    }


async def test_a_larger_window_is_told_as_it_is(door: Door) -> None:
    door.context.backends["local-glm"].window_tokens = 2_000_000
    answer = (await door.get("/v1/models/foldgate")).json()
    assert (answer["id"], answer["context_length"]) == ("foldgate", 2_000_000)


async def test_a_name_with_a_slash_is_found(door: Door) -> None:
    assert (await door.get("/v1/models/vendor/tiny")).json()["id"] == "vendor/tiny"


async def test_an_unknown_name_is_told_which_exist(door: Door) -> None:
    answer = await door.get("/v1/models/gpt-9")
    assert answer.status_code == 404
    assert "foldgate, vendor/tiny" in answer.json()["error"]["message"]
