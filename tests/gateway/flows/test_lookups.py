"""Who is asked what before a turn, of whose conversation, and what a failing source costs."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.backends.lookups import Found
from gateway.flows.incoming import Incoming, prepare
from gateway.flows.lookups import NOTHING, Answers
from gateway.flows.offers import demand_of, find_offer
from gateway.flows.prospects import consult
from gateway.wire.json_text import dump_bytes
from gateway.wire.requests import parse_chat
from tests.gateway.house import House, Say, assistant, tool, user
from tests.gateway.sources import Source

POLICIES = """
version: 1
backends:
  local: {{kind: scripted}}
  cloud: {{kind: scripted}}
policies:
  near: {{recall: {{lookups: [crm, web]}}}}
  plain: {{}}
lookups:
  crm: {{url: "{crm}", local: true, timeout: 100ms}}
  web: {{url: "{web}", local: false, timeout: 100ms}}
  idle: {{url: "{web}"}}
models:
  foldgate: {{tiers: [{{backend: local, policy: near}}]}}
  both: {{tiers: [{{backend: local, policy: plain}}, {{backend: cloud, policy: near}}]}}
  none: {{tiers: [{{backend: local, policy: plain}}]}}
  secret: {{tiers: [{{backend: local, policy: near}}], private: true}}
