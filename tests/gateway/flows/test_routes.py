"""Which tier a turn goes to, seen from the rows it leaves and from who was called."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.errors import Forbidden, GatewayError, NotFound, UpstreamFailed
from gateway.flows import routes
from gateway.flows.errands import Errands
from gateway.flows.offers import Demand, find_offer
from gateway.flows.rounds import Counts
from gateway.flows.routes import Asker, order_aside
from gateway.store import profile_edits, transcript
from gateway.store.origins import find_origin
from tests.gateway.house import House, Said, assistant, call_of, tool, user

POLICIES = """
version: 1
backends:
  local: {kind: scripted}
  cloud: {kind: litellm, model: deepseek/x, api_key: k}
policies:
  small:
    view: {start: 3000, ceiling: 4000, headroom: 1200, keep: 600}
    chapters: {split: 1500, length: 100, stack: 600}
    gist: {length: 150}
  wide:
    view: {start: 100000, ceiling: 120000, headroom: 20000, keep: 50000}
    summaries: {backends: [cloud, local]}
models:
  talk:
    aliases: [chat, talk-by-night]
    tiers: [{backend: local, policy: small}, {backend: cloud, policy: wide}]
    rules:
      - {name: alias, when: {model: chat}, tier: cloud}
      - {name: asked, when: {tag: [cloud, 雲]}, tier: cloud}
      - {name: mood, when: {header: {X-Mood: dark}}, tier: cloud}
      - {name: pictures, when: {images: true}, tier: cloud}
      - {name: night, when: {model: talk-by-night, hours: 22:00-06:00, days: [fri]}, tier: cloud}
      - {name: long, when: {owner: long, chars: {over: 1000}}, tier: cloud}
      - {name: tools, when: {owner: tooled, tools: true}, tier: cloud}
      - {name: spare, when: {owner: spared, unhealthy: local}, tier: cloud}
  plain: {tiers: [{backend: local, policy: small}, {backend: cloud, policy: wide}]}
  secret: {tiers: [{backend: local, policy: small}], private: true}
  away: {tiers: [{backend: cloud, policy: wide}]}
  here: {tiers: [{backend: local, policy: small}]}
"""
OUT = UpstreamFault(FaultKind.UNAVAILABLE, "nobody there")
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


@pytest.fixture
def house(tmp_path: Path) -> House:
    return build(tmp_path)


def build(folder: Path, rule: str = "") -> House:
    """rule: one more, before the others."""
    more = f"    rules:\n      - {rule}\n" if rule else "    rules:\n"
    house = House(folder, POLICIES.replace("    rules:\n", more))
    house.cloud.local = False
    return house


def served(said: Said) -> tuple[str, str]:
    prepared = said.turn.prepared
    return prepared.backend.name, prepared.begun.rule


def home(house: House) -> str | None:
    return house.conversation("c").backend


async def say(house: House, *messages: Any, model: str = "talk", **more: Any) -> tuple[str, str]:
    return served(await house.say(*(messages or ("¿y ahora?",)), id="c", model=model, **more))


# -- rules -------------------------------------------------------------------------------------


async def test_a_rule_decides_and_is_told_and_stored(house: House) -> None:
    assert await say(house) == ("local", "first-healthy")
    assert home(house) == "local"
    assert await say(house, metadata={"tags": ["x", "雲"]}) == ("cloud", "asked")
    assert home(house) == "cloud"
    assert await say(house) == ("cloud", "home")
    assert house.rows("SELECT rule, backend FROM attempts ORDER BY pk") == [
        ("first-healthy", "local"),
        ("asked", "cloud"),
        ("home", "cloud"),
    ]


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        ({"metadata": {"tag": "cloud"}}, "asked"),
        ({"metadata": {"tags": "work, cloud"}}, "asked"),
        ({"metadata": {"tags": ["work", "cloud "]}}, "asked"),
        ({"metadata": {"tags": [], "tag": None}}, "first-healthy"),
        ({"tags": {"cloud"}}, "asked"),
        ({"headers": {"x-mood": "dark"}}, "mood"),
        ({"headers": {"x-mood": "bright"}}, "first-healthy"),
        ({"model": "chat"}, "alias"),
        ({"owner": "long"}, "first-healthy"),
    ],
)
async def test_what_a_request_says(house: House, more: dict[str, Any], rule: str) -> None:
    assert (await say(house, **more))[1] == rule


async def test_an_alias_is_its_model_and_an_unknown_name_is_none(house: House) -> None:
    await say(house, model="chat")
    assert house.conversation("c").model == "chat"
    with pytest.raises(
        NotFound, match="Available: away, chat, here, plain, secret, talk, talk-by-night"
    ):
        await say(house, model="chatt")


async def test_a_picture_decides_while_the_view_holds_it_and_no_longer(house: House) -> None:
    """E18. The rule's tier has the long view: there the picture stands for 100,000 characters."""
    assert await say(house) == ("local", "first-healthy")
    picture = user([IMAGE, {"type": "text", "text": "что это?"}])
    assert await say(house, picture) == ("cloud", "pictures")
    assert home(house) == "local"  # a picture pins nobody
    assert await say(house) == ("cloud", "pictures")
    house.rows("UPDATE messages SET cum_images = 0 RETURNING pk")  # as if it had never been sent
    assert await say(house) == ("local", "home")


