"""Law 7 under the owner's hand: what a judge refused comes back in nobody's name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection

from gateway.errors import Conflict
from gateway.flows import memory_edits, pins
from gateway.flows.backgrounds import read_background
from gateway.flows.hand import Hand
from gateway.flows.memories import tell_memory
from gateway.store import ledger, profile, profile_edits, quarantine
from gateway.store.fold_rows import NONE, Shown
from gateway.store.ledger_report import pins_of_chapters, pins_of_gists
from gateway.store.profile import ProfileRow
from tests.gateway.flows.test_scrub import FILE, TALES, Stored
from tests.gateway.house import House
from tests.gateway.seeds import NOW

UNBORNE = "Boris sailed to Lisbon with 400 soldiers and burned the harbour down."
LATER = NOW + 10


class Part:
    """The chapter or the gist of a small conversation, as its owner handles it."""

    def __init__(self, connection: Connection, kind: str, language: str = "en") -> None:
        self.connection = connection
        self.said, reply, self.told, self.refusal = TALES[language]
        self.kind = kind
        self.stored = Stored(connection, self.said, reply)
        self.add = self.stored.version if kind == "chapter" else self.stored.gist
        self.hand = Hand(self.stored.chat, LATER)

    @property
    def id(self) -> str:
        return str(self.stored.memory()[f"{self.kind}s"][0]["id"])

    def undo(self, version: int | None = None) -> None:
        if self.kind == "chapter":
            memory_edits.undo_chapter(self.connection, self.hand, self.id, version)
        else:
            memory_edits.undo_gist(self.connection, self.hand, self.id, version, major=False)

    def edit(self, text: str) -> None:
        if self.kind == "chapter":
            memory_edits.edit_chapter(self.connection, self.hand, self.id, text)
        else:
            memory_edits.edit_gist(self.connection, self.hand, self.id, text)

    def pin(self) -> None:
        if self.kind == "chapter":
            row = memory_edits.find_chapter(self.connection, self.stored.chat, self.id)
            pins.pin_chapter(self.connection, self.hand, FILE, row)
        else:
            gist = memory_edits.find_gist(self.connection, self.stored.chat, self.id)
            pins.pin_gist(self.connection, self.hand, FILE, gist)

    def pinned(self) -> list[int]:
        """The row numbers of what is pinned."""
        pk = self.stored.chat.pk
        chapters = pins_of_chapters(self.connection, pk).values()
        return [row.pk for row in (*chapters, *pins_of_gists(self.connection, pk).values())]

    def text(self) -> str:
        return str(self.stored.memory()[f"{self.kind}s"][0]["text"])

    def shown(self, pins: tuple[int, ...] = ()) -> str:
        """What a fold to the newest version shows, or of pins alone."""
        versions: list[int] = []
        gist = None
        if not pins and self.kind == "chapter":
            row = memory_edits.find_chapter(self.connection, self.stored.chat, self.id)
            versions = [row.version_pk or 0]
        elif not pins:
            gist = memory_edits.find_gist(self.connection, self.stored.chat, self.id).pk
        shown = Shown(pins=pins) if pins else NONE
        pk = self.stored.chat.pk
        return str(tell_memory(self.connection, gist, versions, shown, conversation_pk=pk))


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    built = House(tmp_path)
    yield built
    built.store.close()


@contextmanager
def part(house: House, kind: str, language: str = "en") -> Iterator[Part]:
    with house.store._writer.begin() as connection:
        yield Part(connection, kind, language)


KINDS = pytest.mark.parametrize("kind", ["chapter", "gist"])


@KINDS
@pytest.mark.parametrize("language", sorted(TALES))
def test_an_undo_brings_no_scrubbed_refusal_back(house: House, kind: str, language: str) -> None:
    with part(house, kind, language) as one:
        one.add(one.refusal)
        one.stored.scrub()
        before = one.stored.memory()
        for version in (None, 1):
            with pytest.raises(Conflict):
                one.undo(version)
        assert one.stored.memory() == before
        one.edit(one.told)
        with pytest.raises(Conflict, match="in quarantine or nothing but a refusal"):
            one.undo(1)
        one.undo()  # to the stand-in, which its owner's words took the place of
        assert one.text() == before[f"{kind}s"][0]["text"]


@KINDS
def test_nor_what_was_quarantined_for_another_reason(house: House, kind: str) -> None:
    with part(house, kind) as one:
        one.add(UNBORNE)
        assert [finding.kind for finding in one.stored.scrub()] == [kind]
        with pytest.raises(Conflict, match="in quarantine"):
            one.undo(1)
        with pytest.raises(Conflict, match="in quarantine"):
            one.edit(UNBORNE)
        one.edit(f"It is my story that {UNBORNE}")
        assert "It is my story" in one.shown()


@KINDS
def test_nor_a_refusal_that_nobody_has_found_yet(house: House, kind: str) -> None:
    with part(house, kind) as one:
        one.add(one.refusal)
        one.edit(one.told)
        with pytest.raises(Conflict):
            one.undo()
        one.edit("")
        one.undo()
        assert one.text() == one.told


@KINDS
@pytest.mark.parametrize("told", [TALES["en"][3], UNBORNE])
def test_what_came_back_before_gives_way_when_read(house: House, kind: str, told: str) -> None:
    """Rows that an earlier program left: the bad text once more, in the owner's name."""
    with part(house, kind) as one:
        one.add(told)
        one.stored.scrub()
        one.hand = Hand(one.stored.chat, NOW + 1)
        write = one.stored.version if kind == "chapter" else one.stored.gist
        write("", "owner")
        restored = write(told, "owner")
        table = "chapter_versions" if kind == "chapter" else "gists"
        one.connection.exec_driver_sql(
            f"UPDATE {table} SET created_ms = {NOW + 2} WHERE pk = {restored}"
        )
        assert one.text() == told
        assert told not in one.shown()
        assert one.said[:20] in one.shown()
        with pytest.raises(Conflict, match="no view shows it"):
            one.pin()


