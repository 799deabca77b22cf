"""Who is asking: keys, forwarded users, and what no header may carry."""

from __future__ import annotations

import pytest

from gateway.api.deps import LOCAL, Keyring
from tests.gateway.api.conftest import Door, Opener
from tests.gateway.seeds import add_conversation, talk


def test_a_keyring_knows_its_keys() -> None:
    keyring = Keyring({"k1": "anna", "k2": "anna", "kß": "bert"}, "root")
    assert [keyring.owner(key) for key in ("k1", "k2", "kß")] == ["anna", "anna", "bert"]
    assert [keyring.owner(key) for key in ("", "k", "root", "\ud83d")] == [None] * 4
    assert [keyring.is_admin(key) for key in ("root", "k1", "")] == [True, False, False]


def test_without_keys_everybody_is_local() -> None:
    keyring = Keyring({}, None)
    assert [keyring.owner(key) for key in ("", "sk-anything")] == [LOCAL, LOCAL]
    assert not keyring.is_admin("")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer nobody"}, 401),
        ({"authorization": "Basic ka"}, 401),
        ({"authorization": "Bearer "}, 401),
        ({"authorization": "Bearer ka"}, 200),
        ({"authorization": "bearer ka"}, 200),
        ({"x-api-key": "ka"}, 200),
        ({"x-api-key": "root"}, 401),
    ],
)
async def test_keys_at_the_door(opened: Opener, headers: dict[str, str], status: int) -> None:
    async with opened(keys={"ka": "anna"}, admin_key="root") as door:
        answer = await door.client.get("/v1/models", headers=headers)
        assert answer.status_code == status
        if status == 401:
            assert answer.headers["www-authenticate"] == "Bearer"
            assert answer.json()["error"]["code"] == "invalid_api_key"


async def test_keys_rotate_and_the_owner_stays(opened: Opener) -> None:
    """I03."""
    async with opened(keys={"old": "anna"}) as door:
        made, _ = door.store.writing(add_conversation, talk(1), owner="anna")
    async with opened(keys={"new": "anna"}) as door:
        assert (await door.get(f"/api/conversations/{made.id}", "new")).status_code == 200
        assert (await door.get(f"/api/conversations/{made.id}", "old")).status_code == 401


@pytest.mark.parametrize(
    "value",
    ["ok\r\nX-Evil: 1", "a\nb", "\x00", "naïve", "x" * 100_000, "x" * 257, "a b", "a/b"],
    ids=["crlf", "lf", "nul", "latin-1", "huge", "257", "blank", "slash"],
)
async def test_a_user_that_no_header_may_carry(door: Door, value: str) -> None:
    answer = await door.client.get(
        "/v1/models", headers=[(b"x-openwebui-user-id", value.encode("latin-1"))]
    )
    if answer.status_code == 200:  # /v1/models needs no user, but it must not stumble over one
        raise AssertionError("the value was taken")
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "x-openwebui-user-id"
    assert "x-evil" not in answer.headers


@pytest.mark.parametrize("user", ["anna.k@example.org", "A-1_2:3+4", "x" * 256])
async def test_a_user_as_clients_send_it(door: Door, user: str) -> None:
    answer = await door.get("/v1/models", x_librechat_user_id=user)
    assert answer.status_code == 200


async def test_what_several_users_call_so_is_nobodys_without_its_user(opened: Opener) -> None:
    """The newest of them was shown, and deleted."""
    async with opened(keys={"ka": "ada"}) as door:
        hers, his = (
            door.store.writing(add_conversation, talk(1), owner="ada", user=user, alias="X")[0]
            for user in ("mia", "bob")
        )
        for path in ("", "/messages", "/memory", "/documents"):
            answer = await door.get(f"/api/conversations/X{path}", "ka")
            assert (answer.status_code, answer.json()["error"]["code"]) == (
                409,
                "ambiguous_conversation",
            )
        answer = await door.delete("/api/conversations/X", "ka")
        assert answer.status_code == 409
        told = answer.json()["error"]["message"]
        assert f"bob ({his.id}), mia ({hers.id})" in told

        named = await door.get("/api/conversations/X", "ka", x_foldgate_user="mia")
        assert named.json()["id"] == hers.id
        gone = await door.delete("/api/conversations/X", "ka", x_foldgate_user="bob")
        assert gone.json() == {"id": his.id, "deleted": True}
        # now that one user alone calls one so, the key finds it
        assert (await door.get("/api/conversations/X", "ka")).json()["id"] == hers.id
