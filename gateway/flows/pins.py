"""Chapters and gists that their owner pinned: what they tell stays when they are folded on.

A pin is an entry of the ledger, a note in the owner's name with the text as it then is, pinned
among quotes and facts and within the same budget. While the chapter or gist itself stands in a
view, that view does not show it twice. No function commits.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection

from gateway.errors import BadRequest, Conflict
from gateway.flows.hand import Hand
from gateway.flows.papers import policies_of
from gateway.prompts.memory import PinnedText
from gateway.store import ledger
from gateway.store.chapter_rows import ChapterRow
from gateway.store.gist_rows import GistRow
from gateway.store.ledger_report import pins_of_chapters, pins_of_gists
from gateway.store.ledger_rows import EntryRow, MarkName
from policies.budget import first_ratio, limits_of
from policies.schema import PolicyFile

_MADE_OF = ("chapter_pk", "version_pk", "gist_pk")


def pin_chapter(connection: Connection, hand: Hand, file: PolicyFile, chapter: ChapterRow) -> None:
    """Pin what a chapter tells now; one that is pinned already stays as it is."""
    if chapter.pk not in pins_of_chapters(connection, hand.conversation.pk):
        _pin(
            connection,
            hand,
            file,
            _pinnable(chapter.text or "", chapter.origin),
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
        end = gist.last_pk, gist.last_depth
        _pin(connection, hand, file, _pinnable(gist.text, gist.origin), end, gist_pk=gist.pk)
    hand.finish(connection)


def unpin_gist(connection: Connection, hand: Hand, gist: GistRow) -> None:
    pins = pins_of_gists(connection, hand.conversation.pk)
    _unpin(connection, hand, pins.get((gist.policy, gist.last_pk)))


def follow_chapter(connection: Connection, hand: Hand, chapter: ChapterRow, text: str) -> None:
    """What is pinned follows the new words, of the owner or in place of what was bad; with an empty
    text the pin goes."""
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
    _mark(connection, hand, entry.pk, "deleted")
    if text:
        end = entry.last_pk, entry.last_depth
        made_of = {name: getattr(entry, name) for name in _MADE_OF}
        _write(connection, hand, text, end, made_of)


def _pinnable(text: str, origin: str | None) -> str:
    """Raises Conflict for what no view shows: a pin would show it for ever."""
    from policies.judge import is_refusal

    if origin == "model" and is_refusal(text):
        raise Conflict(
            "It tells nothing but a refusal, which no view shows: there is nothing to pin. Have it "
            "written again (`resummarize`, or `scrub`), or write it yourself."
        )
    return text


def _pin(
    connection: Connection,
    hand: Hand,
    file: PolicyFile,
    text: str,
    end: tuple[int, int],
    **made_of: int | None,
) -> None:
    """Raises BadRequest for a text that no list of pins has room for."""
    if not text:
        raise BadRequest("It tells nothing any more: there is nothing to pin.")
    cost = PinnedText("note", text).cost
    room = _room(file, hand.conversation.model, text)
    if cost > room:
        raise BadRequest(
            f"It has {cost:,} characters, and all that is pinned may have {room:,} together "
            "(ledger.length, and a tenth of what a fold leaves)."
        )
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


def _mark(connection: Connection, hand: Hand, pk: int, mark: MarkName) -> None:
    ledger.add_mark(connection, hand.conversation.pk, pk, mark, origin="owner", now_ms=hand.now_ms)


def _room(file: PolicyFile, model: str, text: str) -> int:
    """Characters of pins in the narrowest of the model's views."""
    policies = policies_of(file, model) or list(file.policies.values())
    return min(limits_of(policy, first_ratio(text)).ledger for policy in policies)


def _unpin(connection: Connection, hand: Hand, entry: EntryRow | None) -> None:
    """Take the pin off; what is not pinned stays so."""
    if entry is not None:
        _mark(connection, hand, entry.pk, "deleted")
    hand.finish(connection)
