"""Recall over a stored conversation: its own path, word for word, nothing that is shown already."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from gateway.flows.recollection import LINE_CHARS, Ask, Passage, expand, recall
from gateway.store import search
from gateway.store.engine import Store
from gateway.store.transcript import ConversationRow, Node
from tests.gateway.databases import database_url
from tests.gateway.seeds import NOW, add_conversation, extend

RING = "My grandmother left me a sapphire ring."


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(database_url(tmp_path / "x.db"))
    store.open()
    yield store
    store.close()


def talk(*texts: str, start: int = 0) -> list[dict[str, Any]]:
    return [
        {"role": "assistant" if at % 2 else "user", "content": said}
        for at, said in enumerate(texts, start)
    ]


def chatter(count: int) -> list[str]:
    return [f"Line {at} about the bus and the soup, again." for at in range(1, count + 1)]


def told(connection: Connection, at: int = 10, said: str = RING) -> tuple[ConversationRow, Node]:
    """Forty lines, one of which says something, all of them indexed."""
    texts = chatter(40)
    texts[at - 1] = said
    made, nodes = add_conversation(connection, talk(*texts))
    search.index_path(connection, made.pk, nodes[-1].pk)
    return made, nodes[-1]


def ask(made: ConversationRow, head: Node, question: str, **more: Any) -> Ask:
    return Ask(made.pk, head, head.depth, question, **more)


def test_a_line_comes_back_with_who_said_it_and_when(store: Store) -> None:
    def check(connection: Connection) -> list[Passage]:
        made, head = told(connection)
        return recall(connection, ask(made, head, "Who left me the sapphire ring?"))

    found = store.writing(check)
    (hit,) = [passage for passage in found if passage.hit]
    assert (hit.depth, hit.role, hit.text, hit.whole) == (10, "assistant", RING, True)
    assert (hit.created_ms, hit.name) == (NOW, None)
    assert hit.score > 0
    assert [passage.depth for passage in found] == [8, 9, 10, 11, 12]


def test_the_name_in_a_message_is_told(store: Store) -> None:
    def check(connection: Connection) -> list[Passage]:
        lines = talk(*chatter(20))
        lines[4] |= {"content": RING, "name": "Ann"}
        lines[6] |= {"name": 7}
        made, nodes = add_conversation(connection, lines)
        search.index_path(connection, made.pk, nodes[-1].pk)
        return recall(connection, ask(made, nodes[-1], "Who left the sapphire ring?"))

    names = {passage.depth: passage.name for passage in store.writing(check)}
    assert (names[5], names[7], names[6]) == ("Ann", None, None)


@pytest.mark.parametrize(
    "more",
    [
        {"question": "ok, thanks"},
        {"question": "What became of the zeppelin?"},
        {"question": ""},
        {"budget": LINE_CHARS},
        {"border": 7},
    ],
)
def test_nothing_is_recalled(store: Store, more: dict[str, Any]) -> None:
    def check(connection: Connection) -> list[Passage]:
        made, head = told(connection)
        question = ask(made, head, "Who left me the sapphire ring?")
        return recall(connection, replace(question, **more))

    assert store.writing(check) == []


def test_a_conversation_without_an_index_recalls_nothing(store: Store) -> None:
    def check(connection: Connection) -> list[Passage]:
        made, nodes = add_conversation(connection, talk(RING))
        return recall(connection, ask(made, nodes[-1], "Who left the sapphire ring?"))

    assert store.writing(check) == []


def test_without_the_floor_a_search_returns_what_little_there_is(store: Store) -> None:
    def check(connection: Connection) -> tuple[list[Passage], list[Passage]]:
        made, head = told(connection)
        weak = ask(made, head, "I saw a sapphire.")
        return recall(connection, weak), recall(
            connection, replace(weak, floor=False, neighbours=False)
        )

    none, some = store.writing(check)
    assert none == []
    assert [passage.depth for passage in some] == [10]


def test_what_stands_in_notes_already_does_not_come_again(store: Store) -> None:
    def check(connection: Connection) -> tuple[list[Passage], list[Passage]]:
        made, head = told(connection)
        question = ask(made, head, "Who left me the sapphire ring?")
        first = recall(connection, question)
        taken = frozenset(passage.pk for passage in first)
        return first, recall(connection, replace(question, taken=taken))

    first, second = store.writing(check)
    assert first and second == []


def test_another_branch_is_never_recalled(store: Store) -> None:
    def check(connection: Connection) -> tuple[list[Passage], list[Passage]]:
        texts = chatter(30)
        made, trunk = add_conversation(connection, talk(*texts))
        branch = extend(
            connection, made, trunk[9], talk(RING, *(f"{text}!" for text in chatter(9)))
        )
        search.index_path(connection, made.pk, trunk[-1].pk)
        search.index_path(connection, made.pk, branch[-1].pk)
        question = "Who left me the sapphire ring?"
        return (
            recall(connection, ask(made, trunk[-1], question)),
            recall(connection, ask(made, branch[-1], question)),
        )

    on_trunk, on_branch = store.writing(check)
    assert RING not in {passage.text for passage in on_trunk}
    assert not any(passage.hit for passage in on_trunk)
    assert RING in {passage.text for passage in on_branch}


def test_another_branch_hides_no_line_of_this_one(store: Store) -> None:
    """An edit at depth 10: both branches speak of the ring, at the same depths, and the older one
    goes on speaking of it."""

    def check(connection: Connection) -> dict[str, list[Passage]]:
        older = ["The sapphire ring again, who left me one?", "A sapphire ring is what I left."]
        made, trunk = add_conversation(connection, talk(*chatter(9), *(older * 15)))
        branch = extend(connection, made, trunk[8], talk(RING, *chatter(19), start=9))
        for nodes in (trunk, branch):
            search.index_path(connection, made.pk, nodes[-1].pk)
        question = "Who left me the sapphire ring?"
        return {
            name: recall(connection, ask(made, nodes[-1], question))
            for name, nodes in (("older", trunk), ("newer", branch))
        }

    found = store.writing(check)
    assert [passage.text for passage in found["newer"] if passage.hit] == [RING]
    assert RING not in {passage.text for passage in found["older"]}


def test_of_a_long_message_a_passage_is_recalled(store: Store) -> None:
    def check(connection: Connection) -> list[Passage]:
        made, head = told(connection, said="We spoke of soup. " * 200 + RING + " So. " * 200)
        return recall(connection, ask(made, head, "Who left me the sapphire ring?"))

    (hit,) = [passage for passage in store.writing(check) if passage.hit]
    assert not hit.whole
    assert RING in hit.text
    assert len(hit.text) <= 500


def test_lines_around_one_are_the_nearest_that_fit(store: Store) -> None:
    def check(connection: Connection) -> list[list[int]]:
        _, head = told(connection)
        cost = len(chatter(9)[8]) + LINE_CHARS
        calls = [
            {"before": 2, "after": 1, "border": 40, "budget": 2_000},
            {"before": 2, "after": 2, "border": 11, "budget": 2_000},
            {"before": 20, "after": 0, "border": 40, "budget": 2_000},
            {"before": 3, "after": 3, "border": 40, "budget": 2 * cost + 10},
            {"before": 0, "after": 0, "border": 9, "budget": 2_000},
        ]
        return [[p.depth for p in expand(connection, head, 10, **call)] for call in calls]

    assert store.writing(check) == [
        [8, 9, 10, 11],
        [8, 9, 10, 11],
        list(range(1, 11)),
        [9, 10],
        [],
    ]


def test_lines_around_the_newest_message_end_with_it(store: Store) -> None:
    def check(connection: Connection) -> list[str]:
        _, head = told(connection)
        found = expand(connection, head, 40, before=1, after=5, border=60, budget=500)
        return [passage.text for passage in found]

    assert store.writing(check) == chatter(40)[38:]


# -- replies that decline are no memory ---

REFUSALS = {
    "en": ("I'm sorry, but I can't help with that request.", "What of the request for help?"),
    "es": ("Lo siento, pero no puedo ayudar con eso.", "¿Puedes ayudar con el faro?"),
    "ja": ("申し訳ありませんが、そのご要望にはお応えできません。", "ご要望は何でしたか。"),
    "ko": ("죄송하지만 그 요청은 도와드릴 수 없습니다.", "그 요청은 무엇이었나요?"),
    "ru": ("Извините, но я не могу помочь с этим запросом.", "Что стало с тем запросом?"),
    "zh": ("抱歉，我无法协助处理这个请求。", "那个请求怎么样了？"),
}


def refusing(
    connection: Connection, refusal: str, told: str, at: int = 9
) -> tuple[ConversationRow, Node]:
    """Sixty lines of which each reply refuses, and one of the user says something."""
    texts = [refusal if place % 2 else said for place, said in enumerate(chatter(60))]
    texts[at - 1] = told
    made, nodes = add_conversation(connection, talk(*texts))
    search.index_path(connection, made.pk, nodes[-1].pk)
    return made, nodes[-1]


@pytest.mark.parametrize("language", REFUSALS)
@pytest.mark.parametrize("floor", [True, False])
def test_no_refusal_is_recalled_and_the_next_best_line_is(
    store: Store, language: str, floor: bool
) -> None:
    """Thirty of them hold the words of the question; one line of the user does, too."""
    refusal, question = REFUSALS[language]
    told = f"{question.strip('¿?？。')}: {RING}"

    def check(connection: Connection) -> list[Passage]:
        made, head = refusing(connection, refusal, told)
        asked = ask(made, head, f"{question} Who left the sapphire ring?", floor=floor)
        return recall(connection, asked)

    found = store.writing(check)
    assert refusal not in {passage.text for passage in found}
    assert told in {passage.text for passage in found if passage.hit}
    assert {passage.role for passage in found} == {"user"}


def test_what_only_refusals_say_is_not_relevant(store: Store) -> None:
    """Two lines of a hundred are about the request, both declined: no other line is shown in their
    place, nor for standing beside them."""
    refusal, _ = REFUSALS["en"]

    def check(connection: Connection) -> tuple[list[Passage], list[Passage]]:
        texts = chatter(100)
        texts[9] = texts[49] = refusal
        made, nodes = add_conversation(connection, talk(*texts))
        search.index_path(connection, made.pk, nodes[-1].pk)
        asked = ask(made, nodes[-1], "Was that request of help, and which request?")
        return recall(connection, asked), recall(connection, replace(asked, floor=False))

    assert store.writing(check) == ([], [])


def test_a_person_may_decline(store: Store) -> None:
    refusal, _ = REFUSALS["en"]

    def check(connection: Connection) -> list[Passage]:
        made, head = told(connection, at=11, said=refusal)
        return recall(connection, ask(made, head, "Who can't help with which request?"))

    assert refusal in {passage.text for passage in store.writing(check)}


def test_a_refusal_by_its_form_is_one(store: Store) -> None:
    """A part of OpenAI's, whatever it says; a part of text is read."""

    def check(connection: Connection) -> list[str]:
        lines = talk(*chatter(40))
        lines[9]["content"] = [{"type": "refusal", "refusal": "The sapphire ring: better not."}]
        lines[19]["content"] = [{"type": "text", "text": RING}]
        made, nodes = add_conversation(connection, lines)
        search.index_path(connection, made.pk, nodes[-1].pk)
        found = recall(connection, ask(made, nodes[-1], "Who left me the sapphire ring?"))
        return [passage.text for passage in found if passage.hit]

    assert store.writing(check) == [RING]


