"""Chapters and gists that their owner pinned: what they tell stays when they are folded on.

A pin is an entry of the ledger, a note in the owner's name with the text as it then is, pinned
among quotes and facts and within the same budget. While the chapter or gist itself stands in a
view, that view does not show it twice. What a view of the model has no room for is not pinned;
where the room became less afterwards, it is told what is left out. No function commits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import Connection

from gateway.errors import BadRequest, Conflict
from gateway.flows import ledger_edits
from gateway.flows.backgrounds import PinRoom, Place, pin_cost, read_pin_room
from gateway.flows.hand import Hand
from gateway.flows.papers import policies_of
from gateway.flows.unfit import check_fit
from gateway.prompts.memory import PinnedText
from gateway.store import documents, ledger
from gateway.store.chapter_rows import ChapterRow
from gateway.store.gist_rows import GistRow
from gateway.store.ledger_report import (
    last_pins_of_chapters,
    last_pins_of_gists,
    pins_of_chapters,
    pins_of_gists,
)
from gateway.store.ledger_rows import EntryRow, EntryState, MarkName
from gateway.store.transcript import ConversationRow, Node, node_by_pk
from policies.budget import first_ratio, limits_of
from policies.schema import PolicyFile

_MADE_OF = ("chapter_pk", "version_pk", "gist_pk")
_FOLLOWED = "edit"
"""The origin of marks by which a pin goes with the words that it told."""


def pin_chapter(connection: Connection, hand: Hand, file: PolicyFile, chapter: ChapterRow) -> None:
    """Pin what a chapter tells now; one that is pinned already stays as it is."""
    if chapter.pk not in pins_of_chapters(connection, hand.conversation.pk):
        check_fit(connection, chapter.text or "", hand.now_ms, chapter_pk=chapter.pk)
        _pin(
            connection,
            hand,
            file,
            chapter.text or "",
            (chapter.last_pk, chapter.last_depth),
            chapter_pk=chapter.pk,
            version_pk=chapter.version_pk,
        )
    hand.finish(connection)


def unpin_chapter(connection: Connection, hand: Hand, chapter: ChapterRow) -> None:
    _unpin(connection, hand, pins_of_chapters(connection, hand.conversation.pk).get(chapter.pk))


def pin_gist(connection: Connection, hand: Hand, file: PolicyFile, gist: GistRow) -> None:
    """The same of a gist."""
    if (gist.policy, gist.last_pk) not in pins_of_gists(connection, hand.conversation.pk):
        check_fit(connection, gist.text, hand.now_ms, gist_pk=gist.pk)
        end = gist.last_pk, gist.last_depth
        _pin(connection, hand, file, gist.text, end, gist_pk=gist.pk)
    hand.finish(connection)


def unpin_gist(connection: Connection, hand: Hand, gist: GistRow) -> None:
    pins = pins_of_gists(connection, hand.conversation.pk)
    _unpin(connection, hand, pins.get((gist.policy, gist.last_pk)))


def pin_entry(connection: Connection, hand: Hand, file: PolicyFile, id: str) -> None:
    """The same of an entry of the ledger."""
    row = ledger_edits.find_entry(connection, hand.conversation, id)
    if not ledger_edits.is_pinned(connection, hand, row):
        _check_room(connection, hand.conversation, file, pin_cost(row))
    ledger_edits.act(connection, hand, id, "pin")


def describe_room(
    connection: Connection, file: PolicyFile, conversation: ConversationRow, head: Node | None
) -> list[dict[str, Any]]:
    """For each policy of the conversation's model, in characters: the `room` of its views for what
    is pinned, what all pins take (`chars`), and the ids of those that are `left_out` (entries of
    the ledger), once no chapter or gist among them stands there itself, with the `reason`. head:
    None, the newest."""
    return [
        {
            "policy": policy,
            "room": room.chars,
            "chars": room.taken,
            "left_out": [row.id for row in room.left_out],
            "reason": _tell_reason(room),
        }
        for policy, room in _read_rooms(connection, file, conversation, head)
    ]


def _tell_reason(room: PinRoom) -> str | None:
    if not room.left_out:
        return None
    return (
        f"all pins together have {room.taken:,} characters, and these views have {room.chars:,} "
        f"for them ({_tell_bound(room)})"
    )


def _tell_bound(room: PinRoom) -> str:
    beside = f"; documents take {room.documents:,} of the same room" if room.documents else ""
    return f"ledger.pins{beside}"


def _read_rooms(
    connection: Connection,
    file: PolicyFile,
    conversation: ConversationRow,
    head: Node | None = None,
) -> Iterator[tuple[str, PinRoom]]:
    if head is None:
        if conversation.head_pk is None:
            return
        head = node_by_pk(connection, conversation.head_pk)
    pk, up_to = conversation.pk, head.depth
    told = [row.text for row in ledger.pinned(connection, pk, head, up_to_depth=up_to)]
    for policy in policies_of(file, conversation.model):
        texts = [row.text for row in documents.for_view(connection, pk, policy.name)]
        limits = limits_of(policy, first_ratio("\n".join([*texts, *told])))
        place = Place(conversation.owner_pk, pk, policy, limits, head)
        yield policy.name, read_pin_room(connection, place)


def _check_room(
    connection: Connection, conversation: ConversationRow, file: PolicyFile, cost: int
) -> None:
    """Raises Conflict where a view of the model would not show it beside all that is pinned."""
    for policy, room in _read_rooms(connection, file, conversation):
        if room.taken + cost <= room.chars:
            continue
        others = f", and {len(room.pins):,} pinned already take {room.taken:,}" if room.pins else ""
        raise Conflict(
            f"As a pin it has {cost:,} characters. Views of {policy} have {room.chars:,} for all "
            f"pins ({_tell_bound(room)}){others}. Unpin something, shorten it, or raise "
            "ledger.pins."
        )


def follow_chapter(connection: Connection, hand: Hand, chapter: ChapterRow, text: str) -> None:
    """What is pinned follows the new words, of the owner or in place of what was bad; with an empty
    text the pin goes, until that is undone."""
    _replace(
        connection, hand, pins_of_chapters(connection, hand.conversation.pk).get(chapter.pk), text
    )


def follow_gist(connection: Connection, hand: Hand, policy: str, last_pk: int, text: str) -> None:
    """The same of a gist."""
    pins = pins_of_gists(connection, hand.conversation.pk)
    _replace(connection, hand, pins.get((policy, last_pk)), text)


def _replace(connection: Connection, hand: Hand, entry: EntryRow | None, text: str) -> None:
    if entry is None:
        return
    _mark(connection, hand, entry.pk, "deleted", origin=_FOLLOWED)
    if text:
        _rewrite(connection, hand, entry, text)


def restore_chapter(connection: Connection, hand: Hand, chapter: ChapterRow, text: str) -> None:
    """After a deletion was undone: what was pinned until then is pinned again, in these words."""
    pins = last_pins_of_chapters(connection, hand.conversation.pk)
    _restore(connection, hand, pins.get(chapter.pk), text)


def restore_gist(connection: Connection, hand: Hand, policy: str, last_pk: int, text: str) -> None:
    """The same of a gist."""
    pins = last_pins_of_gists(connection, hand.conversation.pk)
    _restore(connection, hand, pins.get((policy, last_pk)), text)


def _restore(connection: Connection, hand: Hand, last: EntryState | None, text: str) -> None:
    """last: the newest pin. Its owner may have taken it off."""
    if last is not None and last.deleted is not None and last.deleted.origin == _FOLLOWED:
        _rewrite(connection, hand, last.row, text)


def _rewrite(connection: Connection, hand: Hand, entry: EntryRow, text: str) -> None:
    made_of = {name: getattr(entry, name) for name in _MADE_OF}
    _write(connection, hand, text, (entry.last_pk, entry.last_depth), made_of)


def _pin(
    connection: Connection,
    hand: Hand,
    file: PolicyFile,
    text: str,
    end: tuple[int, int],
    **made_of: int | None,
) -> None:
    """Raises Conflict for a text that a view has no room for."""
    if not text:
        raise BadRequest("It tells nothing any more: there is nothing to pin.")
    _check_room(connection, hand.conversation, file, PinnedText("note", text).cost)
    _write(connection, hand, text, end, made_of)


def _write(
    connection: Connection,
    hand: Hand,
    text: str,
    end: tuple[int, int],
    made_of: Mapping[str, int | None],
) -> None:
    entry = ledger.add_entry(
        connection,
        hand.conversation.pk,
        kind="note",
        text=text,
        last_pk=end[0],
        last_depth=end[1],
        origin="owner",
        now_ms=hand.now_ms,
        **made_of,
    )
    _mark(connection, hand, entry.pk, "pinned")


def _mark(
    connection: Connection, hand: Hand, pk: int, mark: MarkName, origin: str = "owner"
) -> None:
    ledger.add_mark(connection, hand.conversation.pk, pk, mark, origin=origin, now_ms=hand.now_ms)


def _unpin(connection: Connection, hand: Hand, entry: EntryRow | None) -> None:
    """Take the pin off; what is not pinned stays so."""
    if entry is not None:
        _mark(connection, hand, entry.pk, "deleted")
    hand.finish(connection)
