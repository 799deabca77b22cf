"""What an owner changes enters views at a fold, and not before: profile, documents, chapters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from gateway.flows import ledger_edits, memory_edits, pins
from gateway.flows.erase import erase_conversation
from gateway.flows.hand import Hand
from gateway.flows.rounds import Draft
from gateway.flows.tellings import store_chapter
from gateway.store import chapter_rows, documents, ledger, profile, profile_edits, profile_learning
from gateway.store.memory_report import read_memory
from gateway.store.profile import ProfileRow
from gateway.store.profile_learning import Told
from gateway.store.transcript import find_owner, node_by_pk
from policies.ledger.values import Entries, Fact, Thread
from policies.values import Span
from tests.gateway.house import POLICIES, House, Said, assistant, user

Gist = dict[str, Any]

FACTS = [
    "I live in Kyoto.",
    "京都に住んでいます。",
    "我住在杭州。",
    "부산에 살아요.",
    "Я живу в Казани.",
    "Vivo en Sevilla.",
]


def shown(said: Said) -> str:
    """Everything of a prompt as one text."""
    return "\n".join(str(message["content"]) for message in said.prompt)


def goes_on(before: Said, after: Said) -> bool:
    """Law 4: the prompt is the one before it, plus the reply, plus what is new."""
    return after.bytes[: len(before.bytes)] == before.bytes


def owner_pk(house: House) -> int:
    found = house.store.reading(find_owner, "ann", "")
    assert found is not None
    return found


def add_fact(house: House, text: str, about: str | None = None) -> ProfileRow:
    return house.store.writing(profile_edits.add_fact, owner_pk(house), text, about, house.clock.ms)


def hand(house: House, id: str, *, now: bool = False) -> Hand:
    return Hand(house.conversation(id), house.clock.ms, now)


@pytest.mark.parametrize("text", FACTS)
async def test_a_new_chat_knows_its_owner_and_an_old_one_from_its_next_fold(
    house: House, text: str
) -> None:
    before = await house.say("hello", id="old")
    add_fact(house, text)
    after = await house.say("and?", id="old")
    assert text not in shown(after)
    assert goes_on(before, after)
    new = await house.say("hi there", id="new")
    assert text in shown(new)
    assert goes_on(new, await house.say("well?", id="new"))
    bert = await house.say("hi there", id="new", owner="bert")
    assert text not in shown(bert)


async def test_an_edit_waits_for_a_fold_or_is_asked_for_now(house: House) -> None:
    await house.say("hello", id="x")
    fact = add_fact(house, "I live in Kyoto.", "home")
    one = await house.say("hi there", id="a")
    edit = (profile_edits.edit_fact, fact, "I live in Nara.", "home", house.clock.ms)
    new = house.store.writing(*edit)
    two = await house.say("so", id="a")
    assert goes_on(one, two)
    assert "Nara" not in shown(two)
    house.store.writing(memory_edits.announce_fact, new, now=True)
    three = await house.say("and so", id="a")
    assert "I live in Nara." in shown(three)
    assert "Kyoto" not in shown(three)
    assert goes_on(three, await house.say("on", id="a"))


async def test_a_deleted_fact_stays_until_the_view_folds_and_then_goes(house: House) -> None:
    await house.say("hello", id="x")
    fact = add_fact(house, "I live in Kyoto.")
    one = await house.say("hi there", id="a")
    house.store.writing(memory_edits.delete_fact, fact, house.clock.ms, now=False)
    house.restart()
    two = await house.say("so", id="a")
    assert goes_on(one, two)
    assert "Kyoto" not in shown(await house.say("hi there", id="b"))
    again = house.store.writing(profile_edits.add_fact, owner_pk(house), "I like tea.", None, 1)
    house.store.writing(memory_edits.announce_fact, again, now=True)
    three = await house.say("on", id="a")
    assert "I like tea." in shown(three)
    assert "Kyoto" not in shown(three)
    assert house.rows("SELECT text FROM profile_facts WHERE text != ''") == [("I like tea.",)]


async def test_a_deletion_asked_for_now_renews_those_that_show_it(house: House) -> None:
    await house.say("hello", id="x")
    fact = add_fact(house, "I live in Kyoto.")
    await house.say("hi there", id="a")
    house.store.writing(memory_edits.delete_fact, fact, house.clock.ms, now=True)
    assert [house.conversation(id).renew_after is not None for id in ("x", "a")] == [False, True]
    assert house.rows("SELECT text FROM profile_facts WHERE text != ''") == []
    assert "Kyoto" not in shown(await house.say("so", id="a"))


def learn(connection: Connection, house: House, id: str, text: str) -> None:
    chat = house.conversation(id)
    path = house.path(id)
    profile_learning.learn(
        connection,
        chat.owner_pk,
        chat.pk,
        [Told(text, "word", path[0].pk)],
        span=[row.pk for row in path],
        now_ms=house.clock.ms,
    )


async def test_what_was_learned_leaves_every_view_with_its_conversation(house: House) -> None:
    """Law 10: at once, also from views of other conversations."""
    await house.say("the word is ORCHID-7", id="a")
    house.store.writing(learn, house, "a", "The word is ORCHID-7.")
    assert "ORCHID-7" in shown(await house.say("hi there", id="b"))
    await erase_conversation(house.ctx, lambda connection: house.conversation("a"))
    after = await house.say("so", id="b")
    assert "ORCHID-7" not in shown(after)
    files = b"".join(path.read_bytes() for path in house.folder.glob("house.db*"))
    assert b"ORCHID-7" not in files


async def test_a_document_is_seen_by_the_next_user_message(house: House) -> None:
    one = await house.say("hello", id="a")
    put = (documents.put_document, house.conversation("a").pk, "rules", "静かに。", house.clock.ms)
    row, _ = house.store.writing(*put)
    two = await house.say("so", id="a")
    assert "静かに。" in shown(two)
    assert not goes_on(one, two)
    assert goes_on(two, await house.say("and", id="a"))
    house.store.writing(documents.remove_document, row, house.clock.ms)
    gone = await house.say("on", id="a")
    assert "静かに。" not in shown(gone)
    assert house.rows("SELECT count(*) FROM documents") == [(0,)]


async def fold(house: House, id: str) -> Said:
    """Talk until the view has folded."""
    said: Said | None = None
    for number in range(40):
        said = await house.say(f"{number} " + "word " * 60, id=id)
        house.write_chapters()
        if said.view == "folded":
            return said
    raise AssertionError("it never folded")


async def test_an_owners_chapter_enters_at_the_next_fold(house: House) -> None:
    folded = await fold(house, "a")
    chat = house.conversation("a")
    first = house.store.reading(chapter_rows.all_chapters, chat.pk)[0]
    text = "THE OWNER'S OWN WORDS"
    house.store.writing(memory_edits.edit_chapter, hand(house, "a"), first.id, text)
    after = await house.say("so", id="a")
    assert goes_on(folded, after)
    assert text not in shown(after)
    house.store.writing(memory_edits.edit_chapter, hand(house, "a", now=True), first.id, text)
    renewed = await house.say("and", id="a")
    assert text in shown(renewed)
    house.store.writing(memory_edits.edit_chapter, hand(house, "a", now=True), first.id, "")
    gone = await house.say("on", id="a")
    assert text not in shown(gone)
    assert first.text is not None
    assert first.text not in shown(gone)
    house.store.writing(memory_edits.undo_chapter, hand(house, "a", now=True), first.id, None)
    assert text in shown(await house.say("well", id="a"))


async def test_a_pinned_entry_enters_at_a_fold_and_leaves_at_one(house: House) -> None:
    await fold(house, "a")
    chat = house.conversation("a")
    first = house.store.reading(chapter_rows.all_chapters, chat.pk)[0]

    def add(connection: Connection) -> Any:
        return ledger.add_entry(
            connection,
            chat.pk,
            kind="quote",
            text="not twice",
            who="Ann",
            last_pk=first.last_pk,
            last_depth=first.last_depth,
            chapter_pk=first.pk,
            origin="model",
            now_ms=house.clock.ms,
        )

    quote = house.store.writing(add)
    house.store.writing(ledger_edits.act, hand(house, "a", now=True), quote.id, "pin")
    pinned = await house.say("so", id="a")
    assert "not twice" in shown(pinned)
    memory = house.store.reading(read_memory, house.conversation("a"), default_policy="small")
    assert [view["pins"] for view in memory["views"]] == [[quote.id]]
    edited = house.store.writing(
        ledger_edits.edit_entry, hand(house, "a"), quote.id, {"text": "only once"}
    )
    same = await house.say("and", id="a")
    assert goes_on(pinned, same)
    house.store.writing(ledger_edits.act, hand(house, "a", now=True), edited.id, "pin")
    renewed = shown(await house.say("on", id="a"))
    assert ("only once" in renewed, "not twice" in renewed) == (True, False)
    house.store.writing(ledger_edits.delete_entry, hand(house, "a", now=True), edited.id)
    assert "only once" not in shown(await house.say("well", id="a"))


async def test_what_its_owner_deleted_does_not_come_back_with_a_re_summary(house: House) -> None:
    await house.say("I live in Kyoto and I like tea.", "hm", id="a")
    chat, path = house.conversation("a"), house.path("a")
    pks = [row.pk for row in path]
    span = Span(1, len(path), 100)
    ends = {"first_pk": pks[0], "last_pk": pks[-1], "now_ms": 1}
    chapter, _ = house.store.writing(chapter_rows.add_chapter, chat.pk, span, **ends)

    def store(fact: str, about: str, thread: str) -> None:
        told = Entries(facts=(Fact(fact, about, 0),), opened=(Thread(thread, 0),))
        draft = Draft("They talked.", "local", 5, entries=told)
        house.store.writing(
            store_chapter, chat.pk, chapter, draft, pks=pks, learns=True, now_ms=house.clock.ms
        )

    def live(kind: str) -> list[str]:
        states = house.store.reading(
            ledger.states_on_path, chat.pk, house.store.reading(node_by_pk, pks[-1])
        )
        return [s.row.text for s in states if s.row.kind == kind and s.deleted is None]

    store("The user lives in Kyoto.", "home", "Will they move?")
    (fact,) = house.store.reading(profile.active, owner_pk(house))
    house.store.writing(memory_edits.delete_fact, fact, house.clock.ms, now=False)
    for entry, _ in house.store.reading(ledger.all_entries, chat.pk):
        house.store.writing(ledger_edits.delete_entry, hand(house, "a"), entry.id)
    store("The user's home is in Kyoto, Japan.", "residence", "Will they move house?")
    assert (live("fact"), live("thread")) == ([], [])
    assert house.store.reading(profile.active, owner_pk(house)) == []
    store("The user lives in Kyoto.", "home", "Who is at the door?")
    assert (live("fact"), live("thread")) == ([], ["Who is at the door?"])
    assert house.store.reading(profile.active, owner_pk(house)) == []


async def show_a_gist(house: House, id: str) -> tuple[Said, Gist]:
    """Talk until a view shows a gist; the prompt that does, and the gist's newest version."""
    for number in range(120):
        said = await house.say(f"{number} " + "word " * 60, id=id)
        house.write_chapters()
        house.write_gists()
        if "Gist to" in shown(said):
            chat = house.conversation(id)
            memory = house.store.reading(read_memory, chat, default_policy="small")
            return said, memory["gists"][-1]
    raise AssertionError("no gist was ever shown")