async def test_a_picture_that_this_turn_folds_away_pins_nobody(tmp_path: Path) -> None:
    """3,000 for the picture and 408 a message: the third of these comes to the ceiling of 4,000.
    From then on only the long view holds the picture, and the next rule is asked."""
    house = build(tmp_path, "{name: seen, when: {images: true}, tier: local}")
    assert (await say(house, user([IMAGE, {"type": "text", "text": "что это?"}])))[1] == "seen"
    rules = [(await say(house, f"{number}" + "字" * 399))[1] for number in range(5)]
    assert rules == ["seen", "seen", "pictures", "pictures", "pictures"]
    assert len(house.local.seen) == 3
    assert all(any(b"image_url" in message for message in call) for call in house.local.seen)
    house.store.close()


async def test_a_view_that_opens_with_a_profile_holds_all_that_was_said(tmp_path: Path) -> None:
    house = build(tmp_path, "{name: seen, when: {images: true}, tier: local}")

    def tell(connection: Any) -> None:
        pk = transcript.ensure_owner(connection, "ann", "", house.clock.ms)
        profile_edits.add_fact(connection, pk, "Lives in Oslo.", None, house.clock.ms)

    house.store.writing(tell)
    assert (await say(house, "привет"))[1] == "first-healthy"
    assert [kind for _, _, _, kind, _ in house.folds()] == ["opening"]
    picture = user([IMAGE, {"type": "text", "text": "что это?"}])
    assert (await say(house, picture))[1] == "seen"
    house.store.close()


async def test_no_tail_is_read_for_pictures_that_no_view_could_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten messages of 408 and as many replies lie above the view's start of 3,000."""
    house = build(tmp_path, "{name: seen, when: {images: true}, tier: local}")
    read: list[int] = []
    true = routes.load_state

    def count(connection: Any, site: Any, fold: Any) -> Any:
        read.append(site.head.depth)
        return true(connection, site, fold)

    monkeypatch.setattr(routes, "load_state", count)
    for number in range(10):
        assert (await say(house, f"{number}" + "字" * 399))[1] in ("first-healthy", "home")
    assert read == []
    picture = user([IMAGE, {"type": "text", "text": "что это?"}])
    assert await say(house, picture) == ("local", "seen")
    assert len(read) == 1  # where there is one, it must be known where the view will begin
    house.store.close()