"""


class Town:
    """A house with two sources: `crm` on this machine, `web` off it."""

    def __init__(self, folder: Path, crm: Source, web: Source) -> None:
        self.crm, self.web = crm, web
        self.house = House(folder, POLICIES.format(crm=crm.url, web=web.url))

    async def ask(self, *messages: Say, model: str = "foldgate", **more: Any) -> Answers:
        ctx, incoming = self.house.ctx, incoming_of(*messages, model=model, **more)
        return await consult(ctx, incoming, await find_offer(ctx, model, demand_of(incoming)))

    @property
    def heard(self) -> tuple[int, int]:
        return len(self.crm.questions), len(self.web.questions)

    def counted(self, name: str, outcome: str) -> float | None:
        labels = {"lookup": name, "outcome": outcome}
        return self.house.ctx.meters.registry.get_sample_value("foldgate_lookups_total", labels)


def incoming_of(*messages: Say, model: str, id: str | None = None, **more: Any) -> Incoming:
    body = {"model": model, "messages": list(messages)}
    return prepare(parse_chat(dump_bytes(body)), owner="ann", conversation=id, **more)


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with Source({"text": "from the crm"}) as crm, Source({"text": "from the web"}) as web:
        town = Town(tmp_path, crm, web)
        yield town
        await town.house.ctx.lookups.aclose()
        town.house.store.close()


async def test_every_source_that_the_policy_names_is_asked_the_newest_message(town: Town) -> None:
    history = [user("Hi"), assistant("Hello"), user([{"type": "text", "text": "¿Dónde?"}])]
    answers = await town.ask(*history, id="chat", user="maria")
    assert answers == Answers({"crm": (Found("from the crm"),), "web": (Found("from the web"),)})
    question = {"query": "¿Dónde?", "conversation": None, "owner": "ann", "user": "maria"}
    assert town.crm.questions == town.web.questions == [question]


async def test_a_known_conversation_is_told_by_its_own_id(town: Town) -> None:
    said = await town.house.say("Hi", id="chat", model="none")
    await town.ask(user("Hi"), assistant(said.text), user("And now?"), id="chat")
    assert town.crm.questions[0]["conversation"] == said.conversation
    assert said.conversation != "chat"


async def test_nobody_is_asked_where_no_policy_names_a_source(town: Town) -> None:
    assert await town.ask(user("Hi"), model="none") is NOTHING
    assert town.heard == (0, 0)


async def test_only_what_the_serving_policy_names_is_asked(town: Town) -> None:
    """The second tier asks both; while the first serves, they hear nothing."""
    assert await town.ask(user("Hi"), model="both") is NOTHING
    assert town.heard == (0, 0)
    town.house.local.healthy = False
    assert (await town.ask(user("Hi"), model="both")).notes.keys() == {"crm", "web"}


async def test_nobody_is_asked_again_for_a_retry_or_a_swipe(town: Town) -> None:
    said = await town.house.say("Hi", id="chat")
    history = [user("Hi"), assistant(said.text), user("So?")]
    await town.house.say(*history, id="chat")
    assert town.heard == (2, 2)
    await town.house.say(*history, id="chat")
    await town.house.say(*history, id="chat", retried=True)
    await town.house.say(*history)
    assert town.heard == (2, 2)
    await town.house.say(*history[:-1], user("Then?"), id="chat")
    assert town.heard == (3, 3)


async def test_finding_out_whom_to_ask_writes_nothing(town: Town) -> None:
    said = await town.house.say("Hi", id="chat", model="none")
    tables = ("owners", "conversations", "messages", "attempts", "system_texts", "folds", "jobs")
    before = [town.house.rows(f"SELECT * FROM {table}") for table in tables]
    await town.ask(user("Hi"), assistant(said.text), user("So?"), id="chat")
    await town.ask(user("Hi"), id="another")
    assert [town.house.rows(f"SELECT * FROM {table}") for table in tables] == before


async def test_nobody_is_asked_about_a_tool_s_result(town: Town) -> None:
    assert await town.ask(user("Hi"), tool("c1", "secret keys")) is NOTHING
    assert town.heard == (0, 0)


SAID = {
    "timeout": "the lookup crm failed: it gave no whole answer within 0.1 s. Turns go on without "
    "its notes. Look whether it runs, or raise lookups.crm.timeout",
    "answer": 'the lookup crm failed: its answer is not {"notes": [{"text": "…"}]}, of 1,048,576 '
    "bytes at most. Turns go on without its notes. Look at what stands behind lookups.crm.url",
    "status": "the lookup crm failed: it answered with the status 503. Turns go on without its "
    "notes. Look at what it logged, and at lookups.crm.url and lookups.crm.headers",
    "unreachable": "the lookup crm failed: no connection could be made. Turns go on without its "
    "notes. Look whether it runs, and at lookups.crm.url",
}


@pytest.mark.parametrize(
    ("how", "status", "outcome"),
    [("silent", 200, "timeout"), ("broken", 200, "answer"), ("status", 503, "status")],
)
async def test_a_source_that_fails_costs_its_own_notes_alone(
    town: Town, how: str, status: int, outcome: str, caplog: pytest.LogCaptureFixture
) -> None:
    town.crm.silent, town.crm.status = how == "silent", status
    if how == "broken":
        town.crm.answer = b"geheim"
    with caplog.at_level(logging.INFO):
        answers = await town.ask(user("Where is the treasure?"))
    assert answers == Answers({"web": (Found("from the web"),)}, ("crm",))
    assert (town.counted("crm", outcome), town.counted("web", "done")) == (1, 1)
    assert SAID[outcome] in caplog.text
    assert "treasure" not in caplog.text
    assert "geheim" not in caplog.text


async def test_a_source_that_is_down_is_told_of_once(
    town: Town, caplog: pytest.LogCaptureFixture
) -> None:
    """And when it fails in another way, and when it answers again; the meters count every one."""
    caplog.set_level(logging.INFO)

    async def hear() -> list[tuple[str, str]]:
        caplog.clear()
        await town.ask(user("Where is the treasure?"))
        own = [record for record in caplog.records if record.name == "foldgate.turn"]
        return [(record.levelname, record.getMessage()) for record in own]

    town.crm.status = 503
    assert await hear() == [("WARNING", SAID["status"])]
    assert [await hear() for _ in range(3)] == [[], [], []]
    town.crm.silent = True
    assert await hear() == [("WARNING", SAID["timeout"])]
    assert await hear() == []
    town.web.status = 404
    assert [text.replace("web", "crm") for _, text in await hear()] == [
        SAID["status"].replace("503", "404")
    ]
    town.crm.silent, town.crm.status = False, 200
    assert await hear() == [("INFO", "the lookup crm answers again, after 7 questions that failed")]
    assert await hear() == []
    counted = {outcome: town.counted("crm", outcome) for outcome in ("status", "timeout", "done")}
    assert counted == {"status": 4, "timeout": 3, "done": 2}


async def test_a_source_that_nobody_serves_is_named(
    town: Town, caplog: pytest.LogCaptureFixture
) -> None:
    await town.crm.__aexit__()
    await town.ask(user("Where is the treasure?"))
    assert SAID["unreachable"] in caplog.text


async def test_an_empty_answer_is_no_failure(town: Town) -> None:
    town.crm.answer = town.web.answer = {"notes": []}
    assert await town.ask(user("Hi")) == NOTHING
    assert town.counted("crm", "done") == 1


# -- what is private -----------------------------------------------------------------------------


async def confide(town: Town, id: str = "pv") -> list[Say]:
    told = [user("Only between us.")]
    town.house.local.answers.append("The key lies under the third stone.")
    said = await town.house.say(*told, id=id, model="secret")
    town.crm.questions.clear()
    town.web.questions.clear()
    return [*told, assistant(said.text)]


async def test_a_private_model_asks_this_machine_alone(town: Town) -> None:
    answers = await town.ask(user("Hi"), model="secret")
    assert answers.notes.keys() == {"crm"}
    assert town.heard == (1, 0)


async def test_a_conversation_that_was_private_asks_this_machine_alone(town: Town) -> None:
    told = await confide(town)
    await town.ask(*told, user("And?"), id="pv")
    assert town.heard == (1, 0)


@pytest.mark.parametrize("id", ["clone", None])
async def test_so_does_a_clone_of_it_under_any_name(town: Town, id: str | None) -> None:
    told = await confide(town)
    await town.ask(*told, user("And?"), id=id)
    assert town.heard == (1, 0)


async def test_others_of_the_same_owner_ask_everybody(town: Town) -> None:
    await confide(town)
    await town.house.say("Good morning, everybody.", id="open", model="none")
    await town.ask(user("Good morning, everybody."), assistant("Reply 2."), user("So?"), id="open")
    await town.ask(user("a new one"), id="new")
    await town.ask(user("a new one"))
    await town.ask(user("a"), assistant("b"), user("c"))
    assert town.heard == (4, 4)


@pytest.mark.parametrize(
    "refusal",
    [
        "I'm sorry, but I can't help with that request.",
        "申し訳ありませんが、そのご要望にはお応えできません。",
        "抱歉，我无法协助处理这个请求。",
    ],
)
async def test_a_source_s_refusal_is_no_note(town: Town, refusal: str) -> None:
    town.crm.answer = {"notes": [{"text": refusal}, {"text": "Mara cannot eat nuts."}]}
    answers = await town.ask(user("Hi"))
    assert answers.notes["crm"] == (Found("Mara cannot eat nuts."),)
    assert town.counted("crm", "declined") == 1 and not answers.failed