async def test_an_owners_gist_enters_at_a_fold_and_is_undone(house: House) -> None:
    before, gist = await show_a_gist(house, "a")
    edit = (memory_edits.edit_gist, hand(house, "a"), gist["id"], "THE OWNER'S GIST")
    house.store.writing(*edit)
    same = await house.say("so", id="a")
    assert goes_on(before, same)
    house.store.writing(memory_edits.edit_gist, hand(house, "a", now=True), *edit[2:])
    edited = shown(await house.say("and", id="a"))
    assert ("THE OWNER'S GIST" in edited, gist["text"] in edited) == (True, False)
    undo = (hand(house, "a", now=True), gist["id"], None)
    house.store.writing(memory_edits.undo_gist, *undo, major=False)
    assert gist["text"] in shown(await house.say("on", id="a"))


async def test_a_major_gc_that_is_undone_gives_its_chapters_back(house: House) -> None:
    before, gist = await show_a_gist(house, "a")
    chat = house.conversation("a")
    covered = [
        row
        for row in house.store.reading(chapter_rows.all_chapters, chat.pk)
        if row.text and row.text not in shown(before)
    ]
    assert covered
    undo = (hand(house, "a", now=True), gist["id"], None)
    house.store.writing(memory_edits.undo_gist, *undo, major=True)
    after = shown(await house.say("and", id="a"))
    assert gist["text"] not in after
    assert all(str(row.text) in after for row in covered)