def test_a_part_of_a_long_reply_that_declines_is_left_out(store: Store) -> None:
    refusal = "I'm sorry, but I can't help with that request of a sapphire ring."
    long = "We spoke of soup.\n" * 200

    def check(connection: Connection, said: str) -> list[str]:
        made, head = told(connection, said=said)
        asked = ask(made, head, "Who left the request of a sapphire ring?", budget=500)
        return [passage.text for passage in recall(connection, asked) if passage.hit]

    assert store.writing(check, long + f"{RING}\n" + long)[0].count(RING) == 1
    assert store.writing(check, f"{refusal}\n" + long) == []
    sole = "x" * 100 + "\n"
    assert store.writing(check, sole * 40 + refusal + "\n" + sole * 40) == []


def test_lines_around_one_hold_no_refusal_but_the_one_asked_for(store: Store) -> None:
    refusal, _ = REFUSALS["en"]

    def check(connection: Connection) -> list[list[int]]:
        _, head = refusing(connection, refusal, RING)
        sides = {"before": 2, "after": 2, "border": 40, "budget": 2_000}
        return [[p.depth for p in expand(connection, head, at, **sides)] for at in (9, 10)]

    assert store.writing(check) == [[7, 9, 11], [9, 10, 11]]


def test_the_transcript_and_the_index_keep_what_was_declined(store: Store) -> None:
    refusal, question = REFUSALS["en"]

    def check(connection: Connection) -> None:
        made, head = refusing(connection, refusal, RING)
        before = search.find_index(connection, made.pk)
        recall(connection, ask(made, head, question))
        assert search.find_index(connection, made.pk) == before
        assert before is not None and before.messages == 60
        kept = search.read_stretch(connection, head.pk, 1, 60)
        assert sum(refusal in row.raw for row in kept) == 30

    store.writing(check)


