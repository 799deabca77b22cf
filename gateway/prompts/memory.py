"""A fold's memory as a model is shown it: the synthetic question and its answer.

    user       [documents] [profile] "what has happened so far?"
    assistant  header, gist, chapters, what is pinned, open threads, those closed last

A function of its arguments: the same rows give the same bytes, in every process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gateway.prompts.frames import unframe
from gateway.prompts.phrases import PHRASES, Phrases
from policies.language import language_of

_GIST_FRAME = "<earlier>\n{text}\n</earlier>\n"
_CHAPTER_FRAME = "<chapter>\n{text}\n</chapter>\n"
_LEDGER_FRAME = "<ledger>\n{text}</ledger>\n"
_PROFILE_FRAME = "<profile>\n{text}</profile>\n"
_DOCUMENT_FRAME = '<document name="{name}">\n{text}\n</document>\n'

# What the frames cost beside the text, in characters: planning counts lengths as rendered.
GIST_COST = len(_GIST_FRAME) - len("{text}")
CHAPTER_COST = len(_CHAPTER_FRAME) - len("{text}")
# A cautious figure for what is neither gist nor chapter: the longest question and header.
FIXED_COST = max(len(p.question) + len(p.header) for p in PHRASES.values()) + len(
    "<memory>\n\n</memory>"
)


@dataclass(frozen=True, slots=True)
class DocumentText:
    """A document of the stable part."""

    name: str
    text: str

    @property
    def cost(self) -> int:
        """Characters as rendered, at most."""
        return len(_document(self))


@dataclass(frozen=True, slots=True)
class PinnedText:
    """An entry of the ledger that the owner pinned. who: who said it, of a quote or claim."""

    kind: str
    text: str
    who: str | None = None

    @property
    def cost(self) -> int:
        return len(_pinned(self))


@dataclass(frozen=True, slots=True)
class ThreadText:
    """A thread with the number by which it is known."""

    number: int
    text: str

    @property
    def cost(self) -> int:
        return len(_thread(self))


def profile_cost(text: str) -> int:
    """Characters of one fact of the profile as rendered."""
    return len(_item(text))


@dataclass(frozen=True, slots=True)
class Background:
    """What a memory holds beside gist and chapters."""

    documents: Sequence[DocumentText] = ()
    profile: Sequence[str] = ()
    pinned: Sequence[PinnedText] = ()
    open: Sequence[ThreadText] = ()
    closed: Sequence[ThreadText] = ()

    def __bool__(self) -> bool:
        return bool(self.documents or self.profile or self.pinned or self.open or self.closed)

    @property
    def cost(self) -> int:
        """What it adds to a memory in characters, in whichever of the languages that is."""
        every = PHRASES.values()
        lead = max(len(_lead(self, phrases)) for phrases in every)
        return lead + max(len(_ledger(self, phrases)) for phrases in every)


NOTHING = Background()


def render_memory(
    gist: str | None,
    chapters: Sequence[str],
    background: Background = NOTHING,
    *,
    language: str | None = None,
) -> list[dict[str, Any]]:
    """The synthetic question and answer; nothing at all where there is no memory. A text that the
    owner emptied leaves no frame.

    Where nothing happened yet, all stands in the question, which is a plea to keep it in mind: the
    answer says nothing, and may give way to a greeting. language: of the words around it all, where
    it is known; else that of what is told.
    """
    chapters = list(filter(None, chapters))
    if not gist and not chapters and not background:
        return []
    phrases = PHRASES[language or _language(gist, chapters, background)]
    body = (_GIST_FRAME.format(text=_framed(gist)) if gist else "") + "".join(
        _CHAPTER_FRAME.format(text=_framed(chapter)) for chapter in chapters
    )
    lead, ledger = _lead(background, phrases), _ledger(background, phrases)
    question, answer = lead + phrases.question, f"{phrases.header}\n{_memory(body + ledger)}"
    if not body:  # nothing happened yet
        told = f"{phrases.header}\n{_memory(ledger)}\n\n" if ledger else ""
        question, answer = lead + told + phrases.keep, phrases.noted
    return [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]


def _memory(body: str) -> str:
    return f"<memory>\n{body}</memory>"


def _language(gist: str | None, chapters: Sequence[str], background: Background) -> str:
    """Of what happened; where nothing did, of what the owner told, then of the documents."""
    threads, pins = background.open, background.pinned
    said = (
        "\n".join([gist or "", *chapters]),
        "\n".join([*(thread.text for thread in threads), *(pin.text for pin in pins)]),
        "\n".join(background.profile),
        "\n".join(document.text for document in background.documents),
    )
    return next(filter(None, map(language_of, said)), "en")


def _lead(background: Background, phrases: Phrases) -> str:
    lead = ""
    if background.documents:
        lead += f"{phrases.documents}\n" + "".join(map(_document, background.documents))
    if background.profile:
        facts = "".join(map(_item, background.profile))
        lead += f"{phrases.profile}\n" + _PROFILE_FRAME.format(text=facts)
    return f"{lead}\n" if lead else ""


def _ledger(background: Background, phrases: Phrases) -> str:
    parts = (
        (phrases.pinned, "".join(map(_pinned, background.pinned))),
        (phrases.open, "".join(map(_thread, background.open))),
        (phrases.closed, "".join(map(_thread, background.closed))),
    )
    text = "".join(f"{phrase}\n{told}" for phrase, told in parts if told)
    return _LEDGER_FRAME.format(text=text) if text else ""


def _document(document: DocumentText) -> str:
    name = _line(document.name).replace('"', "'").replace("<", "‹").replace(">", "›")
    return _DOCUMENT_FRAME.format(name=name, text=_framed(document.text))


def _pinned(entry: PinnedText) -> str:
    if entry.kind == "quote":
        said = f"“{entry.text}”"
        return _item(f"{said} — {entry.who}" if entry.who else said)
    return _item(f"{entry.who}: {entry.text}" if entry.who else entry.text)


def _thread(thread: ThreadText) -> str:
    return f"[T{thread.number}] {_line(thread.text)}\n"


def _item(text: str) -> str:
    return f"- {_line(text)}\n"


def _line(text: str) -> str:
    return _framed(" ".join(text.split()))


def _framed(text: str) -> str:
    return unframe(text.strip())


def _ledger_cost() -> int:
    pin, thread = PinnedText("fact", ""), ThreadText(1, "")
    one = Background(pinned=[pin], open=[thread], closed=[thread])
    return one.cost - pin.cost - 2 * thread.cost


LEDGER_COST = _ledger_cost()
"""The frame of the ledger and the words above its lists, in characters."""
