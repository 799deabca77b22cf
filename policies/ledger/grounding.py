"""Grounding: which entries of a frame the span bears out. The others are dropped one by one.

A model is asked for what it found; what may be stored is decided here. Everything compares words,
names and numbers: what a summarizer tells in other words than the span may be lost, what nobody
said may not get in.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from policies.judge.beside import Beside
from policies.judge.grounding import is_known_name
from policies.judge.heard import Heard
from policies.judge.language import is_wrong_language
from policies.judge.reading import fold, has_words, sentences, weight, words
from policies.judge.refusal import is_refusal
from policies.judge.terms import DENSE, HANGUL_LETTER
from policies.judge.withheld import is_withheld
from policies.language import language_of
from policies.ledger.content import content, held_content, is_borne
from policies.ledger.known import USERS, Known
from policies.ledger.mood import is_of_another_mood
from policies.ledger.persons import is_of_another, is_question
from policies.ledger.relatives import is_quoted_of_another, names_relative, split_clauses
from policies.ledger.reports import own_words
from policies.ledger.values import MOST_CHARS, MOST_QUOTE, Claim, Entries, Fact, Quote, Thread
from policies.roleplay import split_marks
from policies.values import Line

_MOST_NAME = 60
_LEAST_QUOTE = 8
"""The least weight of a quote (reading.weight): shorter words stand in any span."""

_FACT, _CLAIM, _THREAD = 0.5, 0.4, 0.3
"""The share of an entry's content words, names and numbers that what bears it out must hold: of a
fact, which is to be the user's own words; of what a character claims; and of a thread, which is
told in the recorder's words.

Measured on LoCoMo's three development conversations, with the facts that people noted of their
speakers (763 for each side): of a speaker's own 54 % are kept, 96 % of them with the very line that
was noted; of the other's, told of this one, 3 %, nearly all of what both had spoken of. As claims
90 % stand under who said them, 14 % under the other."""

_NO_CHARACTERS = ("user", "system", "developer", "tool", "function")
_QUOTE_MARKS = "\"'\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d\u300e\u300f\u2018\u2019"
_SPACED = re.compile(r"\s+")
_NO_NAME = re.compile(r"[!?;:。！？、，；：…]|[.,]$|\S+(?:\s+\S+){4}")
"""What tells a sentence from a name: its marks, or more than four words."""
T = TypeVar("T")


def ground(beside: Beside, lines: Sequence[Line], threads: Collection[int] = ()) -> Entries:
    """The entries that the lines of the span bear out, each with the message that does (Line.at).

    threads: the numbers of the threads that were open before the span; no other can be resolved.
    """
    span = _Span(lines)
    return Entries(
        facts=_keep(beside.facts, span.ground_fact),
        claims=_keep(beside.claims, span.ground_claim),
        opened=_keep(beside.opened, span.ground_thread),
        resolved=tuple(dict.fromkeys(n for n in beside.resolved if n in threads)),
        quotes=_keep(beside.quotes, span.ground_quote),
    )


def _keep(told: Sequence[T], check: Callable[[T], "R | None"]) -> tuple["R", ...]:
    found = map(check, told)
    return tuple(dict.fromkeys(entry for entry in found if entry is not None))


R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class _Said:
    """What one line says: its terms, numbers among them."""

    line: Line
    terms: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Clause:
    """One of the user's, folded. named: the other speakers whom its sentence names; relative: of
    whom of the user's it tells (relatives.split_clauses)."""

    folded: str
    terms: frozenset[str]
    named: tuple[str, ...]
    relative: int | None

    def may_tell(self, told: str) -> bool:
        """Whether it may say of the user what `told`, folded, tells."""
        return (
            all(_has_word(told, name) for name in self.named)
            and (self.relative is None or names_relative(told, self.relative))
            and not is_of_another(self.folded, told)
            and not is_of_another_mood(self.folded, told)
        )