@KINDS
def test_a_view_in_force_does_not_move_when_its_text_is_found_bad(house: House, kind: str) -> None:
    """Law 6: a scrub enters a view at a fold; what its owner had brought back before stands."""
    with part(house, kind) as one:
        one.add(UNBORNE)
        one.edit(one.told)
        one.undo()
        before = one.shown()
        assert UNBORNE in before
        quarantine.add_quarantined(
            one.connection,
            one.stored.chat.pk,
            chapter_pk=one.stored.chapter if kind == "chapter" else None,
            kind=kind,
            backend="local",
            reasons=["ungrounded"],
            text=UNBORNE,
            finish_reason=None,
            now_ms=LATER + 1,
        )
        assert one.shown() == before


@KINDS
def test_what_a_later_judge_let_in_is_fit(house: House, kind: str) -> None:
    with part(house, kind) as one:
        one.add(one.told)
        quarantine.add_quarantined(
            one.connection,
            one.stored.chat.pk,
            chapter_pk=one.stored.chapter if kind == "chapter" else None,
            kind=kind,
            backend="local",
            reasons=["ungrounded"],
            text=one.told,
            finish_reason=None,
            now_ms=NOW - 1,
        )
        one.edit("other words")
        one.undo()
        assert one.told in one.shown()


@KINDS
@pytest.mark.parametrize("language", sorted(TALES))
def test_an_owners_own_words_are_the_owners(house: House, kind: str, language: str) -> None:
    """Also where they read like a refusal: nothing that an owner writes is judged."""
    with part(house, kind, language) as one:
        one.add(one.told)
        one.edit(one.refusal)
        assert one.refusal in one.shown()
        one.pin()
        assert one.refusal in one.shown(tuple(one.pinned()))
        one.edit("other words")
        one.undo()
        assert one.refusal in one.shown()


@KINDS
def test_what_its_owner_never_touched_is_not_undone(house: House, kind: str) -> None:
    with part(house, kind) as one:
        one.add("what was said", "stand-in")
        one.add(one.told)
        with pytest.raises(Conflict, match="Its owner changed nothing"):
            one.undo()
        one.edit("my words")
        one.undo()
        assert one.text() == one.told
        with pytest.raises(Conflict, match="Its owner changed nothing"):
            one.undo()
        one.undo(1)
        assert one.text() == "what was said"


