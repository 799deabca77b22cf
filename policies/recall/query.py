"""What to look for, taken from the newest user message and the reply before it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import regex

from policies.recall.terms import Word, read_words
from policies.recall.words import DATES, KIN_TALK, SMALL_TALK, STOP_WORDS, WEAK_HAN

MOST_TERMS = 24
"""Terms of one query: each costs a posting list."""
_HEAD_CHARS, _TAIL_CHARS = 1_000, 3_000
_PREVIOUS_CHARS = 600
_SENTENCE = regex.compile(r"[^.!?。！？…\n]*[.!?。！？…\n]*")
_ASKS = regex.compile(r"[?？؟]|か[。\s]*$")
_HIRAGANA = regex.compile(r"\p{Hiragana}+")
_TALK_OF_KIN = regex.compile("|".join(map(regex.escape, KIN_TALK)))
_KANA = regex.compile(r"[\p{Hiragana}ー]")

# How much a word tells of the subject, measured against a whole word of it.
_BESIDE_A_QUESTION = 0.6
_TALK = 0.5
_OF_PREVIOUS = 0.25
_SINGLE, _HANGUL_PAIR, _HANGUL_WORD = 0.35, 0.45, 0.6
_MIXED_PAIR, _KANA_PAIR = 0.6, 0.3
_NEED = {"word": 1.0, "pair": 0.4, "single": 0.0}
_ENOUGH_OWN, _MOST_PREVIOUS = 4, 8


@dataclass(frozen=True, slots=True)
class QueryTerm:
    """One word to look for.

    forms: the terms under which it may stand. weight: what it tells of the subject, up to 1. need:
    how much is missing where nothing holds it, up to 1: letters that stand beside each other by
    chance, and forms of a word that nobody else uses, are no loss.
    name: it looks like a name. own: it stands in the newest message and is no small talk, so that
    it may be a reason to recall something.
    """

    forms: tuple[str, ...]
    weight: float
    need: float = 1.0
    name: bool = False
    own: bool = True


@dataclass(frozen=True, slots=True)
class Query:
    """What a message asks the index for; asks: it holds a question."""

    terms: tuple[QueryTerm, ...]
    asks: bool

    @property
    def lookups(self) -> tuple[str, ...]:
        """Every form once, in order: the posting lists that a ranking needs."""
        return tuple(dict.fromkeys(form for term in self.terms for form in term.forms))


def build_query(question: str, previous: str = "") -> Query:
    """The query for a message, at most MOST_TERMS terms; none where it only makes small talk.

    Of a long message its beginning and end are read. Where it holds a question, what stands beside
    the question weighs less. A message of few words is helped by the reply before it, whose words
    order what is found but are never a reason to recall it.
    """
    if len(question) > _HEAD_CHARS + _TAIL_CHARS:
        question = f"{question[:_HEAD_CHARS]}\n{question[-_TAIL_CHARS:]}"
    sentences = [text for text in _SENTENCE.findall(question) if text.strip()]
    asking = [bool(_ASKS.search(sentence)) for sentence in sentences]
    found: dict[str, QueryTerm] = {}
    for sentence, asks in zip(sentences, asking, strict=True):
        share = 1.0 if asks or not any(asking) else _BESIDE_A_QUESTION
        for term in _weigh(sentence, share):
            _keep(found, term)
    if 0 < len(found) < _ENOUGH_OWN:
        helping = [term for term in _weigh(previous[-_PREVIOUS_CHARS:], _OF_PREVIOUS) if term.own]
        for term in helping[:_MOST_PREVIOUS]:
            if term.forms[0] not in found:
                found[term.forms[0]] = replace(term, own=False)
    best = sorted(found.values(), key=lambda term: (not term.own, -term.weight))
    return Query(tuple(best[:MOST_TERMS]), any(asking))


def _keep(found: dict[str, QueryTerm], term: QueryTerm) -> None:
    known = found.get(term.forms[0])
    if known is None or known.weight < term.weight:
        found[term.forms[0]] = term


def _weigh(sentence: str, share: float) -> Iterator[QueryTerm]:
    """The words of one sentence that tell anything, each with its weight. A date orders what is
    found but is no reason to recall it: what was said then seldom says so."""
    words = list(read_words(_TALK_OF_KIN.sub(" ", sentence)))
    dated = any(word.folded in DATES for word in words)
    hushed = False
    for place, word in enumerate(words):
        if word.kind == "word":
            hushed = word.folded in STOP_WORDS or word.folded in SMALL_TALK
        weight = _weight(word)
        if weight == 0 or (hushed and word.kind == "pair" and _is_hangul(word.term[0])):
            continue
        talk = word.folded in SMALL_TALK
        date = word.folded in DATES or (dated and word.folded.isdecimal())
        yield QueryTerm(
            (word.term, word.also) if word.also else (word.term,),
            weight * share * (_TALK if talk or date else 1.0),
            0.0 if _is_long_hangul(word) else _NEED[word.kind],
            name=word.capital and place > 0 and not talk and not date,
            own=not talk and not date,
        )


def _weight(word: Word) -> float:
    if word.folded in STOP_WORDS or word.term in STOP_WORDS:
        return 0.0
    if word.term in WEAK_HAN:
        return 0.0
    if word.kind == "single":
        return 0.0 if _KANA.fullmatch(word.term) else _SINGLE
    if word.kind == "pair":
        return _pair_weight(word.term)
    return _HANGUL_WORD if _is_long_hangul(word) else 1.0


def _is_long_hangul(word: Word) -> bool:
    """A word that is also looked for in pairs of its syllables."""
    return word.kind == "word" and len(word.term) > 2 and _is_hangul(word.term[0])


def _is_hangul(letter: str) -> bool:
    return "\uac00" <= letter <= "\ud7a3"


def _pair_weight(pair: str) -> float:
    if _is_hangul(pair[0]):
        return _HANGUL_PAIR
    weak = sum(letter in WEAK_HAN for letter in pair)
    if weak == len(pair):
        return 0.0
    if _HIRAGANA.fullmatch(pair):
        return _KANA_PAIR
    return _MIXED_PAIR if weak or _HIRAGANA.search(pair) else 1.0
