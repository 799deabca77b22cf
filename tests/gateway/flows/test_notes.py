"""What is recalled beside a question: found once, kept until the next fold, within its budgets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.flows.prefill import Newest, foresee_prompt
from gateway.flows.prefixes import Habits
from gateway.prompts.notes import own_words
from gateway.store import search, transcript
from tests.gateway.house import House, Said, Say, assistant, tool, user
from tests.gateway.seeds import extend
from tests.gateway.sources import Source

SMALL = """
    view: {start: 6000, ceiling: 8000, headroom: 3000, keep: 1000}
    chapters: {split: 3000, length: 100, stack: 600}
    gist: {length: 150}
"""
POLICIES = f"""
version: 1
backends:
  local: {{kind: scripted}}
  cloud: {{kind: scripted}}
policies:
  small: {SMALL}
  other: {SMALL}
  silent: {SMALL}
    recall: {{budget: 0}}
  wide:
    view: {{start: 100000, ceiling: 120000, headroom: 20000, keep: 50000}}
models:
  foldgate: {{tiers: [{{backend: local, policy: small}}]}}
  both: {{tiers: [{{backend: local, policy: small}}, {{backend: cloud, policy: other}}]}}
  silent: {{tiers: [{{backend: local, policy: silent}}]}}
  cloudy: {{tiers: [{{backend: cloud, policy: wide}}]}}
