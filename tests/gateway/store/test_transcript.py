"""The message tree: ids, skip pointers, walks, and what is stored exactly."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, text

from gateway.flows.new_messages import to_new_message
from gateway.store import transcript
from gateway.store.engine import Store
from gateway.store.transcript import (
    ConversationRow,
    Node,
    ancestor_at,
    append_messages,
    chain_digest,
    chain_digests,
    content_digest,
    message_digest,
    on_path,
    path_between,
)
from gateway.wire.json_text import loads
from policies.messages import canonical_message
from tests.gateway.house import House, assistant, user
from tests.gateway.seeds import NOW


def count_rows(connection: Connection, conversation_pk: int) -> int:
    """All messages of all branches."""
    counted = text("SELECT count(*) FROM messages WHERE conversation_pk = :pk")
    return int(connection.execute(counted, {"pk": conversation_pk}).scalar_one())


SHARED_STORE = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    house = House(tmp_path)
    yield house.store
    house.store.close()


def new_message(message: dict[str, Any], **more: Any) -> transcript.NewMessage:
    return to_new_message(message, canonical_message(message), 3_000, **more)


def begin(connection: Connection, owner: str = "ann", alias: str | None = None) -> ConversationRow:
    owner_pk = transcript.ensure_owner(connection, owner, "", NOW)
    return transcript.create_conversation(
        connection, owner_pk, alias=alias, model="foldgate", now_ms=NOW
    )


def grow(connection: Connection, parents: list[int]) -> tuple[ConversationRow, list[Node]]:
    """A tree whose node i hangs on node parents[i] (-1: a root)."""
    conversation = begin(connection)
    nodes: list[Node] = []
    for at, parent in enumerate(parents):
        above = nodes[parent] if parent >= 0 else None
        nodes += append_messages(
            connection, conversation, above, [new_message(user(f"m{at}"))], NOW
        )
    return conversation, nodes


def naive_path(parents: list[int], at: int) -> list[int]:
    found = []
    while at >= 0:
        found.append(at)
        at = parents[at]
    return found[::-1]


@st.composite
def trees(draw: st.DrawFn) -> list[int]:
    """Some hundred nodes: long trunks, with branches anywhere."""
    count = draw(st.integers(1, 300))
    jumps = draw(st.lists(st.tuples(st.integers(0, 299), st.integers(-1, 299)), max_size=12))
    parents = list(range(-1, count - 1))
    for at, parent in jumps:
        if parent < at < count:
            parents[at] = parent
    return parents


# -- the tree -----------------------------------------------------------------------------------


@settings(max_examples=12, suppress_health_check=SHARED_STORE)
@given(parents=trees(), data=st.data())
def test_skips_lead_where_the_naive_walk_leads(
    store: Store, parents: list[int], data: st.DataObject
) -> None:
    def check(connection: Connection) -> None:
        _, nodes = grow(connection, parents)
        for _ in range(12):
            head = data.draw(st.integers(0, len(nodes) - 1))
            path = naive_path(parents, head)
            assert nodes[head].depth == len(path)
            depth = data.draw(st.integers(1, len(path)))
            assert ancestor_at(connection, nodes[head].pk, depth) == nodes[path[depth - 1]].pk
            other = data.draw(st.integers(0, len(nodes) - 1))
            stands = on_path(connection, nodes[other].pk, nodes[other].depth, nodes[head])
            assert stands == (other in path)
            above = data.draw(st.integers(0, len(path)))
            walked = path_between(connection, nodes[head].pk, above)
            assert [row.pk for row in walked] == [nodes[at].pk for at in path[above:]]
            assert [row.depth for row in walked] == list(range(above + 1, len(path) + 1))

    store.writing(check)


def test_there_is_nothing_deeper_than_the_head(store: Store) -> None:
    def check(connection: Connection) -> None:
        _, nodes = grow(connection, [-1, 0, 1])
        assert ancestor_at(connection, nodes[2].pk, 4) is None
        assert not on_path(connection, nodes[2].pk, 3, nodes[1])
        assert path_between(connection, nodes[2].pk, 3) == []

    store.writing(check)


def test_a_skip_costs_logarithmically_many_rows(store: Store) -> None:
    """3,000 messages: log2 is 12, a skew-binary walk takes at most about three times that."""
    walk = text(
        transcript._ANCESTOR_SQL.text.replace("SELECT pk FROM walk WHERE depth = :depth", "")
        + " SELECT count(*) FROM walk"
    )

    def check(connection: Connection) -> int:
        conversation = begin(connection)
        new = [new_message(user(f"m{at}")) for at in range(3_000)]
        head = append_messages(connection, conversation, None, new, NOW)[-1]
        return max(
            int(connection.execute(walk, {"head": head.pk, "depth": depth}).scalar_one())
            for depth in range(1, 3_000, 97)
        )

    assert store.writing(check) <= 3 * math.log2(3_000)


def test_ids_are_digests_of_the_parent_and_the_content(store: Store) -> None:
    def check(connection: Connection) -> None:
        conversation = begin(connection)
        one, two = (new_message(user("hi")), new_message(assistant("hello")))
        first, second = append_messages(connection, conversation, None, [one, two], NOW)
        assert first.id == message_digest(conversation.id, one.canonical)
        assert second.id == message_digest(first.id, two.canonical)
        assert second.chain == chain_digest(chain_digest("", one.canonical), two.canonical)
        assert [first.chain, second.chain] == chain_digests([one.canonical, two.canonical])
        assert second.content == content_digest(two.canonical)
        assert (second.cum_chars, second.chars) == (2 + 5, 5)

    store.writing(check)


def test_the_same_words_in_two_conversations_share_a_chain_and_no_id(store: Store) -> None:
    def check(connection: Connection) -> None:
        nodes = []
        for alias in ("a", "b"):
            conversation = begin(connection, alias=alias)
            nodes += append_messages(connection, conversation, None, [new_message(user("hi"))], NOW)
        assert nodes[0].chain == nodes[1].chain
        assert nodes[0].id != nodes[1].id

    store.writing(check)


def test_appending_again_inserts_nothing_and_the_first_raw_form_wins(store: Store) -> None:
    def check(connection: Connection) -> None:
        conversation = begin(connection)
        history = [user("Line one  \r\nLine two"), assistant("Fine.\n")]
        first = append_messages(
            connection, conversation, None, [new_message(m) for m in history], NOW
        )
        echoed = [user("Line one\nLine two"), assistant([{"type": "text", "text": "Fine."}])]
        again = append_messages(
            connection, conversation, None, [new_message(m) for m in echoed], NOW + 5
        )
        assert [node.pk for node in again] == [node.pk for node in first]
        assert count_rows(connection, conversation.pk) == 2
        stored = path_between(connection, again[-1].pk, 0)
        assert [loads(row.raw) for row in stored] == history

    store.writing(check)


def test_branches_share_what_is_common(store: Store) -> None:
    def check(connection: Connection) -> None:
        conversation = begin(connection)
        common = [new_message(user("a")), new_message(assistant("b"))]
        left = append_messages(
            connection, conversation, None, [*common, new_message(user("c"))], NOW
        )
        right = append_messages(
            connection, conversation, None, [*common, new_message(user("d"))], NOW
        )
        assert [n.pk for n in left[:2]] == [n.pk for n in right[:2]]
        assert left[2].pk != right[2].pk
        assert left[2].parent_pk == right[2].parent_pk == left[1].pk
        assert count_rows(connection, conversation.pk) == 4

    store.writing(check)


def test_a_known_message_below_a_new_one_is_new(store: Store) -> None:
    """The same words under another parent are another message."""

    def check(connection: Connection) -> None:
        conversation = begin(connection)
        one = append_messages(
            connection, conversation, None, [new_message(user(m)) for m in ("a", "yes")], NOW
        )
        two = append_messages(
            connection, conversation, None, [new_message(user(m)) for m in ("b", "yes")], NOW
        )
        assert one[1].pk != two[1].pk and one[1].content == two[1].content
        found = transcript.nodes_by_content(connection, conversation.pk, one[1].content)
        assert [node.pk for node in found] == [two[1].pk, one[1].pk]

    store.writing(check)


def test_row_numbers_never_come_back(store: Store) -> None:
    def fill(connection: Connection) -> tuple[int, int]:
        conversation, nodes = grow(connection, [-1, 0, 1])
        return conversation.pk, nodes[-1].pk

    conversation, last = store.writing(fill)
    store.writing(
        lambda c: c.execute(text("DELETE FROM conversations WHERE pk = :pk"), {"pk": conversation})
    )
    again = store.writing(fill)
    assert again[0] > conversation
    assert again[1] == last + 3


def test_anchored_from_the_first_reply_of_ours_on(store: Store) -> None:
    def check(connection: Connection) -> None:
        conversation = begin(connection)
        told = [
            new_message(user("a")),
            new_message(assistant("not ours")),
            new_message(user("b")),
            new_message(assistant("ours"), produced=True),
            new_message(user("c")),
        ]
        nodes = append_messages(connection, conversation, None, told, NOW)
        assert [bool(node.anchored) for node in nodes] == [False, False, False, True, True]

    store.writing(check)


def test_the_deepest_known_message_is_found_from_the_tail(store: Store) -> None:
    def check(connection: Connection) -> None:
        conversation = begin(connection)
        told = [new_message(user(f"m{at}")) for at in range(600)]
        nodes = append_messages(connection, conversation, None, told, NOW)
        chains = chain_digests([m.canonical for m in told])
        for known in (600, 599, 592, 580, 100, 1):
            fresh = chain_digests(
                [m.canonical for m in told[:known]] + [b"new%d" % at for at in range(600 - known)]
            )
            found = transcript.deepest_known(connection, conversation, fresh)
            assert found is not None
            assert (found[0], found[1].pk) == (known - 1, nodes[known - 1].pk)
        assert transcript.deepest_known(connection, conversation, chain_digests([b"x"])) is None
        assert chains[-1] == nodes[-1].chain

    store.writing(check)


def test_the_same_system_text_is_stored_once(store: Store) -> None:
    def check(connection: Connection) -> None:
        one, two = begin(connection), begin(connection)
        first = transcript.ensure_system_text(connection, one.pk, "[A]", NOW)
        assert transcript.ensure_system_text(connection, one.pk, "[A]", NOW + 1) == first
        assert transcript.ensure_system_text(connection, one.pk, "[B]", NOW) != first
        assert transcript.ensure_system_text(connection, two.pk, "[A]", NOW) != first
        assert transcript.system_text(connection, first) == "[A]"

    store.writing(check)


def test_a_conversation_is_found_within_its_owner_only(store: Store) -> None:
    def check(connection: Connection) -> None:
        mine = begin(connection, "ann", "chat-1")
        theirs = begin(connection, "bob", "chat-1")
        for name, conversation in (("chat-1", mine), (mine.id, mine)):
            found = transcript.find_conversation(connection, mine.owner_pk, name)
            assert found is not None and found.pk == conversation.pk
        assert transcript.find_conversation(connection, theirs.owner_pk, mine.id) is None
        assert transcript.conversation_by_pk(connection, theirs.owner_pk, mine.pk) is None
        assert transcript.find_owner(connection, "nobody", "") is None

    store.writing(check)


# -- stored and returned exactly ------------------------------------------------------------------

IMAGE = {
    "type": "image_url",
    "image_url": {"url": "data:image/png;base64," + "iVBORw0KGgo" * 4_000},
}
EXACT: dict[str, Any] = {
    "lone surrogate": user("hi \ud83d there"),
    "halves in the wrong order": user("\ude00\ud83d"),
    "surrogate in a key": {"role": "user", "content": "x", "k\ud800": 1},
    "NUL": user("a\x00b"),
    "NUL and a surrogate": user("\x00\udfff"),
    "controls": user("\x01\x07\x1b[0m\u2028\ufeff\u202e"),
    "ZWJ family": user("👨‍👩‍👧‍👦 and 🏳️‍🌈"),
    "NFC": user("각 é"),
    "NFD": user("각 é"),
    "zalgo": user("Z" + "͑" * 20),
    "CRLF and trailing space": user("a \r\nb\r\n\r\n  "),
    "two megabytes": user("字" * 700_000),
    "image": user([{"type": "text", "text": "look"}, IMAGE]),
    "null": assistant(
        None, tool_calls=[{"id": "t1", "type": "function", "function": {"name": "f"}}]
    ),
    "empty": assistant(""),
    "absent": {"role": "assistant", "tool_calls": []},
    "unknown fields": user("x") | {"name": "Ann", "x_new": {"a": [1, None, True, 1.5e-7]}},
    "big number": user("\ud800") | {"seed": 2**80},
    "deep": user("x") | {"deep": loads("[" * 90 + "]" * 90)},
    "unknown part": user(
        [{"type": "video_url", "video_url": {"url": "https://media.example/c.mp4"}}]
    ),
}


@pytest.mark.parametrize("message", EXACT.values(), ids=EXACT.keys())
async def test_a_message_comes_back_as_it_was_sent(tmp_path: Path, message: dict[str, Any]) -> None:
    """Through the whole turn: stored, shown to a model, read again."""
    house = House(tmp_path)
    try:
        sent = [user("before"), message] if message["role"] == "assistant" else [message]
        said = await house.say(
            *sent, *([user("go on")] if message["role"] != "user" else []), id="c"
        )
        stored = [loads(row.raw) for row in house.path("c")]
        assert message in stored
        assert stored[-1] == assistant("Reply 1.")
        for data in said.bytes:
            data.decode()  # towards the model it is whole UTF-8
        again = await house.say("and now?", id="c")
        if again.view == "verbatim":  # two megabytes are folded as soon as they are history
            assert again.bytes[: len(said.bytes)] == said.bytes
    finally:
        house.store.close()


def test_an_image_counts_what_it_costs_and_not_its_text() -> None:
    counted = new_message(user([{"type": "text", "text": "look"}, IMAGE]))
    assert counted.chars == 4 + 3_000
    assert len(counted.raw) > 40_000
    assert counted.text == "look\n[image]"


@settings(max_examples=40, suppress_health_check=SHARED_STORE)
@given(
    content=st.one_of(
        st.none(),
        st.text(st.characters(), max_size=60),
        st.text(st.characters(categories=["Cs", "Cc", "Mn", "So"]), max_size=20),
    ),
    extra=st.dictionaries(
        st.text(min_size=1, max_size=8).filter(lambda key: key not in ("role", "content")),
        st.recursive(
            st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
            max_leaves=6,
        ),
        max_size=3,
    ),
)
def test_any_message_is_stored_exactly(
    store: Store, content: str | None, extra: dict[str, Any]
) -> None:
    message = {"role": "user", "content": content, **extra}

    def check(connection: Connection) -> None:
        conversation = begin(connection)
        (node,) = append_messages(connection, conversation, None, [new_message(message)], NOW)
        (row,) = path_between(connection, node.pk, 0)
        assert loads(row.raw) == message
        assert "\x00" not in row.raw

    store.writing(check)


def test_where_a_skip_pointer_leads_is_known_from_the_depth() -> None:
    """As the pointers themselves are made: two of one length before a message are spanned."""
    leads = {0: 0, 1: 0}
    for depth in range(2, 5_000):
        parent = depth - 1
        jump = leads[parent]
        spans = jump > 0 and parent - jump == jump - leads[jump]
        leads[depth] = leads[jump] if spans else parent
    assert {depth: transcript.jump_depth(depth) for depth in leads} == leads