async def test_what_becomes_private_is_withdrawn_from_other_chats(tmp_path: Path) -> None:
    """Learned before it became private, shown elsewhere: gone at the next user message there."""
    secret = "  secret: {tiers: [{backend: local, policy: small}], private: true}\n"
    house = House(tmp_path, POLICIES + secret)
    try:
        await house.say("the word is ORCHID-7", id="a")
        house.store.writing(learn, house, "a", "The word is ORCHID-7.")
        before = await house.say("hi there", id="b")
        assert "ORCHID-7" in shown(before)
        await house.say("only between us", id="a", model="secret")
        assert "ORCHID-7" not in shown(await house.say("so", id="b"))
        assert "ORCHID-7" not in shown(await house.say("hello", id="c"))
    finally:
        house.store.close()


async def test_a_pinned_chapter_stays_when_it_is_folded_into_the_gist(house: House) -> None:
    """And is told once while it stands itself."""
    await fold(house, "a")
    chat = house.conversation("a")
    first = house.store.reading(chapter_rows.all_chapters, chat.pk)[0]
    text = "THEY SWORE AN OATH"
    edited = hand(house, "a", now=True)
    house.store.writing(memory_edits.edit_chapter, edited, first.id, text)
    row = house.store.reading(memory_edits.find_chapter, chat, first.id)
    house.store.writing(pins.pin_chapter, edited, house.ctx.policies.file, row)
    assert shown(await house.say("so", id="a")).count(text) == 1
    said, _ = await show_a_gist(house, "a")
    chapters = "".join(str(m["content"]) for m in said.prompt).split("<ledger>")
    assert (shown(said).count(text), text in chapters[1]) == (1, True)
    row = house.store.reading(memory_edits.find_chapter, chat, first.id)
    house.store.writing(pins.unpin_chapter, hand(house, "a", now=True), row)
    assert text not in shown(await house.say("on", id="a"))