def test_a_search_reads_no_more_of_a_long_conversation(store: Store) -> None:
    """Statements of one search, those inside of the index included: three times the messages."""

    def count(connection: Connection, length: int) -> int:
        texts = chatter(length)
        texts[5] = RING
        made, nodes = add_conversation(connection, talk(*texts))
        while search.index_path(connection, made.pk, nodes[-1].pk):
            pass
        seen: list[str] = []
        driver: Any = connection.connection.dbapi_connection
        driver.set_trace_callback(seen.append)
        found = recall(connection, ask(made, nodes[-1], "Who left me the sapphire ring?"))
        driver.set_trace_callback(None)
        assert RING in {passage.text for passage in found}
        return len(seen)

    short, long = (store.writing(count, length) for length in (800, 2_400))
    assert long <= 2 * short


words = st.sampled_from("cat dog Lisbon sapphire 猫 寿司 школа кошка 바다 gato niño 42 ?".split())
said = st.lists(words, max_size=6).map(" ".join)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(said, min_size=3, max_size=20),
    st.lists(said, min_size=1, max_size=10),
    st.integers(0, 19),
    said,
    st.integers(0, 30),
    st.integers(0, 400),
    st.booleans(),
)
def test_the_laws_of_recall(
    store: Store,
    trunk: list[str],
    leaves: list[str],
    where: int,
    question: str,
    border: int,
    budget: int,
    floor: bool,
) -> None:
    """On the path, word for word, within the budget, not beyond the border, each time the same."""

    def check(connection: Connection) -> None:
        made, nodes = add_conversation(connection, talk(*trunk))
        fork = where % len(nodes)
        branch = extend(connection, made, nodes[fork], talk(*leaves, start=fork + 1))
        paths = (nodes, nodes[: fork + 1] + branch)
        for path in paths:
            search.index_path(connection, made.pk, path[-1].pk)
        for path in paths:
            asked = Ask(made.pk, path[-1], border, question, budget=budget, floor=floor)
            found = recall(connection, asked)
            assert found == recall(connection, asked)
            assert sum(len(passage.text) + LINE_CHARS for passage in found) <= budget
            assert all(passage.depth <= border for passage in found)
            for passage in found:
                assert path[passage.depth - 1].pk == passage.pk
            depths = [passage.depth for passage in found]
            assert depths == sorted(set(depths))

    store.writing(check)
