"""What a memory shows beside its chapters: chosen at a fold, and only there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text

from gateway.flows.backgrounds import Place, background_cost, choose_background, find_unlisted
from gateway.flows.folds import foresee_fold
from gateway.flows.memories import show_memory, tell_memory
from gateway.flows.turn_rows import site_of
from gateway.flows.views import ViewCache
from gateway.prompts.memory import LEDGER_COST
from gateway.prompts.phrases import PHRASES
from gateway.store import (
    documents,
    fold_rows,
    ledger,
    profile,
    profile_edits,
    profile_learning,
    transcript,
)
from gateway.store.ledger_rows import EntryRow
from gateway.store.profile_learning import Told
from gateway.store.profile_report import describe_facts
from gateway.store.transcript import Node
from policies.budget import limits_of
from policies.schema import Policy
from tests.gateway.house import (
    POLICIES,
    House,
    Said,
    assistant,
    call_of,
    delta,
    system,
    tool,
    user,
)

EN = PHRASES["en"]


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def owner(house: House, name: str = "ann") -> int:
    return house.store.writing(transcript.ensure_owner, name, "", house.clock.ms)


def learn(house: House, text: str, name: str = "ann") -> int:
    """A fact of the owner's profile, by its row number."""

    def add(connection: Connection) -> int:
        pk = transcript.ensure_owner(connection, name, "", house.clock.ms)
        return profile_edits.add_fact(connection, pk, text, None, house.clock.ms).pk

    return house.store.writing(add)


def put(house: House, id: str, name: str, text: str) -> int:
    pk = house.conversation(id).pk
    row, _ = house.store.writing(documents.put_document, pk, name, text, house.clock.ms)
    return row.pk


def told_profile(*facts: str, words: str = EN.keep) -> dict[str, Any]:
    lines = "".join(f"- {fact}\n" for fact in facts)
    return user(f"{EN.profile}\n<profile>\n{lines}</profile>\n\n{words}")


# -- openings -------------------------------------------------------------------------------------


async def test_a_new_chat_knows_its_owner_from_the_first_turn(house: House) -> None:
    learn(house, "Lives in Oslo.")
    said = await house.say("Where do I live?", id="c")
    assert said.prompt == [
        told_profile("Lives in Oslo."),
        assistant(EN.noted),
        user("Where do I live?"),
    ]
    assert said.view == "verbatim"
    assert house.folds() == [("small", 1, 0, "opening", "[]")]
    # law 4: the next prompt is the one before it, the reply, and what is new
    again = await house.say("And since when?", id="c")
    assert again.bytes[:3] == said.bytes
    assert len(house.folds()) == 1


async def test_a_chat_without_anything_to_show_opens_as_ever(house: House) -> None:
    learn(house, "Lives in Bergen.", name="bob")
    said = await house.say("hi", id="c")
    assert said.prompt == [user("hi")]
    assert house.folds() == []


async def test_what_is_learned_later_moves_nothing_and_a_retry_sees_what_it_saw(
    house: House,
) -> None:
    said = await house.say("hi", id="c")
    learn(house, "Lives in Oslo.")
    again = await house.say("hi", id="c", retried=True)
    assert again.bytes == said.bytes
    more = await house.say("what now?", id="c")
    assert more.prompt[0] == user("hi")
    assert house.folds() == []


@pytest.mark.parametrize("strict", [False, True])
async def test_a_greeting_is_the_answer_to_an_opening(tmp_path: Path, strict: bool) -> None:
    """R18: never two replies side by side, which strict templates refuse."""
    kind = "{kind: scripted, strict_roles: true}" if strict else "{kind: scripted}"
    house = House(tmp_path, POLICIES.replace("local: {kind: scripted}", f"local: {kind}"))
    learn(house, "Lives in Oslo.")
    lead = [system("You are Mara."), assistant("Welcome, traveller!")]
    said = await house.say(*lead, user("hi there"), id="g")
    assert said.prompt == [
        lead[0],
        told_profile("Lives in Oslo."),
        lead[1],
        user("hi there"),
    ]
    more = await house.say(*lead, user("hi there"), assistant(said.text), user("and?"), id="g")
    assert more.bytes[: len(said.bytes)] == said.bytes