async def test_a_server_that_runs_hears_of_what_another_program_deletes(house: House) -> None:
    """A swipe after `foldgate memories delete --now`: the same question, without the fact."""
    await house.say("hello", id="x")
    fact = add_fact(house, "I live in Kyoto.")
    one = await house.say("hi there", id="a")
    assert "Kyoto" in shown(one)
    house.store.writing(memory_edits.delete_fact, fact, house.clock.ms, now=True)
    await house.ctx.slots.look()
    assert "Kyoto" not in shown(await house.say(user("hi there"), id="a", retried=True))


@pytest.mark.parametrize("text", FACTS)
async def test_an_old_fold_tells_the_same_warm_and_cold_when_its_fact_is_gone(
    house: House, text: str
) -> None:
    """The owner edits an older message: its branch stands on the fold that showed the old fact."""
    await house.say("hello", id="x")
    fact = add_fact(house, text, "home")
    one = await house.say(user("hi there"), id="a")
    history = [user("hi there"), assistant(one.text)]
    edit = (profile_edits.edit_fact, fact, "I live in Nara.", "home", house.clock.ms)
    newer = house.store.writing(*edit)
    house.store.writing(memory_edits.announce_fact, newer, now=True)
    two = await house.say(*history, user("A"), id="a")
    assert ("Nara" in shown(two), text in shown(two)) == (True, False)
    house.store.writing(memory_edits.delete_fact, newer, house.clock.ms, now=False)
    await house.ctx.slots.look()
    warm = await house.say(*history, user("B"), id="a")
    house.restart()
    cold = await house.say(*history, user("B"), id="a")
    assert (warm.bytes, text in shown(warm)) == (cold.bytes, False)


async def test_a_fact_of_one_ledger_that_goes_now_leaves_the_other_chats(house: House) -> None:
    await house.say("I live in Kyoto", "hm", id="a")
    chat, path = house.conversation("a"), house.path("a")
    house.store.writing(learn, house, "a", "The user lives in Kyoto.")
    shows = await house.say("hi there", id="b")
    assert "Kyoto" in shown(shows)

    def add(connection: Connection) -> Any:
        return ledger.add_entry(
            connection,
            chat.pk,
            kind="fact",
            text="The user lives in Kyoto.",
            about="word",
            source_pk=path[0].pk,
            last_pk=path[1].pk,
            last_depth=2,
            origin="model",
            now_ms=house.clock.ms,
        )

    entry = house.store.writing(add)
    house.store.writing(ledger_edits.delete_entry, hand(house, "a", now=True), entry.id)
    assert "Kyoto" not in shown(await house.say("so", id="b"))


async def test_a_fact_of_one_ledger_in_other_words_is_known_in_these_elsewhere(
    house: House,
) -> None:
    await house.say("the word is ORCHID-7", "so?", id="a")
    house.store.writing(learn, house, "a", "The word is ORCHID-7.")
    chat, path = house.conversation("a"), house.path("a")

    def add(connection: Connection) -> Any:
        return ledger.add_entry(
            connection,
            chat.pk,
            kind="fact",
            text="The word is ORCHID-7.",
            about="word",
            source_pk=path[0].pk,
            last_pk=path[1].pk,
            last_depth=2,
            origin="model",
            now_ms=house.clock.ms,
        )

    entry = house.store.writing(add)
    before = await house.say("hi there", id="b")
    edit = (ledger_edits.edit_entry, hand(house, "a", now=True), entry.id)
    house.store.writing(*edit, {"text": "The word was ORCHID-8."})
    after = shown(await house.say("so", id="b"))
    assert ("ORCHID-7" in shown(before), "ORCHID-7" in after, "ORCHID-8" in after) == (
        True,
        False,
        True,
    )
    undo = (ledger_edits.undo_entry, hand(house, "a", now=True))
    house.store.writing(*undo, house.rows("SELECT id FROM ledger_entries ORDER BY pk DESC")[0][0])
    assert "ORCHID-7" in shown(await house.say("and", id="b"))