@KINDS
def test_a_re_summary_of_an_owners_words_is_undone(house: House, kind: str) -> None:
    """Nothing takes their place unless it was asked for."""
    with part(house, kind) as one:
        one.add(one.told)
        one.edit("my words")
        one.add("Anna and her cat Miso live in Kyoto, which is lovely in spring.")
        one.undo()
        assert one.text() == "my words"


@KINDS
@pytest.mark.parametrize("told", [TALES["en"][3], UNBORNE])
def test_a_pin_does_not_follow_to_what_was_refused(house: House, kind: str, told: str) -> None:
    with part(house, kind) as one:
        one.add(told)
        one.stored.scrub()
        one.edit(one.told)
        one.pin()
        before = one.pinned()
        with pytest.raises(Conflict):
            one.undo(1)
        assert (one.pinned(), len(before)) == (before, 1)
        assert one.told in one.shown(tuple(before))


@KINDS
@pytest.mark.parametrize("told", [TALES["en"][3], UNBORNE])
def test_a_pin_that_followed_before_is_left_out_when_read(
    house: House, kind: str, told: str
) -> None:
    with part(house, kind) as one:
        pk = one.add(told)
        one.stored.scrub()
        made_of = {"gist_pk": pk}
        if kind == "chapter":
            made_of = {"chapter_pk": one.stored.chapter, "version_pk": pk}
        followed = ledger.add_entry(
            one.connection,
            one.stored.chat.pk,
            kind="note",
            text=told,
            last_pk=one.stored.nodes[1].pk,
            last_depth=2,
            origin="owner",
            now_ms=LATER,
            **made_of,
        )
        own = ledger.entry_by_id(
            one.connection,
            one.stored.chat.pk,
            one.stored.entry("note", told, origin="owner", chapter_pk=None),
        )
        assert own is not None
        assert told not in one.shown((followed.pk,))
        assert told in one.shown((own.pk,))


# -- facts --------------------------------------------------------------------------------------


def facts_shown(house: House, fact: ProfileRow) -> list[str]:
    def read(connection: Connection) -> list[str]:
        shown = Shown(profile=(fact.pk,))
        return list(read_background(connection, shown, fact.conversation_pk or 0).profile)

    return house.store.reading(read)


@pytest.mark.parametrize("language", sorted(TALES))
def test_a_fact_does_not_become_a_refusal_again(house: House, language: str) -> None:
    said, reply, told, refusal = TALES[language]

    def learn(connection: Connection) -> ProfileRow:
        stored = Stored(connection, said, reply)
        stored.learn("x", refusal)
        (fact,) = profile.active(connection, stored.chat.owner_pk)
        return memory_edits.edit_fact(connection, fact, told, None, LATER, now=False)

    mended = house.store.writing(learn)
    for act in (
        lambda c: memory_edits.undo_fact(c, mended, LATER, now=False),
        lambda c: memory_edits.edit_fact(c, mended, refusal, None, LATER, now=False),
    ):
        with pytest.raises(Conflict, match="nothing but a refusal"):
            house.store.writing(act)
    assert facts_shown(house, mended) == [told]
    # as an earlier program left it
    restored = house.store.writing(profile_edits.undo_edit, mended, LATER)
    assert (restored.origin, restored.text) == ("owner", refusal)
    assert facts_shown(house, restored) == []


def test_an_owners_own_fact_may_read_like_a_refusal(house: House) -> None:
    said, reply, told, refusal = TALES["en"]

    def write(connection: Connection) -> tuple[ProfileRow, ProfileRow]:
        stored = Stored(connection, said, reply)
        stored.learn("x", told)
        (fact,) = profile.active(connection, stored.chat.owner_pk)
        own = profile_edits.add_fact(connection, stored.chat.owner_pk, refusal, None, NOW)
        return own, memory_edits.edit_fact(connection, fact, f"{refusal}.", None, LATER, now=False)

    own, mended = house.store.writing(write)
    assert (facts_shown(house, own), facts_shown(house, mended)) == ([refusal], [f"{refusal}."])
