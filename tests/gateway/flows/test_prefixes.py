"""The prefix report: what a server should hold of a prompt, and why it holds less."""

from __future__ import annotations

import tempfile
from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backends.base import Call
from gateway.flows.prefixes import (
    UNKNOWN,
    Move,
    PrefixBook,
    Sight,
    Used,
    mark_of,
    name_cause,
)
from gateway.flows.prefixes import _count_common as count_common
from gateway.store import attempts
from tests.gateway.flows.test_prefill import furnish, grow, line, talk_into_debt
from tests.gateway.house import POLICIES, House, Model, Say, assistant, deltas, system, user

SAID = [b'{"role":"user","content":"%d %s"}' % (n, "灯台の火".encode()) for n in range(40)]
KEY = (1, "local")


def sight_of(messages: list[bytes], **more: Any) -> Sight:
    plain = Sight(
        marks=array("q", map(mark_of, messages)),
        leading=0,
        memory=0,
        notes=frozenset(),
        tools=0,
        template=0,
        policy="small",
        fold_pk=None,
        fold_kind="fold",
        asked_pk=len(messages),
        asked_depth=len(messages),
    )
    return replace(plain, **more)


def compare(book: PrefixBook, messages: list[bytes], **more: Any) -> Move:
    chars = sum(len(m.decode()) - len('{"role":"user","content":""}') for m in messages)
    sight = sight_of(messages, **more)
    return book.compare(KEY, sight, messages, prompt_chars=chars, image_chars=3_000)


def chars(messages: list[bytes]) -> int:
    return sum(len(m.decode()) - len('{"role":"user","content":""}') for m in messages)


@given(st.lists(st.integers(0, 3)), st.lists(st.integers(0, 3)))
def test_common_numbers_are_counted_from_the_beginning(one: list[int], other: list[int]) -> None:
    expected = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        expected += 1
    assert count_common(array("q", one), array("q", other)) == expected


def test_a_prompt_that_goes_on_is_expected_but_for_what_is_new() -> None:
    book = PrefixBook()
    assert compare(book, SAID[:3]).by == UNKNOWN
    book.keep(KEY, sight_of(SAID[:3]), SAID[3], slot=1)
    move = compare(book, SAID[:5])
    # three messages and the reply are there, the fifth is new
    assert (move.expected_chars, move.at, move.by, move.slot) == (chars(SAID[:4]), None, None, 1)


def test_the_same_prompt_again_is_there_as_a_whole() -> None:
    book = PrefixBook()
    book.keep(KEY, sight_of(SAID[:3]), SAID[3], slot=None)
    move = compare(book, SAID[:3])
    assert (move.expected_chars, move.at, move.by) == (chars(SAID[:3]), None, None)


@pytest.mark.parametrize(
    ("old", "new", "at", "by"),
    [
        ({}, {"tools": 7}, 0, "tools"),
        ({}, {"template": 7}, 0, "params"),
        ({"leading": 2}, {"leading": 2}, 1, "system text"),
        ({"leading": 2}, {}, 1, "system text"),
        ({}, {"policy": "wide"}, 1, "policy"),
        ({"fold_pk": 3}, {"fold_pk": 4}, 1, "fold"),
        ({"fold_pk": 3}, {"fold_pk": 4, "fold_kind": "cut"}, 1, "cut"),
        ({}, {"fold_pk": 4, "fold_kind": "migration"}, 1, "migration"),
        # back to a branch that left before the newer fold
        ({"fold_pk": 4}, {"fold_pk": 3}, 1, "edit"),
        ({"fold_pk": 4}, {}, 1, "edit"),
        ({}, {}, 1, "edit"),
        # what the owner changed with `now`
        ({"fold_pk": 3, "memory": 2}, {"fold_pk": 3, "memory": 2}, 1, "renewal"),
        ({"fold_pk": 3, "memory": 2}, {"fold_pk": 3}, 1, "renewal"),
        ({"fold_pk": 3, "memory": 1}, {"fold_pk": 3, "memory": 1}, 1, "edit"),
    ],
)
def test_what_moved_it_is_named(old: Any, new: Any, at: int, by: str) -> None:
    book = PrefixBook()
    book.keep(KEY, sight_of(SAID[:6], **old), None, slot=None)
    changed = [SAID[0], SAID[30], *SAID[2:6]]
    move = compare(book, changed, **new)
    assert (move.at, move.by) == (at, by)
    assert move.expected_chars == (0 if at == 0 else chars(SAID[:1]))


def test_what_was_read_in_ahead_is_expected() -> None:
    """The folded prompt, although the one before it was another."""
    book = PrefixBook()
    book.keep(KEY, sight_of(SAID[:9]), SAID[9], slot=0)
    folded = [SAID[20], *SAID[7:10]]
    book.begin_reading(KEY, folded)
    half = compare(book, [*folded, SAID[30]], fold_pk=1)
    assert half.expected_chars == 0, "what was there was written over, from the first message on"
    book.end_reading(KEY, folded)
    whole = compare(book, [*folded, SAID[30]], fold_pk=1)
    assert (whole.expected_chars, whole.at, whole.by) == (chars(folded), 0, "fold")
    book.keep(KEY, sight_of([*folded, SAID[30]], fold_pk=1), SAID[31], slot=0)
    assert compare(book, [*folded, *SAID[30:33]], fold_pk=1).by is None


