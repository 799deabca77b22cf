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
from policies.judge.grounding import is_known_name, names_in
from policies.judge.heard import Heard
from policies.judge.language import is_wrong_language
from policies.judge.numbers import spoken_values, values
from policies.judge.reading import HAN, HANGUL, fold, has_words, sentences, weight, words
from policies.judge.refusal import is_refusal
from policies.judge.roots import root
from policies.judge.terms import COMMON, DENSE, HANGUL_LETTER, terms
from policies.language import language_of
from policies.ledger.persons import is_of_another, is_question
from policies.ledger.values import MOST_CHARS, MOST_QUOTE, Claim, Entries, Fact, Quote, Thread
from policies.roleplay import split_marks
from policies.values import Line

_MOST_NAME = 60
_LEAST_QUOTE = 8
"""The least weight of a quote (reading.weight): shorter words stand in any span."""

_FACT, _CLAIM, _THREAD = 0.5, 0.4, 0.3
"""The share of an entry's content words, names and numbers that what bears it out must hold: of a
fact, which is to be the user's own words; of what a character claims; and of a thread, which is
told in the recorder's words."""

_DENSE = 0.6
"""How much less of it where words have no spaces: pairs of characters are shared less, as in
judge.grounding."""

_USERS = "user the usuario usuaria пользователь пользователя ユーザー 用户 使用者 사용자".split()
_NO_CHARACTERS = ("user", "system", "developer", "tool", "function")
_KATAKANA = re.compile("[\u30a1-\u30fa\u30fc]{3,}")
_COUNTED = re.compile("[二三四五六七八九十百千万萬两兩]+(?=[歳岁才月日年人个個匹只隻位本回度名点])")
_QUOTE_MARKS = "\"'\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d\u300e\u300f\u2018\u2019"
_SPACED = re.compile(r"\s+")
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
class _Sentence:
    """One of the user's, folded. named: the other speakers whom it names."""

    folded: str
    terms: frozenset[str]
    named: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Known:
    """Names and numbers that were heard: words and values, and all that was said, folded."""

    words: frozenset[str]
    values: frozenset[str]
    folded: str

    @classmethod
    def of(cls, heard: Heard) -> "_Known":
        figures = values(heard.folded) | spoken_values(heard.folded)
        return cls(heard.words, frozenset(figures), heard.folded)

    def invents(self, text: str) -> bool:
        """Whether a text names somebody or counts something that was never heard."""
        folded = fold(text)
        borrowed = (run for run in _KATAKANA.findall(folded) if run not in _USERS)
        return (
            any(not is_known_name(name, self.words) for name in names_in(text))
            or any(run not in self.folded for run in borrowed)
            or not values(folded) <= self.values
            or any(not (read & self.values or "1" in read) for read in _spoken(folded))
        )


@dataclass(frozen=True)
class _Span:
    """The lines of a span, read once for all entries."""

    lines: Sequence[Line]

    @cached_property
    def heard(self) -> Heard:
        return Heard([(line.speaker, line.text) for line in self.lines])

    @cached_property
    def known(self) -> _Known:
        return _Known.of(self.heard)

    @cached_property
    def known_to_user(self) -> _Known:
        """What the user's own lines name; the speakers are known to everybody."""
        mine = [(line.speaker, line.text) for line in self.lines if line.role == "user"]
        return _Known.of(Heard([*mine, *((name, "") for name in self.heard.speakers)]))

    @cached_property
    def said(self) -> list[_Said]:
        return [_Said(line, _held(line.text)) for line in self.lines]

    @cached_property
    def told(self) -> list[_Said]:
        """Narration and inner thought: what is so, in place of what somebody says."""
        return [_Said(line, _held(text)) for line in self.lines for text in _unsaid(line)]

    @cached_property
    def stated(self) -> list[_Said]:
        """What others than the user state, questions left out."""
        return [
            _Said(
                line,
                _held(" ".join(s for s in sentences(line.text) if not is_question(fold(s)))),
            )
            for line in self.lines
            if line.role not in _NO_CHARACTERS
        ]

    @cached_property
    def _stated(self) -> frozenset[str]:
        mine = (sentence.terms for _, own in self._own for sentence in own)
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
        bare = _content(text) - self._user_terms
        best = _best(mine, bare)
        if best is None:
            return None
        # What the user did not say of themselves, but was said, counts twice against a fact.
        taken = (bare - best.terms) & self._stated
        if not _is_borne(bare, best.terms, _FACT, against=len(taken)):
            return None
        others = [s for s in self.stated if len(bare & s.terms) >= len(bare & best.terms)]
        if any(
            s.line.at < best.line.at or len(bare & s.terms) > len(bare & best.terms) for s in others
        ):
            return None
        about = about if len(about) <= _MOST_NAME and has_words(about) else ""
        return Fact(text, about, best.line.at)

    @cached_property
    def _user_terms(self) -> frozenset[str]:
        """Words that name the user: the role, and under which name it speaks."""
        names = {line.speaker for line in self.lines if line.role == "user"}
        return _content(" ".join([*_USERS, *names]))

    @cached_property
    def _own(self) -> list[tuple[Line, list[_Sentence]]]:
        """What the user's lines say, sentence by sentence; what is asked or played is not told."""
        return [(line, list(self._read(line))) for line in self.lines if line.role == "user"]

    def _read(self, line: Line) -> Iterator[_Sentence]:
        others = [name for name in self.heard.speakers if name != fold(line.speaker).strip()]
        played = line.text.split("*")[1::2]  # *sits down*
        for segment in split_marks(line.text):
            if segment.kind == "told" and segment.text in map(str.strip, played):
                continue
            for sentence in sentences(segment.text):
                folded = fold(sentence)
                if not is_question(folded):
                    named = tuple(name for name in others if _has_word(folded, name))
                    yield _Sentence(folded, _held(sentence), named)

    # --- claims, threads, quotes -----------------------------------------------------------------

    def ground_claim(self, told: tuple[str, str, str, str]) -> Claim | None:
        """Who said it must be somebody of the span, and it must stand in that speaker's lines."""
        who, target, text, truth = told
        if not (self._is_name(who) and self._may_stand(text)):
            return None
        own = [said for said in self.said if _is_same(said.line.speaker, who)]
        best = _best(own or self.said, _content(text))
        if best is None or not _is_borne(_content(text) - _content(who), best.terms, _CLAIM):
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
        bare = _content(text)
        best = _best(self.told, bare)
        return text if best is not None and _is_borne(bare, best.terms, _CLAIM) else None

    def ground_thread(self, text: str) -> Thread | None:
        if not self._may_stand(text):
            return None
        bare = _content(text)
        best = _best(self.said, bare)
        if best is None or not _is_borne(bare, self._everything, _THREAD):
            return None
        return Thread(text, best.line.at)

    @cached_property
    def _everything(self) -> frozenset[str]:
        return frozenset().union(*(s.terms for s in self.said), *map(_content, self.heard.speakers))

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
        )

    def _is_foreign(self, text: str) -> bool:
        return language_of(text) != self._language and is_wrong_language(text, self.heard)

    @cached_property
    def _language(self) -> str | None:
        return language_of(self.heard.folded)

    def _is_name(self, name: str) -> bool:
        folded = fold(name).strip()
        if not has_words(folded) or len(name) > _MOST_NAME:
            return False
        if any(_is_same(speaker, folded) for speaker in self.heard.speakers):
            return True
        if DENSE.search(folded) or HANGUL_LETTER.search(folded):
            return folded in self.heard.folded
        return all(is_known_name(word, self.heard.words) for word in words(folded))