"""
FACT = "The brass key of the lighthouse lies beneath Marta's third flowerpot."
QUESTION = "Where did I say that the brass key of the lighthouse lies?"
WORDS = (
    "harvest violin copper meadow tunnel orchard pepper glacier lantern saddle velvet anchor "
    "bakery canyon dagger ember falcon garnet hollow ivory jasmine kettle lagoon marble nectar "
    "oyster parade quarry ribbon sapphire timber umbrella valley walnut yonder zephyr"
).split()


def filler(at: int) -> str:
    """About 200 characters that share no word with their neighbours."""
    return " ".join(f"{WORDS[(at * 7 + each) % len(WORDS)]}{at}" for each in range(24))


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path, POLICIES)
    yield house
    house.store.close()


async def talk(house: House, history: list[Say], *texts: Any, **more: Any) -> Said:
    """A client that resends says these; history grows."""
    for text in texts:
        history.append(user(text))
        house.local.answers.append(f"Noted, {len(history)}.")
        said = await house.say(*history, **more)
        history.append(assistant(said.text))
    return said


async def to_a_fold(house: House, history: list[Say], **more: Any) -> Said:
    before = len(house.folds())
    while len(house.folds()) == before:
        said = await talk(house, history, filler(len(history)), **more)
        house.write_chapters()
    return said


async def told(house: House, fact: Any = FACT, **more: Any) -> list[Say]:
    """A history of which the fact is folded away."""
    history: list[Say] = []
    await talk(house, history, "Good morning.", fact, **more)
    await to_a_fold(house, history, **more)
    return history


def newest(said: Said) -> Any:
    return said.prompt[-1]["content"]


def rows(house: House) -> list[tuple[Any, ...]]:
    return house.rows("SELECT policy, asked_depth, kind, chars FROM notes ORDER BY pk")


def begins_with(said: Said, before: Said) -> bool:
    """Law 4: a prompt is the one before it and more."""
    return said.bytes[: len(before.bytes)] == before.bytes


# -- shown and kept ---


async def test_a_folded_line_stands_in_the_question_with_who_and_when(house: House) -> None:
    history = await told(house)
    said = await talk(house, history, QUESTION)
    assert f"<note 3, 2027-01-15, User>\n{FACT}\n</note>\n" in newest(said)
    assert newest(said).startswith("<notes>\nFrom the past")
    assert newest(said).endswith(f"</notes>\n\n{QUESTION}")
    assert house.told(said.conversation)[-2] == ("user", QUESTION)
    ((policy, depth, kind, chars),) = rows(house)
    assert (policy, depth, kind) == ("small", len(history) - 1, "lines")
    assert chars == len(newest(said)) - len(QUESTION)
    begun = said.turn.prepared.begun
    assert (begun.noted.chars, said.turn.prepared.prompt_chars) == (
        chars,
        begun.fold.memory_chars + begun.asked.cum_chars - begun.fold.border_cum + chars,  # type: ignore[union-attr]
    )


async def test_a_model_is_not_shown_that_it_declined(house: House) -> None:
    """Every other reply was a refusal that holds the words of the question."""
    refusal = "I'm sorry, but I can't help with that request about the brass key."
    history: list[Say] = []
    await talk(house, history, "Good morning.", FACT)
    for at in range(4):
        history.append(user(f"Request {at} about the key: {filler(at)}"))
        house.local.answers.append(refusal)
        await house.say(*history)
        history.append(assistant(refusal))
    await to_a_fold(house, history)
    said = await talk(house, history, f"{QUESTION} And the request about the brass key?")
    assert FACT in newest(said)
    assert refusal not in newest(said)
    assert ("assistant", refusal) in house.told(said.conversation)


async def test_a_retry_a_swipe_and_a_restart_show_the_same(house: House) -> None:
    history = await told(house)
    said = await talk(house, history, QUESTION)
    swipe = await house.say(*history[:-1])
    house.restart()
    again = await house.say(*history[:-1])
    assert said.bytes == swipe.bytes == again.bytes
    assert len(rows(house)) == 1


async def test_it_stays_where_it_is_until_the_next_fold_and_then_is_gone(house: House) -> None:
    history = await told(house)
    said = await talk(house, history, QUESTION)
    note = newest(said)
    folds = len(house.folds())
    while len(house.folds()) == folds:
        before, said = said, await talk(house, history, filler(len(history)))
        house.write_chapters()
        if len(house.folds()) == folds:
            assert begins_with(said, before)
            assert note in [message["content"] for message in said.prompt]
            cause = "SELECT moved_by FROM attempts ORDER BY pk DESC LIMIT 1"
            assert house.one(cause) is None
    assert not any("<notes>" in str(message["content"]) for message in said.prompt)


async def test_the_same_bytes_from_the_rows_alone(house: House) -> None:
    history = await told(house)
    await talk(house, history, QUESTION)
    said = await talk(house, history, filler(99))
    house.restart()
    assert (await house.say(*history[:-1])).bytes == said.bytes


async def test_nothing_is_recalled_below_the_floor(house: House) -> None:
    history = await told(house)
    for text in ("Hm, okay then.", "Тихо сегодня.", "今日は静かですね。", "🙂"):
        assert newest(await talk(house, history, text)) == text
    assert rows(house) == []


async def test_nothing_is_recalled_that_the_view_shows(house: House) -> None:
    history = await told(house, "Marta waters her flowers.")
    await talk(house, history, FACT)
    assert FACT not in newest(await talk(house, history, QUESTION))


async def test_nothing_is_recalled_twice_between_two_folds(house: House) -> None:
    history = await told(house)
    await talk(house, history, QUESTION)
    assert FACT not in newest(await talk(house, history, f"Again: {QUESTION}"))


async def test_without_a_fold_or_a_budget_nothing_is_looked_for(house: House) -> None:
    history: list[Say] = []
    await talk(house, history, FACT)
    assert newest(await talk(house, history, QUESTION)) == QUESTION
    history = await told(house, id="other", model="silent")
    assert newest(await talk(house, history, QUESTION, id="other", model="silent")) == QUESTION
    assert rows(house) == []


async def test_nothing_is_recalled_for_a_tool_s_result(house: House) -> None:
    history = await told(house)
    said = await house.say(*history, user("Look."))
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    asked = [user("Look."), assistant(None, tool_calls=[call]), tool("c1", QUESTION)]
    said = await house.say(*history, *asked)
    assert said.prompt[-1]["content"] == QUESTION
    assert rows(house) == []


async def test_a_question_in_parts_keeps_its_parts(house: House) -> None:
    history = await told(house)
    parts = [
        {"type": "text", "text": QUESTION},
        {"type": "text", "text": "Please."},
    ]
    said = await talk(house, history, parts)
    first, *rest = newest(said)
    assert first["type"] == "text"
    assert FACT in first["text"]
    assert rest == parts


async def test_the_reply_before_helps_a_short_question(house: House) -> None:
    history = await told(house)
    history.append(user("Think of the lighthouse."))
    house.local.answers.append("You mean the brass key of the lighthouse?")
    history.append(assistant((await house.say(*history)).text))
    house.one("SELECT count(*) FROM notes")
    said = await talk(house, history, "Yes, where does the key lie?")
    assert FACT in str([message["content"] for message in said.prompt])


@pytest.mark.parametrize(
    ("fact", "question", "who"),
    [
        (
            "灯台の真鍮の鍵はマルタの三番目の植木鉢の下に置いた。",
            "灯台の真鍮の鍵はどこに置いたっけ？",
            "ユーザー",
        ),
        ("灯塔的黄铜钥匙放在玛尔塔的第三个花盆下面。", "灯塔的黄铜钥匙放在哪里了？", "用户"),
        (
            "등대의 놋쇠 열쇠는 마르타의 세 번째 화분 밑에 두었다.",
            "등대의 놋쇠 열쇠를 어디에 두었지?",
            "사용자",
        ),
        (
            "Латунный ключ от маяка лежит под третьим цветочным горшком Марты.",
            "Где лежит латунный ключ от маяка?",
            "Пользователь",
        ),
        (
            "La llave de latón del faro está debajo de la tercera maceta de Marta.",
            "¿Dónde está la llave de latón del faro?",
            "Usuario",
        ),
    ],
)
async def test_in_every_language(house: House, fact: str, question: str, who: str) -> None:
    history = await told(house, fact)
    said = await talk(house, history, question)
    assert f", {who}>\n{fact}\n</note>" in newest(said)


# -- budgets ---


async def test_notes_keep_to_their_budgets_and_below_the_start(house: House) -> None:
    """Headroom 3,000: 1,000 between two folds; start 6,000."""
    history: list[Say] = []
    facts = [f"The {WORDS[at]} number {at} belongs to captain Nemo. " * 4 for at in range(12)]
    await talk(house, history, *facts)
    await to_a_fold(house, history)
    spent: dict[int, int] = {}
    for at in range(50):
        question = f"Whose is the {WORDS[at // 2 % 12]} number {at // 2 % 12}?"
        said = await talk(house, history, filler(at) if at % 2 else question)
        house.write_chapters()
        begun = said.turn.prepared.begun
        assert begun.fold is not None
        spent[begun.fold.pk] = begun.noted.chars
        verbatim = begun.asked.cum_chars - begun.fold.border_cum
        total = begun.fold.memory_chars + verbatim + begun.noted.chars
        if begun.recalled is not None and begun.recalled.note is not None:
            assert total <= 6_000
        assert sum(len(str(m["content"])) for m in said.prompt) == total
    assert all(0 < chars <= 1_000 for chars in spent.values())
    assert len(spent) > 1
    assert not any(kind == "cut" for _, _, _, kind, _ in house.folds())


async def test_notes_are_counted_where_a_fold_is_due(house: House) -> None:
    """The view with its notes crosses the start, without them it does not."""
    history = await told(house, FACT + " It was a gift of the keeper." * 20)
    said = await talk(house, history, QUESTION)
    begun = said.turn.prepared.begun
    assert begun.fold is not None
    assert begun.noted.chars > 500
    left = 6_000 - begun.fold.memory_chars - (begun.asked.cum_chars - begun.fold.border_cum)
    assert not house.pending()
    await talk(house, history, "x " * ((left - 300) // 2))
    assert house.pending()


# -- whose views ---


async def test_each_policy_s_view_has_notes_of_its_own(house: House) -> None:
    """A fallback shows another policy's view of the same question."""
    history = await told(house, model="both")
    history.append(user(QUESTION))
    house.local.answers = [UpstreamFault(FaultKind.SERVER, "It broke")] * 2
    said = await house.say(*history, model="both")
    assert said.turn.prepared.setting.policy.name == "other"
    noted = [row[:3] for row in rows(house)]
    assert noted[0] == ("small", len(history), "lines")
    assert all(policy == "other" for policy, *_ in noted[1:])