def test_the_book_is_bounded() -> None:
    book = PrefixBook(limit_bytes=4_000)
    for number in range(50):
        book.keep((number, "local"), sight_of(SAID), None, slot=None)
        assert book.size <= 4_000
    messages = SAID[:2]
    known = [
        number
        for number in range(50)
        if book.compare(
            (number, "local"), sight_of(messages), messages, prompt_chars=1, image_chars=0
        ).by
        != UNKNOWN
    ]
    # 700 + 8 x 40 bytes each
    assert known == [47, 48, 49]
    for number in known:
        book.forget(number)
    assert book.size == 0


def used(prompt: int, cached: int | None, *, slot: int | None = 0, cloud: bool = False) -> Used:
    return Used(prompt * 4, prompt, cached, slot, cloud)


@pytest.mark.parametrize(
    ("move", "figures", "cause"),
    [
        (Move(3_600, slot=0), used(1_000, 900), None),  # 100 new tokens, as expected
        (Move(3_600, slot=0), used(1_000, None), None),  # it does not tell
        # 1,000 read of 1,000, where 64 + 1.2 x 400 + 50 = 594 may be
        (Move(3_600, slot=0), used(1_000, 0), "server restart"),
        (Move(3_600, slot=1), used(1_000, 0), "slot"),
        (Move(3_600), used(1_000, 0, slot=None), "slot"),
        # a summary was written in it meanwhile
        (Move(3_600, slot=0), Used(4_000, 1_000, 0, 0, False, is_own=False), "slot"),
        (Move(3_600, slot=0), used(1_000, 300), "template"),
        (Move(3_600, 0, "fold", slot=0), used(1_000, 0), "fold"),
        (Move(by=UNKNOWN), used(1_000, 0), UNKNOWN),
        # a cloud caches nothing below 1,024 tokens
        (Move(3_600), used(1_000, 0, slot=None, cloud=True), None),
        (Move(36_000), used(10_000, 0, slot=None, cloud=True), "provider"),
        (Move(36_000), used(10_000, 8_960, slot=None, cloud=True), None),
        # 500 characters of Chinese behind English: more tokens than their share of characters
        (Move(8_000, slot=0), Used(8_500, 2_550, 2_000, 0, False), None),
    ],
)
def test_where_nothing_moved_the_server_did_it(
    move: Move, figures: Used, cause: str | None
) -> None:
    assert name_cause(move, figures) == cause


# -- in turns ------------------------------------------------------------------------------------


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def told(house: House) -> list[tuple[Any, ...]]:
    """(moved by, at which message) of each attempt."""
    return house.rows("SELECT moved_by, moved_at FROM attempts ORDER BY pk")


def expected(house: House) -> list[tuple[int, int | None]]:
    """(characters of the prompt, of them expected) of each attempt."""
    return house.rows("SELECT prompt_chars, expected_chars FROM attempts ORDER BY pk")  # type: ignore[return-value]


async def test_ordinary_turns_go_on(house: House) -> None:
    for words in ("Hello.", "こんにちは", "Здравствуй"):
        await house.say(words, id="c")
    assert told(house) == [("new", None), (None, None), (None, None)]
    # "Reply 1." has eight characters: 6; 6 + 8 + 5; 19 + 8 + 10
    assert expected(house) == [(6, None), (19, 14), (37, 27)]


async def test_each_cause_is_stored(house: House) -> None:
    history: list[Say] = [system("You are Wren."), user("one"), assistant("Reply 1.")]
    await house.say(*history[:2], id="c")
    await house.say(*history, user("two"), id="c")
    history += [user("two"), assistant("Reply 2.")]
    await house.say(system("You are Wren. 12:04"), *history[1:], user("three"), id="c")
    history += [user("three"), assistant("Reply 3.")]
    tools = [{"type": "function", "function": {"name": "look"}}]
    history[0] = system("You are Wren. 12:04")
    await house.say(*history, user("four"), id="c", tools=tools)
    history += [user("four"), assistant("Reply 4.")]
    await house.say(*history[:5], user("other"), id="c", tools=tools)
    history = [*history[:5], user("other"), assistant("Reply 5.")]
    note = system("Be brief.")
    await house.say(*history, note, user("five"), id="c", tools=tools)
    history += [user("five"), assistant("Reply 6.")]
    await house.say(*history, note, user("six"), id="c", tools=tools)
    assert told(house) == [
        ("new", None),
        (None, None),
        ("system text", 0),
        ("tools", 0),
        ("edit", 5),
        (None, None),
        ("note", 7),  # it stood before "five" and stands before "six"
    ]


async def test_a_fold_is_named_and_expected_where_it_was_read_in(tmp_path: Path) -> None:
    for can_read in (False, True):
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            house, reader = furnish(Path(folder))
            reader.can_prefill = can_read
            await talk_into_debt(house)
            await grow(house)
            await house.say(line(9), id="c")
            assert told(house)[-1] == ("fold", 0)
            prompt, known = expected(house)[-1]
            assert known == (prompt - 341 if can_read else 0)
            house.store.close()