def _content(text: str) -> frozenset[str]:
    """What a text is about: roots of English content words, stems, pairs of characters, numbers.

    Beside kana the words are written in Han and katakana, and what joins them in hiragana: there
    only the former count, a single Han character too.
    """
    folded = fold(text)
    found = {f"#{value}" for value in values(folded)}
    if _KANA.search(folded):
        for run in _HAN_OR_KATAKANA.findall(folded):
            is_pairs = len(run) > 2 and DENSE.match(run) and not _KATAKANA.match(run)
            found.update(run[at : at + 2] for at in range(len(run) - 1)) if is_pairs else found.add(
                run
            )
        folded = DENSE.sub(" ", folded)
    plain = {word for word in words(folded) if word.isascii() and len(word) > 2}
    other = " ".join(word for word in words(folded) if not word.isascii())
    roots = {root(word) for word in plain - COMMON - _SHORT if not word.isdigit()}
    return frozenset(terms(other) | roots | found) - {""}


def _held(text: str) -> frozenset[str]:
    """The terms of what is to bear a text out: single Han characters are in every run of them."""
    return _content(text) | frozenset(_HAN_SIGN.findall(fold(text)))


_KANA = re.compile("[\u3041-\u309f\u30a1-\u30fa]")
_PAIR = re.compile(f"[{HAN}{HANGUL}]{{2}}")
_HAN_SIGN = re.compile(f"[{HAN}]")
_HAN_OR_KATAKANA = re.compile(f"[{HAN}]+|[\u30a1-\u30fa\u30fc]+")
_SHORT = frozenset(
    "the has had was are and his her its not who she him you they them our for but any all can did"
    " may out off how why now too yet".split()
)


def _join(said: Sequence[_Sentence], told: str) -> frozenset[str]:
    """The terms of those sentences that may tell of the user what `told`, folded, tells."""
    own = (
        sentence.terms
        for sentence in said
        if all(_has_word(told, name) for name in sentence.named)
        and not is_of_another(sentence.folded, told)
    )
    return frozenset().union(*own)


def _best(said: Sequence[_Said], wanted: frozenset[str]) -> _Said | None:
    """The first line that holds most of what is wanted; None where none holds any of it."""
    best = max(said, key=lambda each: len(wanted & each.terms), default=None)
    return best if best is not None and wanted & best.terms else None


def _is_borne(wanted: frozenset[str], held: frozenset[str], least: float, against: int = 0) -> bool:
    pairs = sum(bool(_PAIR.fullmatch(term)) for term in wanted)
    least = least * _DENSE if pairs * 2 > len(wanted) else least
    return bool(wanted) and len(wanted & held) >= least * (len(wanted) + against)


def _unsaid(line: Line) -> Iterator[str]:
    if line.kind != "said":
        yield line.text
        return
    yield from (s.text for s in split_marks(line.text) if s.kind != "said")


def _spoken(folded: str) -> Iterator[set[str]]:
    """The values that each number word may have; a syllable of Hangul alone is too many words."""
    for word in words(folded):
        if len(word) > 1 and not DENSE.search(word) and (read := spoken_values(word)):
            yield read
    for numeral in _COUNTED.findall(folded):
        yield spoken_values(numeral)


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