@dataclass(frozen=True)
class _Span:
    """The lines of a span, read once for all entries."""

    lines: Sequence[Line]

    @cached_property
    def heard(self) -> Heard:
        return Heard([(line.speaker, line.text) for line in self.lines])

    @cached_property
    def known(self) -> Known:
        return Known.of(self.heard)

    @cached_property
    def known_to_user(self) -> Known:
        """What the user's own lines name; the speakers are known to everybody."""
        mine = [(line.speaker, line.text) for line in self.lines if line.role == "user"]
        return Known.of(Heard([*mine, *((name, "") for name in self.heard.speakers)]))

    @cached_property
    def said(self) -> list[_Said]:
        return [_Said(line, held_content(line.text)) for line in self.lines]

    @cached_property
    def told(self) -> list[_Said]:
        """Narration and inner thought: what is so, in place of what somebody says."""
        return [_Said(line, held_content(text)) for line in self.lines for text in _unsaid(line)]

    @cached_property
    def stated(self) -> list[_Said]:
        """What others than the user state, questions left out."""
        return [
            _Said(
                line,
                held_content(" ".join(s for s in sentences(line.text) if not is_question(fold(s)))),
            )
            for line in self.lines
            if line.role not in _NO_CHARACTERS
        ]

    @cached_property
    def _stated(self) -> frozenset[str]:
        mine = (clause.terms for _, own in self._own for clause in own)
        return frozenset().union(*(said.terms for said in self.stated), *mine)

    # --- facts -----------------------------------------------------------------------------------

    def ground_fact(self, told: tuple[str, str]) -> Fact | None:
        """A fact that the user's own words hold, and nobody else's before them: an echo of what a
        character said is no telling of one's own."""
        about, text = told
        if not self._may_stand(text) or self.known_to_user.invents(text):
            return None
        folded = fold(text)
        mine = [_Said(line, _join(own, folded)) for line, own in self._own]
        bare = content(text) - self._user_terms
        best = _best(mine, bare)
        if best is None or self._is_borrowed(text, bare):
            return None
        # What the user did not say of themselves, but was said, counts twice against a fact.
        taken = (bare - best.terms) & self._stated
        if not is_borne(bare, best.terms, _FACT, against=len(taken)):
            return None
        others = [s for s in self.stated if len(bare & s.terms) >= len(bare & best.terms)]
        if any(
            s.line.at < best.line.at or len(bare & s.terms) > len(bare & best.terms) for s in others
        ):
            return None
        about = about if len(about) <= _MOST_NAME and has_words(about) else ""
        return Fact(text, about, best.line.at)

    def _is_borrowed(self, text: str, bare: frozenset[str]) -> bool:
        """Whether a fact is a character's sentence as it stands, or numbers of nobody: they are met
        in anybody's lines."""
        if all(term.startswith("#") for term in bare) and not content(text) & self._user_terms:
            return True
        said = fold(text).strip()
        holds = [role == "user" for role, line in self._folded if said in line]
        return bool(holds) and not any(holds)

    @cached_property
    def _folded(self) -> list[tuple[str, str]]:
        return [(line.role, fold(line.text)) for line in self.lines]

    @cached_property
    def _user_terms(self) -> frozenset[str]:
        """Words that name the user: the role, and under which name it speaks."""
        names = {line.speaker for line in self.lines if line.role == "user"}
        return content(" ".join([*USERS, *names]))

    @cached_property
    def _own(self) -> list[tuple[Line, list[_Clause]]]:
        """What the user's lines say, clause by clause; what is asked or played is not told."""
        return [(line, list(self._read(line))) for line in self.lines if line.role == "user"]

    def _read(self, line: Line) -> Iterator[_Clause]:
        others = [name for name in self.heard.speakers if name != fold(line.speaker).strip()]
        for text in _spoken_by_user(own_words(line.text, others)):
            for sentence in map(fold, sentences(text)):
                if is_question(sentence):
                    continue
                named = tuple(name for name in others if _has_word(sentence, name))
                for relative, clause in split_clauses(sentence):
                    yield _Clause(clause, held_content(clause), named, relative)

    # --- claims, threads, quotes -----------------------------------------------------------------

    def ground_claim(self, told: tuple[str, str, str, str]) -> Claim | None:
        """Who said it must be somebody of the span, and it must stand in that speaker's lines."""
        who, target, text, truth = told
        if not (self._is_name(who) and self._may_stand(text)):
            return None
        own = [said for said in self.said if _is_same(said.line.speaker, who)]
        bare = content(text) - content(who)
        best = _best(own or self.said, bare)
        if best is None or not is_borne(bare, best.terms, _CLAIM):
            return None
        if any(len(bare & said.terms) > len(bare & best.terms) for said in self.said):
            return None
        return Claim(
            who,
            target if self._is_name(target) else "",
            text,
            self._ground_truth(truth),
            best.line.at,
        )

    def _ground_truth(self, text: str) -> str | None:
        """What stands beside a claim: only what narration or thought bears out."""
        if not self._may_stand(text):
            return None
        bare = content(text)
        best = _best(self.told, bare)
        return text if best is not None and is_borne(bare, best.terms, _CLAIM) else None

    def ground_thread(self, text: str) -> Thread | None:
        if not self._may_stand(text):
            return None
        bare = content(text)
        best = _best(self.said, bare)
        if best is None or not is_borne(bare, self._everything, _THREAD):
            return None
        return Thread(text, best.line.at)

    @cached_property
    def _everything(self) -> frozenset[str]:
        return frozenset().union(*(s.terms for s in self.said), *map(content, self.heard.speakers))

    def ground_quote(self, told: tuple[str, str]) -> Quote | None:
        """Words that stand in the span, under the name of the line that holds them unless another
        name of the span is given that speaks in no line of its own. A refusal may be quoted."""
        who, text = told
        bare = text.strip(_QUOTE_MARKS + " ")
        if len(bare) > MOST_QUOTE or weight(bare) < _LEAST_QUOTE:
            return None
        pattern = _quote_pattern(bare)
        for line in self.lines:
            found = pattern.search(line.text)
            if found is not None:
                is_heard = self._is_name(who) and fold(who).strip() not in self.heard.speakers
                return Quote(
                    _SPACED.sub(" ", found.group()), who if is_heard else line.speaker, line.at
                )
        return None

    # --- what every text must be -----------------------------------------------------------------

    def _may_stand(self, text: str) -> bool:
        """Whether a text is one sentence or so in the span's language, no refusal, and names nobody
        and no number that the span does not know."""
        return (
            0 < len(text) <= MOST_CHARS
            and has_words(text)
            and not self.known.invents(text)
            and not self._is_foreign(text)
            and not is_refusal(text)
            and not is_withheld(text, self.heard)
        )

    def _is_foreign(self, text: str) -> bool:
        return language_of(text) != self._language and is_wrong_language(text, self.heard)

    @cached_property
    def _language(self) -> str | None:
        return language_of(self.heard.folded)

    def _is_name(self, name: str) -> bool:
        folded = fold(name).strip()
        if not has_words(folded) or len(name) > _MOST_NAME or _NO_NAME.search(folded):
            return False
        if any(_is_same(speaker, folded) for speaker in self.heard.speakers):
            return True
        if DENSE.search(folded) or HANGUL_LETTER.search(folded):
            return folded in self.heard.folded
        return all(is_known_name(word, self.heard.words) for word in words(folded))