async def test_a_restart_of_the_gateway_is_named(house: House) -> None:
    await house.say("one", id="c")
    house.restart()
    await house.say("two", id="c")
    await house.say("three", id="c")
    assert [cause for cause, _ in told(house)] == ["new", "gateway restart", None]


async def test_each_backend_has_a_prompt_before(house: House) -> None:
    await house.say("one", id="c", model="foldgate")
    await house.say("two", id="c", model="cloudy")
    await house.say("three", id="c", model="foldgate")
    assert [cause for cause, _ in told(house)] == ["new", "new", None]
    # "one", its reply, "two", its reply, "three": the first two are there
    assert expected(house)[-1] == (3 + 8 + 3 + 8 + 5, 3 + 8)


async def test_a_retry_and_a_swipe_are_there_as_a_whole(house: House) -> None:
    history = [user("one"), assistant("Reply 1."), user("two")]
    await house.say(user("one"), id="c")
    await house.say(*history, id="c")
    await house.say(*history, id="c")
    assert told(house)[-1] == (None, None)
    assert expected(house)[-1] == (14, 14)


async def test_what_failed_is_not_held(house: House) -> None:
    from gateway.backends.faults import FaultKind, UpstreamFault

    await house.say("one", id="c")
    house.local.answers = [UpstreamFault(FaultKind.BAD_REQUEST, "no")]
    await house.try_to_say("two", id="c")
    await house.say("three", id="c")
    assert [cause for cause, _ in told(house)] == ["new", None, None]


async def test_a_deleted_conversation_leaves_nothing_in_the_book(house: House) -> None:
    said = await house.say("one", id="c")
    assert house.ctx.prefixes.size > 0
    house.ctx.prefixes.forget(said.turn.prepared.begun.conversation.pk)
    assert house.ctx.prefixes.size == 0


async def test_a_slot_that_lost_its_prompt_is_named(tmp_path: Path) -> None:
    """The server says 0 of 3,000 tokens, in the slot that held them all."""

    class Slotted(Model):
        async def _answer(self, call: Call) -> Any:
            call.trace.slot = 1
            return await super()._answer(call)

    house = House(tmp_path)
    house.models["local"] = model = Slotted("local")
    house.restart()
    usage = {"prompt_tokens": 900, "completion_tokens": 2, "total_tokens": 902}
    for cached in (0, 880, 0):
        told_usage = {**usage, "prompt_tokens_details": {"cached_tokens": cached}}
        model.answers = [deltas("Yes.", usage=told_usage)]  # type: ignore[arg-type]
        await house.say("x" * 60, id="c")
    assert [cause for cause, _ in told(house)] == ["new", None, "server restart"]
    house.store.close()


async def test_the_rows_are_asked_on_odd_turns_only(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.say("one", id="c")

    def refuse(*_: Any) -> None:
        raise AssertionError("an ordinary turn reads nothing for its report")

    monkeypatch.setattr(attempts, "boot_before", refuse)
    await house.say("two", id="c")
    await house.say("first of another", id="d")


@pytest.mark.parametrize("strict", ["true", "false"])
@pytest.mark.parametrize("note", [None, "Be brief."])
async def test_the_marks_are_those_of_the_prompt(
    tmp_path: Path, strict: str, note: str | None
) -> None:
    """They are taken from the tail where that is the prompt's end, and made anew elsewhere."""
    policies = POLICIES.replace(
        "local: {kind: scripted}", f"local: {{kind: scripted, strict_roles: {strict}}}"
    )
    house, _ = furnish(tmp_path, policies)
    history: list[Say] = []
    for number in range(14):
        history.append(user(line(number)))
        notes = [] if note is None else [system(note)]
        said = await house.say(system("You are Wren."), *history[:-1], *notes, history[-1], id="c")
        marks = said.turn.prepared.sight.marks[: len(said.bytes)]
        assert marks == array("q", map(hash, said.bytes))
        history.append(assistant(said.text))
        await grow(house)
    assert house.folds()
    house.store.close()


async def test_between_two_folds_a_prompt_is_the_one_before_its_reply_and_what_is_new(
    tmp_path: Path,
) -> None:
    """Law 4 over the real flows, and the report says so: only folds move the prefix."""
    house, _ = furnish(tmp_path)
    before: tuple[bytes, ...] | None = None
    reply = b""
    for number in range(60):
        said = await house.say(line(number)[: 100 + 37 * number % 240], id="c")
        cause = told(house)[-1][0]
        if before is not None and cause is None:
            assert said.bytes[: len(before)] == before
            assert len(said.bytes) == len(before) + 2
            assert reply in said.bytes[len(before)]
        else:
            assert cause == ("fold" if number else "new")
        before, reply = said.bytes, said.text.encode()
        await grow(house)
        house.write_gists()
    causes = [cause for cause, _ in told(house)]
    assert causes.count("fold") >= 5
    assert set(causes) == {"new", "fold", None}
    await house.ctx.prefills.aclose()
    house.store.close()
