"""Requests that are no turns: passed through, kept apart, stored as figures."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.errors import ContextLengthExceeded, Forbidden
from gateway.flows.auxiliary import AuxiliaryReply, open_chat
from gateway.flows.incoming import prepare
from gateway.flows.turn import Turn
from gateway.store import transcript
from gateway.wire.json_text import dump_bytes, loads
from gateway.wire.requests import parse_chat
from policies.auxiliary import Auxiliary
from tests.gateway.house import POLICIES, House, Say, assistant, deltas, system, user

TITLE = Auxiliary("title", "marker")
GUESS = Auxiliary("title", "shape")
ASK = user("### Task:\nGive a title.\n<chat_history>\nUSER: hi\n</chat_history>")


async def open_it(
    house: House, *messages: Say, what: Auxiliary = TITLE, id: str | None = None, **body: Any
) -> AuxiliaryReply | Turn:
    whole = {"model": "foldgate", "messages": list(messages), **body}
    incoming = prepare(parse_chat(dump_bytes(whole)), owner="ann", conversation=id, auxiliary=what)
    house.clock.ms += 1_000
    return await open_chat(house.ctx, incoming, "r")


async def ask(house: House, *messages: Say, **more: Any) -> AuxiliaryReply:
    reply = await open_it(house, *messages, **more)
    assert isinstance(reply, AuxiliaryReply)
    await reply.complete()
    return reply


def kept(house: House) -> list[tuple[Any, ...]]:
    return house.rows(
        "SELECT kind, how, backend, state, finish_reason, error, conversation_pk"
        " FROM auxiliary_requests ORDER BY pk"
    )


async def test_it_is_passed_through_and_leaves_only_figures(house: House) -> None:
    reply = await ask(house, system("S"), ASK, temperature=0.1)
    (call,) = house.local.calls
    assert [loads(m) for m in call.messages] == [system("S"), ASK]
    assert (call.purpose, call.conversation, call.params) == (
        "auxiliary",
        None,
        {"temperature": 0.1},
    )
    assert kept(house) == [("title", "marker", "local", "done", "stop", None, None)]
    for table in ("conversations", "messages", "attempts", "jobs", "system_texts"):
        assert house.one(f"SELECT count(*) FROM {table}") == 0
    assert reply.link is None
    assert house.ctx.busy == {"local": 0}


async def test_a_named_conversation_is_linked_and_untouched(house: House) -> None:
    said = await house.say("hi", id="c")
    before = house.rows("SELECT * FROM conversations"), house.rows("SELECT * FROM messages")
    reply = await ask(house, ASK, id="c")
    assert reply.link is not None and reply.link.id == said.conversation
    assert kept(house)[0][-1] == house.one("SELECT pk FROM conversations")
    assert (
        house.rows("SELECT * FROM conversations"),
        house.rows("SELECT * FROM messages"),
    ) == before
    after = await house.say("go on", id="c")
    assert after.prompt == [user("hi"), assistant("Reply 1."), user("go on")]


async def test_an_unknown_name_begins_nothing(house: House) -> None:
    reply = await ask(house, ASK, id="unknown")
    assert reply.link is None
    assert house.one("SELECT count(*) FROM conversations") == 0


@pytest.mark.parametrize("said", [["hi"], []], ids=["known", "new"])
async def test_a_mere_shape_is_a_turn_where_a_conversation_is_named(
    house: House, said: list[str]
) -> None:
    """A newest-only client never sends a message twice: what is not stored is lost."""
    for text in said:
        await house.say(text, id="c")
    turn = await open_it(house, ASK, what=GUESS, id="c")
    assert isinstance(turn, Turn)
    await turn.complete()
    assert house.told("c")[-2] == ("user", ASK["content"])
    assert isinstance(await open_it(house, ASK, what=GUESS), AuxiliaryReply)


async def test_it_is_streamed_where_the_client_wants_a_stream(house: House) -> None:
    house.local.answers = [deltas("A title", usage={"prompt_tokens": 9, "completion_tokens": 2})]
    reply = await open_it(house, ASK, stream=True)
    said = ""
    async for chunk in reply.stream():
        for choice in chunk.parsed["choices"]:
            said += choice["delta"].get("content") or ""
    assert said == "A title"
    assert house.rows("SELECT prompt_tokens, completion_tokens FROM auxiliary_requests") == [(9, 2)]


async def test_an_answer_that_begins_lets_others_come_to_a_half_open_backend(
    house: House,
) -> None:
    """However long it is."""
    circuits = house.ctx.circuits
    for _ in range(5):
        with suppress(UpstreamFault), circuits.call("local"):
            raise UpstreamFault(FaultKind.SERVER, "it failed")
    house.clock.ms += 15_000
    reply = await open_it(house, ASK, stream=True)
    stream = reply.stream()
    assert circuits.state("local") == "half-open"
    await anext(stream)
    assert (circuits.state("local"), circuits.is_passable("local")) == ("closed", True)
    await stream.aclose()


async def test_a_client_that_leaves_ends_the_call(house: House) -> None:
    reply = await open_it(house, ASK, stream=True)
    stream = reply.stream()
    await anext(stream)
    await stream.aclose()
    assert kept(house) == [("title", "marker", "local", "cancelled", None, "the client left", None)]
    assert house.local.closed == 1


async def test_another_tier_serves_where_the_first_fails(house: House) -> None:
    house.local.answers = [UpstreamFault(FaultKind.UNAVAILABLE, "gone")] * 3
    reply = await ask(house, ASK, model="both")
    assert reply.backend.name == "cloud"
    assert [row[2:4] for row in kept(house)] == [("local", "failed"), ("cloud", "done")]


async def test_a_refusal_is_told(house: House) -> None:
    house.local.answers = [UpstreamFault(FaultKind.REFUSED, "no")]
    with pytest.raises(UpstreamFault):
        await ask(house, ASK, model="both")
    assert kept(house)[0][3:6] == ("failed", None, "refused")


async def test_a_stream_that_broke_off_is_not_begun_again(house: House) -> None:
    broken = [
        *deltas("A long title")[:2],
        UpstreamFault(FaultKind.INTERRUPTED, "cut", partial=True),
    ]
    house.local.answers = [broken]
    reply = await open_it(house, ASK, stream=True)
    with pytest.raises(UpstreamFault):
        async for _ in reply.stream():
            pass
    assert len(house.local.calls) == 1
    assert kept(house)[0][3:6] == ("partial", None, "interrupted")


async def test_what_no_window_holds_is_told_and_stored_nowhere(house: House) -> None:
    house.local.window_tokens = 2_000
    house.local.counts = lambda messages: 5_000
    with pytest.raises(ContextLengthExceeded):
        await ask(house, user("word " * 4_000))
    assert kept(house) == []
    reply = await ask(house, user("word " * 4_000), model="both")
    assert reply.backend.name == "cloud"


async def test_a_reply_is_cut_to_the_room_there_is_and_the_client_told(house: House) -> None:
    house.local.window_tokens = 3_000
    reply = await ask(house, ASK, max_tokens=4_000)
    assert "max_tokens" in reply.dropped
    assert house.local.calls[0].max_tokens < 3_000


RULED = (
    POLICIES
    + "  ruled:\n    tiers: [{backend: cloud, policy: wide}, {backend: local, policy: small}]\n"
    + "    rules: [{name: work, when: {tag: work}, tier: local}]\n"
)


async def test_it_goes_where_rules_and_its_conversations_route_say(tmp_path: Path) -> None:
    """What somebody keeps on one backend does not reach another by way of a title."""
    house = House(tmp_path, RULED)
    assert (await ask(house, ASK, model="ruled")).backend.name == "cloud"
    tagged = await ask(house, ASK, model="ruled", metadata={"tags": ["work"]})
    assert tagged.backend.name == "local"
    await house.say("hi", id="c", model="ruled")
    pk = house.conversation("c").pk
    house.store.writing(transcript.route_conversation, pk, "local")
    assert (await ask(house, ASK, id="c", model="ruled")).backend.name == "local"
    house.store.close()


PRIVATE = (
    POLICIES
    + "  secret: {tiers: [{backend: local, policy: small}], private: true}\n"
    + "  only-cloud: {tiers: [{backend: cloud, policy: wide}]}\n"
)


async def test_a_private_conversations_requests_stay_on_this_machine(tmp_path: Path) -> None:
    house = House(tmp_path, PRIVATE)
    house.cloud.local = False
    await house.say("hi", id="c", model="secret")
    house.local.healthy = False
    reply = await ask(house, ASK, id="c", model="both")
    assert reply.backend.name == "local"
    with pytest.raises(Forbidden) as told:
        await ask(house, ASK, id="c", model="only-cloud")
    assert told.value.code == "private_conversation"
    assert house.cloud.calls == []
    house.store.close()


@pytest.mark.parametrize("trimmed", [0, 2])
async def test_a_private_history_stays_too_where_no_conversation_is_named(
    tmp_path: Path, trimmed: int
) -> None:
    """A quiet prompt behind the whole history, or its end, from a client without ids."""
    house = House(tmp_path, PRIVATE)
    house.cloud.local = False
    told = [user("我的秘密是 X")]
    told.append(assistant((await house.say(*told, model="secret")).text))
    told.append(user("Nobody may know."))
    told.append(assistant((await house.say(*told, model="secret")).text))
    asked = [*told[trimmed:], user("[Pause your roleplay. Summarize the most important facts.]")]
    with pytest.raises(Forbidden):
        await ask(house, *asked, model="only-cloud")
    assert house.cloud.calls == []
    assert (await ask(house, *asked, model="both")).backend.name == "local"
    await ask(house, user("hi"), assistant("Another reply."), ASK, model="only-cloud")
    house.store.close()


async def test_a_private_reply_told_about_a_public_conversation_stays(tmp_path: Path) -> None:
    house = House(tmp_path, PRIVATE)
    house.cloud.local = False
    secret = [user("我的秘密是 X")]
    house.local.answers.append("Ich sage es niemandem, versprochen.")
    secret.append(assistant((await house.say(*secret, id="pv", model="secret")).text))
    own = [user("hi"), assistant((await house.say("hi", id="c", model="only-cloud")).text)]
    calls = len(house.cloud.calls)
    with pytest.raises(Forbidden):
        await ask(house, *own, *secret, ASK, id="c", model="only-cloud")
    assert len(house.cloud.calls) == calls
    assert (await ask(house, *own, *secret, ASK, id="c", model="both")).backend.name == "local"
    assert (await ask(house, *own, ASK, id="c", model="only-cloud")).backend.name == "cloud"
    house.store.close()


async def test_system_texts_alone_are_a_users_message_where_there_must_be_one(
    tmp_path: Path,
) -> None:
    strict = POLICIES.replace(
        "local: {kind: scripted}", "local: {kind: scripted, strict_roles: true}"
    )
    house = House(tmp_path, strict)
    await ask(house, system("Be brief."), system("Provide a title."))
    assert [loads(m) for m in house.local.seen[-1]] == [
        system("Be brief."),
        user("Provide a title."),
    ]
    house.store.close()