@pytest.fixture
def tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("utc", "rule"),
    [
        ("2026-12-04 12:59", "first-healthy"),  # Friday 21:59 in Tokyo
        ("2026-12-04 13:00", "night"),  # 22:00
        ("2026-12-04 14:59", "night"),  # 23:59
        ("2026-12-04 15:00", "first-healthy"),  # Saturday 00:00
        ("2026-12-03 20:59", "night"),  # Friday 05:59
        ("2026-12-03 21:00", "first-healthy"),  # 06:00
    ],
)
@pytest.mark.usefixtures("tokyo")
async def test_hours_and_days_are_those_of_this_machine(house: House, utc: str, rule: str) -> None:
    moment = datetime.strptime(utc, "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
    house.clock.ms = int(moment.timestamp() * 1000)
    assert (await say(house, model="talk-by-night"))[1] == rule


async def test_the_whole_conversation_is_long_or_not(house: House) -> None:
    # 400 + 8, 816 …: the third message crosses 1,000
    for expected in ("first-healthy", "home", "long"):
        assert (await say(house, "長" * 400, owner="long"))[1] == expected


async def test_tools_in_the_view_or_on_offer(house: House) -> None:
    assert (await say(house, owner="tooled"))[1] == "first-healthy"
    offered = [{"type": "function", "function": {"name": "look"}}]
    assert await say(house, owner="tooled", tools=offered) == ("cloud", "tools")
    house.cloud.answers.append("look")
    call = assistant(None, tool_calls=[call_of("t1")])
    history = [user("1"), call, tool("t1", "a ship"), assistant("A ship."), user("and now?")]
    said = await house.say(*history, id="d", owner="tooled", model="talk")
    assert served(said) == ("cloud", "tools")


async def test_a_tools_result_goes_to_the_model_that_called_it(house: House) -> None:
    call = delta_call()
    house.local.answers.append(call)
    assert await say(house, "look") == ("local", "first-healthy")
    said = await say(house, tool("t1", "a ship"), metadata={"tag": "cloud"})
    assert said == ("local", "home")
    assert await say(house, "thanks") == ("cloud", "home")  # it was sent there, and goes now


def delta_call() -> list[dict[str, Any]]:
    said = {"role": "assistant", "content": None, "tool_calls": [{"index": 0, **call_of("t1")}]}
    return [{"choices": [{"index": 0, "delta": said, "finish_reason": "tool_calls"}]}]


# -- health ------------------------------------------------------------------------------------


async def test_an_outage_moves_nobody_for_good(house: House) -> None:
    assert await say(house, model="plain") == ("local", "first-healthy")
    house.local.healthy = False
    assert await say(house, model="plain") == ("cloud", "first-healthy")
    assert home(house) == "local"
    house.local.healthy = True
    assert await say(house, model="plain") == ("local", "home")


async def test_a_conversation_begun_in_an_outage_lives_where_it_was_begun(house: House) -> None:
    house.local.healthy = False
    assert await say(house, model="plain") == ("cloud", "first-healthy")
    house.local.healthy = True
    assert await say(house, model="plain") == ("cloud", "home")


async def test_another_tier_after_a_failure_is_a_fallback_and_no_home(house: House) -> None:
    await say(house, model="plain")
    house.local.answers.append(OUT)
    assert await say(house, model="plain") == ("cloud", "fallback")
    assert home(house) == "local"
    assert house.rows("SELECT rule, state FROM attempts ORDER BY pk") == [
        ("first-healthy", "done"),
        ("home", "failed"),
        ("fallback", "done"),
    ]


async def test_where_all_are_down_the_first_way_is_tried(house: House) -> None:
    house.local.healthy = house.cloud.healthy = False
    house.cloud.answers.append(OUT)
    with pytest.raises(UpstreamFault):
        await say(house, metadata={"tag": "cloud"})
    assert house.rows("SELECT rule, backend, state FROM attempts") == [("asked", "cloud", "failed")]
    assert home(house) is None


async def test_a_rule_may_wait_for_an_outage(house: House) -> None:
    assert (await say(house, owner="spared"))[1] == "first-healthy"
    house.local.healthy = False
    assert await say(house, owner="spared") == ("cloud", "spare")


async def test_a_circuit_that_is_open_counts_as_down(house: House) -> None:
    house.local.answers += [OUT] * 5
    for _ in range(5):
        assert await say(house, model="plain") == ("cloud", "fallback")
    calls = len(house.local.calls)
    assert await say(house, model="plain") == ("cloud", "first-healthy")
    assert len(house.local.calls) == calls


async def test_another_model_keeps_a_home_that_it_has_and_finds_another_where_not(
    house: House,
) -> None:
    await say(house, metadata={"tag": "cloud"})
    assert await say(house, model="plain") == ("cloud", "home")
    assert await say(house, model="secret") == ("local", "first-healthy")


async def test_a_conversation_of_before_there_were_homes(house: House) -> None:
    await say(house, metadata={"tag": "cloud"})
    house.rows("UPDATE conversations SET backend = NULL RETURNING pk")
    assert await say(house) == ("cloud", "home")
    assert home(house) == "cloud"


# -- private -----------------------------------------------------------------------------------


async def test_what_was_once_private_stays_on_this_machine(house: House) -> None:
    await say(house, "только между нами", model="secret")
    assert house.conversation("c").private
    for more in ({}, {"metadata": {"tag": "cloud"}}, {"model": "plain"}, {"model": "chat"}):
        assert (await say(house, **more))[0] == "local"
    house.local.answers += [OUT] * 5
    with pytest.raises(UpstreamFault):
        await say(house, model="plain")
    house.local.healthy = False
    with pytest.raises(UpstreamFault):
        await say(house, model="plain")
    assert house.cloud.calls == []


async def test_a_model_without_a_local_tier_is_refused_and_nothing_is_stored(house: House) -> None:
    await say(house, model="secret")
    before = house.told("c")
    with pytest.raises(Forbidden) as caught:
        await say(house, model="away")
    assert caught.value.code == "private_conversation"
    assert caught.value.status == 403
    assert "`away` has no backend" in caught.value.message
    assert house.told("c") == before
    assert house.conversation("c").model == "secret"


async def test_a_local_tier_that_is_off_is_no_reason_to_leave(house: House) -> None:
    """H16: an unresolvable private route answers 503, never from the cloud."""
    await say(house, model="secret")
    house.local.off_reason = "it is being moved"
    with pytest.raises(UpstreamFailed) as caught:
        await say(house, model="plain")
    assert (caught.value.status, caught.value.code) == (503, "no_backend")
    assert house.cloud.calls == []


async def test_a_conversation_that_becomes_private_leaves_the_cloud(house: House) -> None:
    await say(house, metadata={"tag": "cloud"})
    await say(house, model="secret")
    assert await say(house) == ("local", "home")


async def test_a_private_conversation_is_summarized_on_this_machine(house: House) -> None:
    """Also under a policy that would ask the cloud first, and after a model was renamed."""
    await say(house, model="plain")
    pk = house.conversation("c").pk
    errands = Errands(house.ctx, Counts(), None, None)  # type: ignore[arg-type]

    def asked() -> list[str]:
        origin = house.store.reading(find_origin, pk)
        assert origin is not None
        policy = house.ctx.policy("wide")
        return [backend.name for backend in errands._summarizers(policy, origin)]

    assert asked() == ["cloud", "local"]
    await say(house, model="secret")
    await say(house, model="plain")
    assert asked() == ["local"]


# -- requests that are no turns -----------------------------------------------------------------


async def aside(house: House, model: str, **asked: Any) -> tuple[str, list[str]]:
    """(rule, backends in order) for a request beside the conversation c, where there is one."""
    offer = await find_offer(house.ctx, model, Demand())
    known = house.rows("SELECT pk FROM conversations")
    asker = Asker("ann", "", {}, frozenset(asked.get("tags", ())))
    conversation = house.conversation("c") if known else None
    rule, order = order_aside(asker, offer, conversation, asked.get("chars", 0))
    return rule, [setting.backend for setting in order]


async def test_what_is_no_turn_goes_by_the_same_order(house: House) -> None:
    assert await aside(house, "talk") == ("first-healthy", ["local", "cloud"])
    assert await aside(house, "talk", tags=["cloud"]) == ("asked", ["cloud", "local"])
    await say(house, metadata={"tag": "cloud"})
    assert await aside(house, "plain") == ("home", ["cloud", "local"])
    house.cloud.healthy = False
    assert await aside(house, "plain") == ("first-healthy", ["local", "cloud"])


async def test_what_is_no_turn_is_as_private_as_its_conversation(house: House) -> None:
    assert await aside(house, "secret") == ("first-healthy", ["local"])
    await say(house, model="secret")
    assert await aside(house, "talk", tags=["cloud"]) == ("home", ["local"])
    with pytest.raises(Forbidden):
        await aside(house, "away")


ACTS = st.lists(
    st.tuples(
        st.sampled_from(("talk", "chat", "plain", "away", "secret", "talk-by-night")),
        st.sampled_from(("", "cloud", "雲")),
        st.sampled_from(("short", "длинно " * 150, "絵")),
        st.booleans(),  # the local model answers
        st.booleans(),  # it seems healthy
        st.sampled_from((None, "cloud", "local")),  # somebody's route
    ),
    max_size=8,
)


@given(acts=ACTS, before=ACTS)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_law_nothing_private_reaches_the_cloud(
    tmp_path_factory: pytest.TempPathFactory, acts: list[Any], before: list[Any]
) -> None:
    """By no tier, rule, route, fallback, count or summary, whatever was before."""
    house = build(tmp_path_factory.mktemp("house"))
    counted: list[int] = []

    def count(messages: Any) -> None:
        counted.append(len(messages))

    house.cloud.counts = count
    house.cloud.window_tokens = house.local.window_tokens = 6_000
    asyncio.run(play(house, before))
    asyncio.run(play(house, [("secret", "", "nur hier", True, True, None)]))
    calls, counts = len(house.cloud.calls), len(counted)
    asyncio.run(play(house, acts))
    assert house.conversation("c").private
    assert (len(house.cloud.calls), len(counted)) == (calls, counts)
    errands = Errands(house.ctx, Counts(), None, None)  # type: ignore[arg-type]
    origin = house.store.reading(find_origin, house.conversation("c").pk)
    assert origin is not None
    for policy in house.ctx.policies.file.policies.values():
        assert {b.name for b in errands._summarizers(policy, origin)} <= {"local"}
    house.store.close()


async def play(house: House, acts: list[Any]) -> None:
    for model, tag, text, answers, healthy, route in acts:
        if house.rows("SELECT pk FROM conversations"):
            house.rows("UPDATE conversations SET route = :r RETURNING pk", r=route)
        house.local.answers[:] = [] if answers else [OUT] * 3
        house.local.healthy = healthy
        content = [IMAGE] if text == "絵" else text
        with suppress(GatewayError):
            await house.say(
                user(content), id="c", model=model, metadata={"tag": tag}, retried=False
            )