async def test_an_opening_speaks_the_language_of_the_chat(house: House) -> None:
    learn(house, "У неё есть кошка.")
    said = await house.say("Good evening, how are you?", id="c")
    assert said.prompt[:2] == [told_profile("У неё есть кошка."), assistant(EN.noted)]
    put(house, "c", "план.md", "Кошка живёт дома.")
    more = await house.say("Так что?", id="c")
    assert more.prompt[0]["content"].startswith(EN.documents)


async def test_a_chat_that_is_brought_in_opens_with_its_owner_too(house: House) -> None:
    learn(house, "Lives in Oslo.")
    said = await house.say(user("hi"), assistant("Well met."), user("and?"))
    assert said.prompt[0] == told_profile("Lives in Oslo.")
    assert [(at, kind) for _, at, _, kind, _ in house.folds()] == [(3, "opening")]


async def test_a_history_above_the_start_waits_for_its_fold(house: House) -> None:
    """What stands above 3,000 already is not made longer."""
    learn(house, "Lives in Oslo.")
    said = await house.say("x" * 2_700, id="c")
    assert said.prompt == [user("x" * 2_700)]


async def test_an_opening_that_fails_is_the_same_once_more(house: House) -> None:
    learn(house, "Lives in Oslo.")
    said = await house.say("hi", id="c")
    learn(house, "Has a cat.")
    house.restart()
    again = await house.say("hi", id="c", retried=True)
    assert again.bytes == said.bytes
    assert len(house.folds()) == 1


async def test_a_conversation_that_comes_from_another_tier_opens_there_too(house: House) -> None:
    await house.say("hi", id="c", model="foldgate")
    learn(house, "Lives in Oslo.")
    said = await house.say("go on", id="c", model="cloudy")
    assert said.prompt[0] == told_profile("Lives in Oslo.")
    assert house.folds() == [("wide", 3, 0, "opening", "[]")]
    back = await house.say("and back", id="c", model="foldgate")
    assert back.prompt[0] == user("hi"), "a view that began without it is told at its next fold"