async def test_an_edited_question_is_asked_anew_and_the_old_one_keeps_its_notes(
    house: House,
) -> None:
    history = await told(house)
    said = await talk(house, history, QUESTION)
    edited = [*history[:-2], user(f"Tell me. {QUESTION}")]
    other = await house.say(*edited)
    assert FACT in newest(other)
    assert newest(other).endswith(f"\n\nTell me. {QUESTION}")
    assert other.bytes[:-1] == said.bytes[:-1]
    again = await house.say(*history[:-1])
    assert again.bytes == said.bytes
    assert len(rows(house)) == 2


async def test_a_message_with_something_shown_behind_it_takes_no_note_any_more(
    house: House,
) -> None:
    """Two messages that come at once: the first was never asked by itself, but was shown."""
    history = await told(house)
    both = [*history, user(QUESTION), assistant("I do not know."), user(filler(77))]
    said = await house.say(*both)
    before = rows(house)
    await house.say(*both[:-2])
    assert rows(house) == before
    assert (await house.say(*both)).bytes == said.bytes


async def test_a_hard_cut_is_served_by_recall_at_once(house: House) -> None:
    """A long history comes in whole: what was just folded can be found."""
    history: list[Say] = [user(FACT), assistant("Noted.")]
    for at in range(60):
        history += [user(filler(2 * at)), assistant(filler(2 * at + 1))]
    said = await house.say(*history, user(QUESTION))
    assert said.view == "cut"
    assert FACT in newest(said)