def _spoken_by_user(text: str) -> Iterator[str]:
    """What a message of the user says in the user's own voice, reports left out already: neither
    what is played (*sits down*) nor what somebody else is quoted with."""
    played = {part.strip() for part in text.split("*")[1::2]}
    segments = [s for s in split_marks(text) if s.kind != "told" or s.text not in played]
    is_bare = [segment.kind == "told" for segment in segments]
    for at, segment in enumerate(segments):
        beside = (i for i in (at - 1, at + 1) if 0 <= i < len(segments) and is_bare[i])
        around = fold(" ".join(segments[i].text for i in beside))
        if segment.kind != "said" or not is_quoted_of_another(around):
            yield segment.text


def _join(said: Sequence[_Clause], told: str) -> frozenset[str]:
    """The terms of those clauses that may tell of the user what `told`, folded, tells."""
    return frozenset().union(*(clause.terms for clause in said if clause.may_tell(told)))


def _best(said: Sequence[_Said], wanted: frozenset[str]) -> _Said | None:
    """The first line that holds most of what is wanted; None where none holds any of it."""
    best = max(said, key=lambda each: len(wanted & each.terms), default=None)
    return best if best is not None and wanted & best.terms else None


def _unsaid(line: Line) -> Iterator[str]:
    if line.kind != "said":
        yield line.text
        return
    yield from (s.text for s in split_marks(line.text) if s.kind != "said")


def _has_word(folded: str, name: str) -> bool:
    if DENSE.search(name) or HANGUL_LETTER.search(name):
        return name in folded
    return name in words(folded) or (" " in name and name in folded)


def _is_same(speaker: str, name: str) -> bool:
    """Whether a name means a speaker: the whole of it, or one of its words."""
    one, other = fold(speaker).strip(), fold(name).strip()
    return one == other or other in words(one) or one in words(other)


def _quote_pattern(bare: str) -> re.Pattern[str]:
    """The same words in whatever spacing, case and quotation marks, from border to border."""
    pieces = [re.escape(piece) for piece in _SPACED.split(bare)]
    loose = [re.sub(rf"[{_QUOTE_MARKS}]", f"[{_QUOTE_MARKS}]", piece) for piece in pieces]
    head = r"(?<!\w)" if bare[:1].isalnum() and not DENSE.match(bare) else ""
    tail = r"(?!\w)" if bare[-1:].isalnum() and not DENSE.match(bare[-1:]) else ""
    return re.compile(head + r"\s+".join(loose) + tail, re.IGNORECASE)
