"""A backend chosen by somebody for a conversation, and why a conversation is where it is."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from gateway.errors import BadRequest, Forbidden, UpstreamFailed
from gateway.flows.offers import Demand, find_offer
from gateway.flows.reroute import Rerouted, explain_route, reroute
from gateway.store import transcript
from gateway.store.moves import find_progress
from gateway.store.transcript import ConversationRow
from tests.gateway.flows.test_routes import build, home, say
from tests.gateway.house import House


@pytest.fixture
def house(tmp_path: Path) -> House:
    return build(tmp_path)


def find(connection: Connection) -> ConversationRow:
    pk = transcript.find_owner(connection, "ann", "")
    assert pk is not None
    found = transcript.find_conversation(connection, pk, "c")
    assert found is not None
    return found


async def choose(house: House, backend: str | None) -> Rerouted:
    return await reroute(house.ctx, find, backend)


async def why(house: House, **more: Any) -> dict[str, Any]:
    asked = {"headers": {}, "tags": frozenset(), **more}
    model = house.conversation("c").model
    offer = await find_offer(house.ctx, model, Demand())
    return house.store.reading(
        partial(explain_route, find=find, offer=offer, now_ms=house.clock.ms, **asked)
    )


# -- choosing ----------------------------------------------------------------------------------


async def test_a_route_holds_before_all_rules_until_it_is_taken_back(house: House) -> None:
    await say(house)
    told = await choose(house, "cloud")
    assert told.as_json() == {
        "backend": "cloud",
        "policy": "wide",
        "rule": "route",
        "migration": None,
    }
    assert await say(house) == ("cloud", "route")
    assert home(house) == "cloud"
    await choose(house, "local")
    assert await say(house, metadata={"tag": "cloud"}) == ("local", "route")
    assert await choose(house, None) == Rerouted("local", "small", "home")
    assert await say(house, metadata={"tag": "cloud"}) == ("cloud", "asked")


async def test_chapters_are_asked_for_at_once(house: House) -> None:
    await choose_cloud(house)
    for _ in range(8):
        await say(house, "ключ " * 120)
    rings = len(house.rings)
    told = await choose(house, "local")
    assert told.backend == "local"
    assert told.progress is not None
    # 8 x 608 = 4,864, of which 1,800 at most stay: two spans of at most 1,500 or three
    assert told.progress.total == len(house.pending()) >= 2
    assert told.progress.ready == 0
    assert len(house.rings) > rings
    # Told before the next turn too, which waits.
    assert house.store.reading(find_progress, house.conversation("c")) == told.progress
    assert await say(house) == ("cloud", "migrating")
    assert (await why(house))["migration"] == told.progress.as_json()
    house.write_chapters()
    assert (await say(house))[1] == "route"
    assert home(house) == "local"
    assert house.store.reading(find_progress, house.conversation("c")) is None


async def choose_cloud(house: House) -> None:
    await say(house)
    await choose(house, "cloud")


async def test_a_move_that_was_taken_back_leaves_the_conversation_at_home(house: House) -> None:
    await choose_cloud(house)
    for _ in range(8):
        await say(house, "鍵" * 600)
    await choose(house, "local")
    assert await say(house) == ("cloud", "migrating")
    assert await choose(house, None) == Rerouted("cloud", "wide", "home")
    assert await say(house) == ("cloud", "home")


async def test_a_tag_that_was_said_once_is_remembered_while_its_view_is_made(
    tmp_path: Path,
) -> None:
    house = build(tmp_path, rule="{name: back, when: {tag: local}, tier: local}")
    await choose_cloud(house)
    for _ in range(8):
        await say(house, "llave " * 100)
    await choose(house, None)
    assert await say(house, metadata={"tag": "local"}) == ("cloud", "migrating")
    assert await say(house) == ("cloud", "migrating")
    house.write_chapters()
    assert await say(house) == ("local", "home")


async def test_a_route_that_is_down_is_passed_over_and_kept(house: House) -> None:
    await choose_cloud(house)
    house.cloud.healthy = False
    assert await say(house) == ("local", "home")
    house.cloud.healthy = True
    assert await say(house) == ("cloud", "route")


async def test_a_route_for_another_model_waits(house: House) -> None:
    await choose_cloud(house)
    assert await say(house, model="here") == ("local", "home")
    assert await say(house) == ("cloud", "route")


@pytest.mark.parametrize(
    ("backend", "said"),
    [
        ("clowd", "Did you mean `cloud`?"),
        ("gemini", "It has: local, cloud."),
        ("", "It has: local, cloud."),
    ],
)
async def test_a_backend_that_is_no_tier_of_the_model_is_refused(
    house: House, backend: str, said: str
) -> None:
    await say(house)
    with pytest.raises(BadRequest) as caught:
        await choose(house, backend)
    assert caught.value.code == "backend_not_found"
    assert said in caught.value.message
    assert house.conversation("c").route is None


async def test_a_backend_that_is_off_is_refused(house: House) -> None:
    await say(house)
    house.cloud.off_reason = "its api_key is not set"
    with pytest.raises(UpstreamFailed, match="`cloud` is off: its api_key is not set") as caught:
        await choose(house, "cloud")
    assert caught.value.status == 503


async def test_what_is_private_is_not_sent_elsewhere(house: House) -> None:
    await say(house, model="secret")
    await say(house)
    with pytest.raises(Forbidden) as caught:
        await choose(house, "cloud")
    assert (caught.value.status, caught.value.code) == (403, "private_conversation")
    assert house.conversation("c").route is None


async def test_a_model_that_is_gone_has_no_backends(house: House) -> None:
    await say(house)
    house.rows("UPDATE conversations SET model = 'old' RETURNING pk")
    with pytest.raises(BadRequest, match="is not in policies"):
        await choose(house, "cloud")


# -- explaining --------------------------------------------------------------------------------


async def test_every_way_is_told_and_what_speaks_against_it(house: House) -> None:
    await say(house)
    house.cloud.healthy = False
    told = await why(house, tags=frozenset({"cloud"}))
    assert told["choice"] == {"backend": "local", "policy": "small", "rule": "home"}
    assert (told["home"], told["route"], told["private"]) == ("local", None, False)
    ways = {way["rule"]: way for way in told["ways"]}
    assert list(ways)[:3] == ["route", "alias", "asked"]
    assert ways["asked"] == {
        "rule": "asked",
        "tier": "cloud",
        "misses": [],
        "blocked": "it cannot be used now",
        "holds": False,
        "chosen": False,
    }
    assert ways["alias"]["misses"] == ["model"]
    assert ways["home"]["holds"]
    assert [way["rule"] for way in told["ways"] if way["chosen"]] == ["home"]
    assert told["backends"][1] == {
        "backend": "cloud",
        "policy": "wide",
        "local": False,
        "usable": False,
    }
    (turn,) = told["turns"]
    assert (turn["rule"], turn["backend"], turn["state"]) == ("first-healthy", "local", "done")


async def test_explaining_changes_nothing(house: House) -> None:
    await choose_cloud(house)
    for _ in range(8):
        await say(house, "key " * 150)
    house.rows("UPDATE conversations SET route = 'local' RETURNING pk")
    tables = ("conversations", "chapters", "jobs", "folds", "attempts", "messages")
    before = [house.rows(f"SELECT * FROM {table}") for table in tables]
    told = await why(house)
    assert told["choice"]["rule"] == "route"
    assert [house.rows(f"SELECT * FROM {table}") for table in tables] == before


async def test_a_private_conversation_says_so(house: House) -> None:
    await say(house, model="secret")
    await say(house)
    told = await why(house)
    assert told["private"]
    blocked = {way["rule"]: way["blocked"] for way in told["ways"] if way["tier"] == "cloud"}
    assert blocked["asked"] == "the conversation is private"