async def test_what_a_fold_cannot_index_at_once_is_indexed_behind_the_turn(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.flows.notes.MOST_INDEXED", 5)
    history: list[Say] = [user(filler(1_000)), assistant("Well.")] * 3
    history += [user(FACT), assistant("Noted.")]
    for at in range(40):
        history += [user(filler(2 * at)), assistant(filler(2 * at + 1))]
    said = await talk(house, history, QUESTION)
    assert FACT not in newest(said)
    await house.ctx.indexing.settle()
    assert FACT in newest(await talk(house, history, f"Again: {QUESTION}"))


async def told_unindexed(house: House, patch: pytest.MonkeyPatch, **more: Any) -> list[Say]:
    """A folded fact that was never indexed, in a conversation whose index goes deeper than it on
    another branch."""
    patch.setattr("gateway.flows.notes.MOST_INDEXED", 0)
    patch.setattr(house.ctx.indexing, "want", lambda *_: None)
    history = await told(house, **more)
    patch.undo()
    pk, owner_pk, last_pk = house.rows("SELECT pk, owner_pk, head_pk FROM conversations")[0]

    def elsewhere(connection: Connection) -> int:
        conversation = transcript.conversation_by_pk(connection, owner_pk, pk)
        first = transcript.ancestor_at(connection, last_pk, 1)
        assert conversation is not None and first is not None
        other = [user(f"elsewhere {at}") for at in range(len(history) + 5)]
        leaf = extend(connection, conversation, transcript.node_by_pk(connection, first), other)[-1]
        return search.index_path(connection, pk, leaf.pk)

    assert house.store.writing(elsewhere) == len(history) + 6
    return history


async def test_what_was_indexed_for_another_branch_alone_is_indexed_for_this_one(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = await told_unindexed(house, monkeypatch)
    said = await talk(house, history, QUESTION)
    assert FACT not in newest(said)
    await house.ctx.indexing.settle()
    assert FACT in newest(await talk(house, history, f"Again: {QUESTION}"))


async def test_the_past_is_indexed_before_it_is_folded(house: House) -> None:
    history: list[Say] = []
    await talk(house, history, FACT)
    while not house.pending():
        await talk(house, history, filler(len(history)))
    await house.ctx.indexing.settle()
    assert house.one("SELECT last_depth FROM search_keys") >= len(history) - 1


async def test_what_is_recalled_is_measured(house: House) -> None:
    history = await told(house)
    said = await talk(house, history, QUESTION)
    sample = house.ctx.meters.registry.get_sample_value
    labels = {"policy": "small", "kind": "lines"}
    assert sample("foldgate_notes_total", labels) == 1
    assert sample("foldgate_notes_chars_total", labels) == said.turn.prepared.begun.noted.chars
    assert (sample("foldgate_recall_seconds_count", {"policy": "small"}) or 0) >= 1


async def test_a_search_that_breaks_off_fails_no_turn(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Law 1: the question is stored and answered; the fault is told and counted, not hidden."""
    history = await told(house)

    def fail(*_: Any) -> Any:
        raise RuntimeError("no stemmer")

    monkeypatch.setattr("gateway.flows.recollection.build_query", fail)
    said = await talk(house, history, QUESTION)
    assert said.text == f"Noted, {len(history) - 1}."
    assert newest(said) == QUESTION
    assert house.one("SELECT count(*) FROM messages WHERE role = 'user'") == len(history) // 2
    (record,) = (record for record in caplog.records if "searched" in record.message)
    assert record.exc_info is not None and "no stemmer" in str(record.exc_info[1])
    labels = {"policy": "small", "step": "search"}
    counted = house.ctx.meters.registry.get_sample_value("foldgate_recall_failed_total", labels)
    assert counted == 1
    monkeypatch.undo()
    assert FACT in newest(await talk(house, history, f"Again: {QUESTION}"))


async def test_a_past_whose_words_cannot_be_read_fails_no_fold(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    history: list[Say] = []
    await talk(house, history, "Good morning.", FACT)

    def fail(*_: Any) -> Any:
        raise RuntimeError("no stemmer")

    monkeypatch.setattr("gateway.store.search.gather", fail)
    await to_a_fold(house, history)
    assert "what was folded could not be indexed" in caplog.messages
    labels = {"policy": "small", "step": "index"}
    counted = house.ctx.meters.registry.get_sample_value("foldgate_recall_failed_total", labels)
    assert counted == 1
    monkeypatch.undo()
    await house.ctx.indexing.settle()
    await talk(house, history, "And now?")
    await house.ctx.indexing.settle()
    assert FACT in newest(await talk(house, history, QUESTION))


# -- other sources ---

SOURCES = """
version: 1
backends: {{local: {{kind: scripted}}}}
policies:
  small: {small}
    recall: {{lookups: [crm, web], budget: {budget}}}
lookups:
  crm: {{url: "{url}", timeout: 100ms, budget: {each}}}
  web: {{url: "http://127.0.0.1:1/none", timeout: 100ms}}
models:
  foldgate: {{tiers: [{{backend: local, policy: small}}]}}
"""


@pytest.fixture
async def crm() -> AsyncIterator[Source]:
    async with Source() as crm:
        yield crm


@pytest.fixture
async def town(tmp_path: Path, crm: Source, request: pytest.FixtureRequest) -> AsyncIterator[House]:
    """A house whose policy asks two sources, one of which is never there."""
    budgets = {"budget": 1_500, "each": 800, **getattr(request, "param", {})}
    town = House(tmp_path, SOURCES.format(small=SMALL, url=crm.url, **budgets))
    yield town
    await town.ctx.lookups.aclose()
    town.store.close()


def budgets(**given: int) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("town", [given], indirect=True)


def tell(crm: Source, *texts: str) -> None:
    crm.answer = {"notes": [{"text": text, "who": "Anna", "when": "2020-02-02"} for text in texts]}


async def test_what_sources_tell_stands_in_the_question_from_the_first_turn_on(
    town: House, crm: Source
) -> None:
    tell(crm, "Customer since 2019.")
    history: list[Say] = []
    first = await talk(town, history, "Hello!", id="c")
    assert "<note crm, 2020-02-02, Anna>\nCustomer since 2019.\n</note>\n" in newest(first)
    assert first.turn.prepared.begun.question.answers.failed == ("web",)
    tell(crm, "Customer since 2019.", "Prefers mornings.")
    second = await talk(town, history, "And now?", id="c")
    assert begins_with(second, first)
    assert "Prefers mornings." in newest(second)
    assert "since 2019" not in newest(second)  # the view shows it already
    await town.ctx.lookups.aclose()
    town.restart()
    assert (await town.say(*history[:-1], id="c")).bytes == second.bytes


async def test_what_sources_told_stays_when_the_policy_asks_them_no_more(
    town: House, crm: Source
) -> None:
    """Law 3: a view is its rows, also after another policies.yaml."""
    tell(crm, "Customer since 2019.")
    history: list[Say] = []
    await talk(town, history, "Hello!", id="c")
    said = await talk(town, history, "And now?", id="c")
    before = town.one("SELECT prompt_chars FROM attempts ORDER BY pk DESC LIMIT 1")
    await town.ctx.lookups.aclose()
    town.policies = town.policies.replace("lookups: [crm, web]", "lookups: []")
    town.restart()
    assert (await town.say(*history[:-1], id="c")).bytes == said.bytes
    assert town.one("SELECT prompt_chars FROM attempts ORDER BY pk DESC LIMIT 1") == before
    later = await talk(town, history, "So?", id="c")
    assert begins_with(later, said)
    assert newest(later) == "So?"


@budgets(budget=600, each=320)
async def test_sources_keep_to_their_budget_and_the_turn_s(town: House, crm: Source) -> None:
    tell(crm, "a" * 200, "b" * 200, "c" * 30)
    said = await talk(town, [], "Hello!", id="c")
    text = newest(said)
    assert ("a" * 200 in text, "b" * 200 in text, "c" * 30 in text) == (True, False, True)
    assert len(text) - len(own_words(text)) <= 600


@budgets(budget=700)
async def test_lines_of_the_past_have_what_sources_leave(town: House, crm: Source) -> None:
    history = await told(town, id="c")
    tell(crm, "a" * 150)
    text = newest(await talk(town, history, QUESTION, id="c"))
    assert text.index("a" * 150) < text.index(FACT)
    assert len(text) - len(QUESTION) <= 700


async def test_a_source_that_fails_takes_nothing_from_a_turn(town: House, crm: Source) -> None:
    crm.answer = b"no json"
    said = await talk(town, [], "Hello!", id="c")
    assert newest(said) == "Hello!"
    assert said.turn.prepared.begun.question.answers.failed == ("crm", "web")


# -- read in ahead ---


async def test_a_view_that_is_read_in_before_a_move_has_its_notes(house: House) -> None:
    """Back from the cloud on the fold of before: what is foreseen is what comes."""
    history = await told(house, id="c")
    await talk(house, history, QUESTION, id="c")
    said = await talk(house, history, filler(5), id="c")
    begun = said.turn.prepared.begun
    newest_turn = Newest(
        conversation=begun.conversation,
        setting=begun.setting,
        system=begun.question.system,
        params={},
        asked=begun.asked,
        ratio=begun.ratio,
        fixed=0,
        size=0,
        habits=Habits(),
        moves=True,
    )
    foreseen = house.store.reading(foresee_prompt, newest_turn, house.clock.ms)
    said = await talk(house, history, filler(6), id="c")
    assert foreseen is not None
    assert foreseen[:-1] == said.bytes[:-1]
    assert FACT in b"".join(foreseen).decode()
