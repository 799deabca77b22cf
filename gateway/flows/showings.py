"""What a fold shows, and what the next user message will be shown before it is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from gateway.flows.backgrounds import (
    Choice,
    choose_background,
)
from gateway.flows.states import (
    Loaded,
    Site,
    load_memory,
    measure,
)
from gateway.prompts.memory import CHAPTER_COST, FIXED_COST, GIST_COST
from gateway.store import attempts, chapter_rows, gist_rows
from gateway.store.chapter_rows import ChapterRow
from gateway.store.fold_rows import NONE, FoldRow, Shown
from gateway.store.gist_rows import GistRow


@dataclass(frozen=True, slots=True)
class ShownMemory:
    """What a fold's memory tells: a gist and the chapters behind it, oldest first; and what stands
    beside them."""

    gist: GistRow | None
    chapters: Sequence[ChapterRow]
    beside: Choice

    @property
    def cost(self) -> int:
        """What it costs in a view at most, in characters."""
        gist = len(self.gist.text) + GIST_COST if self.gist else 0
        told = sum(len(row.text or "") + CHAPTER_COST for row in self.chapters)
        return FIXED_COST + gist + told + self.beside.background.cost

    def overflows(self, site: Site, fold: FoldRow | None, said: int) -> bool:
        """Whether it would bring a view on this fold's border to its ceiling, with so many
        characters said in all: then it waits for the next fold."""
        if site.limits.messages:
            return False
        verbatim = said - (fold.border_cum if fold else 0)
        return verbatim + self.cost >= site.limits.ceiling

    def foreseen(self, border: int) -> Foreseen:
        """As a fold to this border."""
        gist_pk = self.gist.pk if self.gist else None
        return Foreseen(border, gist_pk, versions_of(self.chapters), self.beside.shown)


def shown_by(
    connection: Connection, site: Site, loaded: Loaded, border: int, taken: Sequence[int]
) -> ShownMemory:
    """What a fold to this border shows that takes in these chapters."""
    rows = [*loaded.stack, *chapter_rows.chapters_by_pk(connection, site.conversation.pk, taken)]
    gist = _gist_within(connection, site, loaded.gist, rows, border)
    covered = gist.last_depth if gist else 0
    told = [row for row in rows if row.first_depth > covered]
    _check_unbroken(gist, told, border)
    beside = choose_background(connection, site.place, border=border, covered=covered)
    return ShownMemory(gist, told, beside)


@dataclass(frozen=True, slots=True)
class Foreseen:
    """The fold that the next user message takes, whatever it says: the depth of its border, and
    its memory as row numbers, the chapter versions oldest first."""

    border_depth: int
    gist_pk: int | None
    versions: tuple[int, ...]
    shown: Shown = NONE

    @classmethod
    def of(cls, fold: FoldRow) -> Foreseen:
        """One that is there already."""
        return cls(fold.border_depth, fold.gist_pk, fold.memory, fold.shown)


@dataclass(frozen=True, slots=True)
class Renewal:
    """A memory that is to be shown anew at the border where it is."""

    kind: str
    shown: ShownMemory


def plan_renewal(connection: Connection, site: Site, fold: FoldRow | None) -> Renewal | None:
    """What a user message at `site`, or the next one behind it, is shown without a step of the
    border: the opening of a view that begins with something to show, or what the owner asked to
    be shown at once, also where that is what is shown already: then it was done."""
    asked = site.conversation.renew_after
    renews = asked is not None and (fold is None or fold.pk <= asked)
    if not renews and (fold is not None or not _begins(connection, site)):
        return None
    shown = _shown_anew(connection, site, fold)
    if renews:
        newest = site.head.chars if site.head.opens else 0
        waits = shown.overflows(site, fold, site.head.cum_chars - newest)
        return None if waits else Renewal("renewal", shown)
    cost = 0 if site.limits.messages else FIXED_COST + shown.beside.background.cost
    fits = measure(connection, site, None) + cost <= site.limits.start
    return Renewal("opening", shown) if shown.beside.shown and fits else None


def _begins(connection: Connection, site: Site) -> bool:
    """Whether a view of this policy begins here: at a first message, or where the conversation
    comes from another policy's views."""
    if site.head.opens and not site.head.anchored:
        return True
    return not attempts.was_used(connection, site.conversation.pk, site.policy.name)


def _shown_anew(connection: Connection, site: Site, fold: FoldRow | None) -> ShownMemory:
    if fold is None:
        return ShownMemory(None, [], choose_background(connection, site.place, border=0))
    rows = load_memory(connection, site.conversation.pk, site.policy.name, site.head, fold)
    covered = rows.gist.last_depth if rows.gist else 0
    _check_unbroken(rows.gist, rows.stack, rows.border)
    beside = choose_background(connection, site.place, border=rows.border, covered=covered)
    return ShownMemory(rows.gist, rows.stack, beside)


def versions_of(chapters: Sequence[ChapterRow]) -> tuple[int, ...]:
    return tuple(row.version_pk for row in chapters if row.version_pk is not None)


def _gist_within(
    connection: Connection,
    site: Site,
    planned: GistRow | None,
    shown: Sequence[ChapterRow],
    border: int,
) -> GistRow | None:
    """The planned gist, or one that covers more: on a branch the chapters that a step takes in may
    lie behind a gist already."""
    return gist_rows.newest_gist(
        connection,
        site.conversation.pk,
        site.policy.name,
        site.head,
        border=border,
        ends={planned.last_depth if planned else 0, *(row.last_depth for row in shown)},
    )


def _check_unbroken(gist: GistRow | None, shown: Sequence[ChapterRow], border: int) -> None:
    """Raises where gist and chapters would not tell every message up to the border exactly once:
    a turn that fails is better than a past that is lost."""
    end = gist.last_depth if gist else 0
    for row in shown:
        if row.first_depth != end + 1 or row.version_pk is None:
            raise RuntimeError(f"chapter {row.id} does not follow depth {end}")
        end = row.last_depth
    if end != border:
        raise RuntimeError(f"the memory ends at depth {end}, the border is {border}")
