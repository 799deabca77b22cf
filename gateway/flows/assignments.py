"""What the recorder is set to write: a chapter from the lines of a span, or a gist from notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

from gateway.prompts.phrases import PHRASES
from gateway.prompts.summary import (
    Form,
    Prompt,
    ask_chapter,
    ask_gist,
    prompt_chars,
    render_lines,
)
from policies.chapters import group_lines
from policies.ledger.values import NOTHING, Entries
from policies.values import Line

# The judge's patterns in six languages take a sixth of a second to compile: it is imported where
# something is judged, on the thread that judges, not at every start.
if TYPE_CHECKING:
    from policies.judge import Verdict


@dataclass(frozen=True, slots=True)
class Told:
    """What was accepted: the text, and what is told beside it and borne out. Entries name the
    messages of the whole span. moved: sentences that a gist had no room for."""

    text: str
    entries: Entries = NOTHING
    moved: tuple[str, ...] = ()


class Piece(Protocol):
    """What one call is about."""

    @property
    def text(self) -> str: ...

    def ask(self, asked_chars: int, form: Form, draw: int, seed: int | None) -> Prompt: ...

    def judge(self, output: str, finish_reason: str | None, asked_chars: int) -> Verdict: ...

    def ground(self, verdict: Verdict) -> Entries:
        """What an accepted answer tells beside its prose and the quoted text bears out."""

    def shorten(self, verdict: Verdict) -> Told | None:
        """What code makes of the last answer where nothing but its length was against it."""


class Assignment(Protocol):
    """What one text is about. length: asked for, in characters; language: for the instruction."""

    @property
    def purpose(self) -> Literal["summary", "gist"]: ...

    @property
    def length(self) -> int: ...

    @property
    def language(self) -> str | None: ...

    @property
    def text(self) -> str: ...

    @property
    def overhead(self) -> int:
        """What a prompt holds beside the quoted text, in characters."""

    def cut(self, limit: int | None) -> Sequence[Piece]:
        """The pieces, of at most `limit` characters each. Raises ValueError where none can be."""


@dataclass(frozen=True, slots=True)
class SpanPiece:
    """Some consecutive lines of a span, for one call."""

    lines: tuple[Line, ...]
    language: str | None
    threads: tuple[tuple[int, str], ...] = ()

    @property
    def text(self) -> str:
        return render_lines(self.lines)

    def ask(self, asked_chars: int, form: Form, draw: int, seed: int | None) -> Prompt:
        return ask_chapter(
            self.lines,
            asked_chars=asked_chars,
            language=self.language,
            form=form,
            draw=draw,
            seed=seed,
            threads=self.threads,
        )

    def judge(self, output: str, finish_reason: str | None, asked_chars: int) -> Verdict:
        from policies.judge import judge_summary

        return judge_summary(
            output, self.lines, finish_reason=finish_reason, asked_chars=asked_chars
        )

    def ground(self, verdict: Verdict) -> Entries:
        from policies.ledger.grounding import ground

        return ground(verdict.beside, self.lines, {number for number, _ in self.threads})

    def shorten(self, verdict: Verdict) -> Told | None:
        """Nothing: a chapter that outgrows its span tells what is not in it."""
        return None


@dataclass(frozen=True, slots=True)
class ChapterAssignment:
    """A chapter to be written from the lines of its span; split: the most for one call; threads:
    the open ones, by number."""

    lines: tuple[Line, ...]
    language: str | None
    length: int
    split: int
    threads: tuple[tuple[int, str], ...] = ()
    purpose: Literal["summary"] = "summary"

    @property
    def text(self) -> str:
        return render_lines(self.lines)

    @property
    def overhead(self) -> int:
        return prompt_chars(self.language, self.threads)

    def cut(self, limit: int | None) -> Sequence[SpanPiece]:
        most = self.split if limit is None else min(self.split, limit)
        groups = group_lines(self.lines, most)
        return [SpanPiece(tuple(group), self.language, self.threads) for group in groups]


@dataclass(frozen=True, slots=True)
class GistAssignment:
    """A gist to be written from the earlier one and chapters, in one call. threads: the open ones
    that it must tell, because the list of open threads has no room for them."""

    notes: tuple[str, ...]
    language: str | None
    length: int
    threads: tuple[str, ...] = ()
    purpose: Literal["gist"] = "gist"

    @property
    def quoted(self) -> tuple[str, ...]:
        """The notes, and behind them what must not be lost, as a note of its own."""
        if not self.threads:
            return self.notes
        phrases = PHRASES[self.language if self.language in PHRASES else "en"]
        return (*self.notes, "\n".join((phrases.open, *self.threads)))

    @property
    def text(self) -> str:
        return "\n\n".join(self.quoted)

    @property
    def overhead(self) -> int:
        return prompt_chars(self.language)

    def cut(self, limit: int | None) -> Sequence[GistAssignment]:
        if limit is not None and len(self.text) > limit:
            raise ValueError(f"the notes do not fit {limit} characters")
        return [self]

    def ask(self, asked_chars: int, form: Form, draw: int, seed: int | None) -> Prompt:
        return ask_gist(
            self.quoted,
            asked_chars=asked_chars,
            language=self.language,
            form=form,
            draw=draw,
            seed=seed,
        )

    def judge(self, output: str, finish_reason: str | None, asked_chars: int) -> Verdict:
        from policies.gists import GIST_SLACK, find_lost
        from policies.judge import judge_gist
        from policies.judge.verdict import reject

        verdict = judge_gist(
            output, self.quoted, finish_reason=finish_reason, asked_chars=asked_chars
        )
        if not verdict.accepted:
            return verdict
        if find_lost(verdict.text, self.notes, self.threads):
            return reject("threads")
        if len(verdict.text) > GIST_SLACK * self.length:
            return replace(reject("long"), text=verdict.text)
        return verdict

    def shorten(self, verdict: Verdict) -> Told | None:
        from policies.gists import shorten

        if verdict.reasons != ("long",) or not verdict.text:
            return None
        made = shorten(verdict.text, self.length, self.threads)
        return None if made is None else Told(made.text, moved=made.moved)

    def ground(self, verdict: Verdict) -> Entries:
        """Nothing: a gist tells what its chapters told."""
        return NOTHING