async def test_a_profile_that_is_off_is_not_shown(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.policies = house.policies.replace(
        "gist: {length: 150}", "gist: {length: 150}\n    profile: {length: 0}"
    )
    house.restart()
    learn(house, "Lives in Oslo.")
    said = await house.say("hi", id="c")
    assert said.prompt == [user("hi")]


# -- renewals -------------------------------------------------------------------------------------


async def test_a_document_stands_in_the_view_from_the_next_user_message_on(house: House) -> None:
    before = await house.say("hi", id="c")
    put(house, "c", "plan.md", "Ship it.")
    said = await house.say("what is the plan?", id="c")
    lead = f'{EN.documents}\n<document name="plan.md">\nShip it.\n</document>\n\n{EN.keep}'
    assert said.prompt[:2] == [user(lead), assistant(EN.noted)]
    assert said.bytes[2:3] == before.bytes
    assert house.folds() == [("small", 3, 0, "renewal", "[]")]
    again = await house.say("and then?", id="c")
    assert again.bytes[: len(said.bytes)] == said.bytes
    # taken away: the view is as if it had never been there
    (row,) = house.store.reading(documents.list_documents, house.conversation("c").pk)
    house.store.writing(documents.remove_document, row, house.clock.ms)
    gone = await house.say("hm?", id="c")
    assert gone.bytes[0] == before.bytes[0]
    assert [kind for _, _, _, kind, _ in house.folds()] == ["renewal", "renewal"]


async def test_what_no_view_shows_any_more_is_soon_in_no_file(house: House) -> None:
    """A6: its row goes with a turn, its words from the WAL with the next look at the slots."""
    learn(house, "Calls a cat MAGPIE-4.")
    await house.say("hi", id="c")
    put(house, "c", "plan.md", "PELICAN-9")
    await house.say("go on", id="c")
    (row,) = house.store.reading(documents.list_documents, house.conversation("c").pk)
    house.store.writing(documents.remove_document, row, house.clock.ms)
    (fact,) = house.store.reading(profile.active, house.conversation("c").owner_pk)
    house.store.writing(profile_edits.delete_fact, fact, house.clock.ms)
    assert house.store.checkpointing()
    assert house.one("SELECT count(*) FROM documents") == 1, "a view shows it still"
    await house.say("hm?", id="c")
    assert house.one("SELECT count(*) FROM documents") == 0
    assert house.one("SELECT count(*) FROM profile_facts WHERE text <> ''") == 0
    await house.ctx.slots.look()
    for file in house.folder.iterdir():
        held = file.read_bytes()
        assert b"PELICAN-9" not in held and b"MAGPIE-4" not in held, file.name


async def test_a_document_that_gave_way_unseen_is_soon_in_no_file(house: House) -> None:
    await house.say("hi", id="c")
    put(house, "c", "plan.md", "PELICAN-9")
    put(house, "c", "plan.md", "Ship it.")
    await house.ctx.slots.look()
    for file in house.folder.iterdir():
        assert b"PELICAN-9" not in file.read_bytes(), file.name


async def test_a_renewal_that_changes_nothing_moves_nothing_and_is_done(house: House) -> None:
    learn(house, "Lives in Oslo.")
    before = await house.say("hi", id="c")
    house.store.writing(documents.ask_anew, [house.conversation("c").pk])
    said = await house.say("go on", id="c")
    assert said.bytes[:3] == before.bytes
    learn(house, "Has a cat.")
    later = await house.say("and on", id="c")
    assert later.bytes[: len(said.bytes)] == said.bytes


async def test_a_document_that_came_and_went_leaves_nothing_behind(house: House) -> None:
    """R5: what is learned weeks later waits for a fold all the same."""
    before = await house.say("hi", id="c")
    put(house, "c", "plan.md", "Ship it.")
    (row,) = house.store.reading(documents.list_documents, house.conversation("c").pk)
    house.store.writing(documents.remove_document, row, house.clock.ms)
    said = await house.say("go on", id="c")
    assert said.bytes[0] == before.bytes[0]
    learn(house, "Lives in Oslo.")
    later = await house.say("and on", id="c")
    assert later.bytes[: len(said.bytes)] == said.bytes


async def test_each_policys_view_sees_a_document_and_its_end(house: House) -> None:
    """R2: not only the tier that speaks first."""
    await house.say("hi", id="c")
    await house.say("hello", id="c", model="cloudy")
    put(house, "c", "plan.md", "Ship it.")
    for model in ("foldgate", "cloudy"):
        said = await house.say(f"and {model}?", id="c", model=model)
        assert "plan.md" in said.prompt[0]["content"]
    (row,) = house.store.reading(documents.list_documents, house.conversation("c").pk)
    house.store.writing(documents.remove_document, row, house.clock.ms)
    for model in ("cloudy", "foldgate"):
        said = await house.say(f"and without, {model}?", id="c", model=model)
        assert said.prompt[0] == user("hi")


def teach(house: House, id: str, fact: str) -> None:
    """A fact that was learned in a conversation."""

    def write(connection: Connection) -> None:
        known = house.conversation(id)
        connection.execute(
            text(
                "INSERT INTO profile_facts (id, owner_pk, conversation_pk, text, origin, state,"
                " created_ms) VALUES (:id, :owner, :chat, :fact, 'model', 'active', 1)"
            ),
            {"id": fact, "owner": known.owner_pk, "chat": known.pk, "fact": fact},
        )

    house.store.writing(write)


async def test_what_became_private_is_withheld_at_once_on_every_branch(house: House) -> None:
    """R1: by what is read, not by a renewal that one view may take from another."""
    await house.say("I live in Oslo.", id="a")
    teach(house, "a", "Lives in Oslo.")
    first = await house.say("hi", id="b")
    assert first.prompt[0] == told_profile("Lives in Oslo.")
    await house.say("hello", id="b", model="cloudy")
    pk = house.conversation("a").pk
    house.store.writing(
        lambda c: c.execute(
            text("UPDATE conversations SET private = true WHERE pk = :pk"), {"pk": pk}
        )
    )
    for again in (
        await house.say("and now?", id="b"),
        await house.say("hi", id="b", retried=True),
        await house.say("and you?", id="b", model="cloudy"),
        await house.say(user("hi"), assistant(first.text), user("or else?"), id="b"),
    ):
        assert b"Oslo" not in b"".join(again.bytes)
    own = await house.say("and here?", id="a")
    assert own.view == "verbatim"


TIGHT = POLICIES.replace(
    "{start: 3000, ceiling: 4000, headroom: 1200, keep: 600}",
    "{start: 3000, ceiling: 3300, headroom: 600, keep: 600}",
)


async def test_a_renewal_waits_where_it_would_bring_the_view_to_its_ceiling(tmp_path: Path) -> None:
    """8 turns of 349 and a document of 396 beside fixed words: 3,300 and more."""
    house = House(tmp_path, TIGHT)
    for number in range(8):
        await house.say(line(number), id="c")
    put(house, "c", "plan.md", "Ship it. " * 44)
    said = await house.say("x" * 10, id="c")
    assert said.prompt[0] == user(line(0))
    await house.say(line(9), id="c")
    house.write_chapters()
    said = await house.say("and now?", id="c")
    assert "plan.md" in said.prompt[0]["content"]
    assert [kind for _, _, _, kind, _ in house.folds()] == ["fold"]


async def test_a_renewal_is_no_reason_for_a_cut(tmp_path: Path) -> None:
    house = House(tmp_path, TIGHT)
    for number in range(6):
        await house.say(line(number), id="c")
    put(house, "c", "plan.md", "Ship it.")
    # 6 x 349 + 1,150 = 3,244 of 3,300 leave less than the new memory takes
    said = await house.say("x" * 1_150, id="c")
    assert said.view == "verbatim"
    assert said.prompt[0] == user(line(0))
    assert house.folds() == []


async def test_a_tool_result_renews_nothing(house: House) -> None:
    """Law 5: at a user message only."""
    house.local.answers = [[*_calling()]]
    await house.say("look", id="c")
    put(house, "c", "plan.md", "Ship it.")
    call = assistant(None, tool_calls=[call_of("t1")])
    said = await house.say(user("look"), call, tool("t1", "seen"), id="c")
    assert said.prompt[0] == user("look")
    then = await house.say("so?", id="c")
    assert "plan.md" in then.prompt[0]["content"]


def _calling() -> list[dict[str, Any]]:
    return [
        delta(
            {"role": "assistant", "content": None, "tool_calls": [{"index": 0, **call_of("t1")}]}
        ),
        delta({}, "tool_calls"),
    ]


# -- folds ----------------------------------------------------------------------------------------


def line(number: int) -> str:
    return (f"{number} " + "The keeper lit the lamp and waited. " * 20)[:341]


async def talk_to_the_fold(house: House, id: str = "c") -> Said:
    """Nine turns of 349 characters, the chapter, and what folds it."""
    for number in range(9):
        await house.say(line(number), id=id)
    house.write_chapters()
    return await house.say("on", id=id)


async def test_a_fold_shows_what_is_known_by_then_and_keeps_it(house: House) -> None:
    await house.say(line(0), id="c")
    learn(house, "Lives in Oslo.")
    for number in range(1, 9):
        said = await house.say(line(number), id="c")
        assert said.prompt[0] == user(line(0))
    house.write_chapters()
    thread = _thread(house, "c", "Who lit the lamp?", depth=2)
    _thread(house, "c", "Is it morning?", depth=18)
    said = await house.say("on", id="c")
    question, answer = said.prompt[:2]
    assert question == told_profile("Lives in Oslo.", words=EN.question)
    assert answer["content"].endswith(
        f"<ledger>\n{EN.open}\n[T1] Who lit the lamp?\n</ledger>\n</memory>"
    ), "what is told behind the border is not asked before it"
    fold = said.turn.prepared.begun.fold
    assert fold is not None
    assert fold.memory_chars == len(question["content"]) + len(answer["content"])
    # what changes now is seen at the next fold only
    mark(house, thread, "closed")
    learn(house, "Has a cat.")
    house.restart()
    again = await house.say("further", id="c")
    assert again.bytes[: len(said.bytes)] == said.bytes


async def test_the_next_fold_is_foreseen_with_all_that_it_shows(house: House) -> None:
    learn(house, "Lives in Oslo.")
    for number in range(9):
        said = await house.say(line(number), id="c")
    put(house, "c", "plan.md", "Ship it.")
    house.write_chapters()
    _thread(house, "c", "Who lit the lamp?", depth=2)
    begun, setting = said.turn.prepared.begun, said.turn.prepared.setting

    def foresee(connection: Connection) -> Any:
        conversation = transcript.conversation_by_pk(
            connection, begun.conversation.owner_pk, begun.conversation.pk
        )
        assert conversation is not None and conversation.head_pk is not None
        head = transcript.node_by_pk(connection, conversation.head_pk)
        site = site_of(begun, setting, head, begun.ratio, house.clock.ms)
        fold = fold_rows.deepest_fold(connection, conversation.pk, "small", head)
        foreseen = foresee_fold(connection, site, fold)
        assert foreseen is not None
        told = tell_memory(connection, foreseen.gist_pk, foreseen.versions, foreseen.shown)
        return foreseen, told

    foreseen, told = house.store.reading(foresee)
    said = await house.say("on", id="c")
    fold = said.turn.prepared.begun.fold
    assert fold is not None
    assert (fold.border_depth, fold.shown) == (foreseen.border_depth, foreseen.shown)
    assert all((fold.shown.profile, fold.shown.documents, fold.shown.open))
    assert told == house.store.reading(show_memory, fold, ViewCache())
    again = await house.say("further", id="c")
    assert again.turn.prepared.begun.fold == fold, "it was the renewal too"


async def test_an_entry_that_is_a_refusal_is_not_shown(house: House) -> None:
    """Law 7, when read; words that somebody said are exempt."""
    for number in range(9):
        await house.say(line(number), id="c")
    house.write_chapters()
    refusal = "I'm sorry, but I can't help with that request."
    _thread(house, "c", refusal, depth=2)
    _thread(house, "c", "Who lit the lamp?", depth=2)
    quote = entry(house, "c", "quote", refusal, depth=2, who="Ann")
    mark(house, quote, "pinned")
    said = await house.say("on", id="c")
    told = said.prompt[1]["content"]
    assert f"{EN.pinned}\n- “{refusal}” — Ann\n{EN.open}\n[T2] Who lit the lamp?\n" in told
    assert "[T1]" not in told


async def test_what_is_deleted_leaves_the_view_at_once(house: House) -> None:
    pk = learn(house, "Lives in Oslo.")
    learn(house, "Has a cat.")
    await house.say("hi", id="c")
    (fact,) = house.store.reading(profile.profile_by_pk, [pk])
    house.store.writing(profile_edits.delete_fact, fact, house.clock.ms)
    house.store.writing(_forget_text, pk)
    house.restart()
    said = await house.say("go on", id="c")
    assert said.prompt[0] == told_profile("Has a cat.")


def _forget_text(connection: Connection, pk: int) -> None:
    connection.execute(text("UPDATE profile_facts SET text = '' WHERE pk = :pk"), {"pk": pk})


# -- what is chosen -------------------------------------------------------------------------------


def entry(
    house: House, id: str, kind: Any, text: str, *, depth: int, who: str | None = None
) -> EntryRow:
    node = house.path(id)[depth - 1]

    def add(connection: Connection) -> EntryRow:
        return ledger.add_entry(
            connection,
            house.conversation(id).pk,
            kind=kind,
            text=text,
            last_pk=node.pk,
            last_depth=node.depth,
            origin="model",
            now_ms=house.clock.ms,
            who=who,
        )

    return house.store.writing(add)


def _thread(house: House, id: str, text: str, *, depth: int) -> EntryRow:
    return entry(house, id, "thread", text, depth=depth)


def mark(house: House, row: EntryRow, name: Any) -> None:
    def add(connection: Connection) -> None:
        ledger.add_mark(
            connection,
            house.conversation("c").pk,
            row.pk,
            name,
            origin="owner",
            now_ms=house.clock.ms,
        )

    house.store.writing(add)


def place(house: House, policy: Policy) -> Place:
    conversation = house.conversation("c")

    def head(connection: Connection) -> Node:
        assert conversation.head_pk is not None
        return transcript.node_by_pk(connection, conversation.head_pk)

    limits = limits_of(policy, 4.0)
    return Place(conversation.owner_pk, conversation.pk, policy, limits, house.store.reading(head))


def policy(**more: Any) -> Policy:
    """Of a fold that leaves 31,000 - 17,000: the ledger's own length is the least."""
    return Policy.model_validate({"name": "small", **more})


async def test_open_threads_are_chosen_whole_within_their_length(house: House) -> None:
    """[T1] and a text of 15 are 21 characters with the line's end: three fit 70, four do not."""
    for number in range(6):
        await house.say(f"turn {number}", id="c")
    for number in range(1, 7):
        _thread(house, "c", f"Is number {number} so?", depth=2 * number)
    here = place(house, policy(ledger={"length": 70}))

    def numbers(border: int, covered: int) -> list[int]:
        chosen = house.store.reading(choose_background, here, border=border, covered=covered)
        return [thread.number for thread in chosen.background.open]

    assert numbers(12, 0) == [4, 5, 6], "the newest, in the order of their numbers"
    assert numbers(12, 4) == [1, 2, 6], "first those that no chapter tells any more"
    assert numbers(4, 0) == [1, 2], "none that is told behind the border"
    assert numbers(12, 12) == [4, 5, 6]

    def unlisted(border: int, covered: int) -> list[int | None]:
        rows = house.store.reading(find_unlisted, here, border=border, covered=covered)
        return [row.number for row in rows]

    assert unlisted(12, 4) == []
    assert unlisted(12, 8) == [1]
    assert unlisted(12, 12) == [1, 2, 3]


async def test_pins_come_first_and_closed_threads_last(house: House) -> None:
    for number in range(6):
        await house.say(f"turn {number}", id="c")
    rows = [_thread(house, "c", f"Is number {n} so?", depth=2 * n) for n in range(1, 7)]
    for row in rows[:4]:
        mark(house, row, "closed")
    fact = entry(house, "c", "fact", "The code is 4711.", depth=2)
    mark(house, fact, "pinned")
    mark(house, rows[5], "pinned")

    def chosen(**more: Any) -> tuple[list[str], list[int], list[int]]:
        here = place(house, policy(ledger=more))
        found = house.store.reading(choose_background, here, border=12).background
        return (
            [pin.text for pin in found.pinned],
            [thread.number for thread in found.open],
            [thread.number for thread in found.closed],
        )

    pins = ["The code is 4711.", "Is number 6 so?"]
    assert chosen() == (pins, [5], [2, 3, 4]), "what is pinned is not listed twice"
    assert chosen(closed=1) == (pins, [5], [4])
    assert chosen(closed=0) == (pins, [5], [])
    # "- The code is 4711." is 20, "- Is number 6 so?" 18, each thread 21 characters
    assert chosen(length=21) == (pins, [5], [])
    assert chosen(length=21, pins=20 + 17) == (pins[:1], [6], [])
    assert chosen(length=0) == (pins, [], [])
    assert chosen(length=0, pins=0) == ([], [], [])

    def leave(chars: int) -> None:
        """A document that leaves so much of what it, pins and threads have together."""
        room = 31_000 - 16_000 - 1_500 - 6_000 - 1_000
        frame = len('<document name="d">\n\n</document>\n')
        put(house, "c", "d", "x" * (room - chars - frame))

    # threads give way to pins, which give way to documents
    for chars, told in (
        (20 + 18 + 21, (pins, [5], [])),
        (20 + 18 + 20, (pins, [], [])),
        (20 + 17, (pins[:1], [], [])),
        (19, (pins[1:], [], [])),
    ):
        leave(chars)
        assert chosen(length=chars) == told


async def test_a_background_costs_no_more_than_was_planned_for_it(house: House) -> None:
    for number in range(6):
        await house.say(f"turn {number}", id="c")
    empty = place(house, policy())
    assert house.store.reading(background_cost, empty) == 0
    for number in range(1, 7):
        _thread(house, "c", f"Is number {number} so?", depth=2 * number)
    learn(house, "Lives in Oslo.")
    put(house, "c", "plan.md", "Ship it.")
    mark(house, entry(house, "c", "fact", "The code is 4711.", depth=2), "pinned")
    for length, pins in ((0, 0), (0, 30), (25, 0), (25, 30), (70, 4_000), (1_000, 4_000)):
        here = place(house, policy(ledger={"length": length, "pins": pins}))
        planned = house.store.reading(background_cost, here)
        for border in range(0, 13, 2):
            chosen = house.store.reading(choose_background, here, border=border)
            assert chosen.background.cost <= planned
    # all six threads are 6 x 21 characters, below the length, and the pin 20
    facts = house.store.reading(choose_background, here, border=0).background.cost
    assert planned == facts + 6 * 21 + 20 + LEDGER_COST


async def test_documents_are_shown_whole_while_they_fit(house: House) -> None:
    await house.say("hi", id="c")
    # 31,000 - 16,000 - 1,500 - 6,000 - 1,000 - 1,000 = 5,500
    for name, length in (("one", 3_000), ("two", 3_000), ("three", 2_000)):
        put(house, "c", name, f"{name} " + "x" * length)
    chosen = house.store.reading(choose_background, place(house, policy()), border=0)
    assert [document.name for document in chosen.background.documents] == ["one", "three"]


async def test_a_profile_is_shown_in_the_order_in_which_it_was_told(house: House) -> None:
    await house.say("hi", id="c")
    for fact in ("a" * 40, "b" * 60, "c" * 40):
        learn(house, fact)
    # newest first while they fit: 43 and 63 characters of 110
    here = place(house, policy(profile={"length": 110}))
    chosen = house.store.reading(choose_background, here, border=0)
    assert chosen.background.profile == ["b" * 60, "c" * 40]


async def test_what_an_edit_took_back_is_told_to_no_other_chat(house: House) -> None:
    """Laws 3 and 6: through real turns, and told to its owner as what it is."""
    first = await house.say("hello", id="a")
    told = await house.say("I live in Oslo.", id="a")
    await house.say("and so on", id="a")
    chat, said = house.conversation("a"), house.path("a")
    fact = Told("The user lives in Oslo.", "home", said[2].pk)

    def learn_it(connection: Connection) -> None:
        span = [row.pk for row in said]
        profile_learning.learn(
            connection, chat.owner_pk, chat.pk, [fact], span=span, now_ms=house.clock.ms
        )

    house.store.writing(learn_it)
    assert b"Oslo" in b"".join((await house.say("hi", id="b")).bytes)
    history = [user("hello"), assistant(first.text)]
    await house.say(*history, user("I live in Bergen."), id="a")
    assert b"Oslo" not in b"".join((await house.say("hi", id="c")).bytes)
    assert on_paths(house) == [False]
    await house.say(*history, user("I live in Oslo."), assistant(told.text), user("ok?"), id="a")
    assert b"Oslo" in b"".join((await house.say("hi", id="d")).bytes)
    assert on_paths(house) == [True]


def on_paths(house: House) -> list[bool]:
    def read(connection: Connection) -> list[bool]:
        rows = profile.active(connection, house.conversation("a").owner_pk)
        return [line["on_path"] for line in describe_facts(connection, rows)]

    return house.store.reading(read)
