"""Words of a text in the form in which an index and a query compare them.

One function for both sides, so that whatever it does to a word it does to both. Latin words are
folded (width, case, accents) and stemmed, in Spanish texts also as Spanish; Cyrillic words are
stemmed as Russian; Hangul words lose their particle and are also taken in pairs of syllables; Han
and kana, which know no spaces, are taken in pairs, Han characters also alone. Words of any other
script stand as they are.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import regex
from Stemmer import Stemmer

from policies.language import language_of
from policies.recall.words import SAME_WORD

MOST_TERMS = 4_000
"""Distinct terms of one message; the words of some 60,000 characters."""

Kind = Literal["word", "pair", "single"]

_RUNS = regex.compile(
    r"(?P<kin>[\p{Han}\p{Hiragana}\p{Katakana}ー々]+)"
    r"|(?P<hangul>\p{Hangul}+)"
    r"|(?P<cyrillic>[\p{Cyrillic}\p{M}]+)"
    r"|(?P<word>[\p{L}\p{N}--[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Cyrillic}ー々]]"
    r"[\p{L}\p{N}\p{M}'’--[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Cyrillic}ー々]]*)",
    regex.VERSION1,
)
_ENDING = regex.compile(r"['’](?:s|m|re|ve|ll|d)?$")
_SYLLABLE = regex.compile("[\uac00-\ud7a3]")
_HAN = regex.compile(r"\p{Han}")
_PARTICLES = (
    "에서는 에게서 으로는 이라고 에서 에게 한테 으로 부터 까지 처럼 보다 이랑 하고 이나 라고 에는"
    " 은 는 이 가 을 를 에 의 로 와 과 도 만 랑 야"
).split()
_STEMS_KEPT = 8_192


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a text.

    term: what is compared. folded: the word before it was stemmed, for lists of words. kind: a
    word, two letters of a run without spaces, or a single one (a Han character between kana is a
    word). also: a second form to look under ("" for none). capital: it begins with a capital.
    """

    term: str
    folded: str
    kind: Kind
    also: str = ""
    capital: bool = False


def read_words(text: str) -> Iterator[Word]:
    """The words of a text in order, again where they stand again."""
    text = unicodedata.normalize("NFKC", text)
    spanish: bool | None = None  # nothing but a Latin word asks
    for run in _RUNS.finditer(text):
        found = run.group()
        if run.lastgroup == "kin":
            yield from _read_kin(found)
        elif run.lastgroup == "hangul":
            yield from _read_hangul(found)
        elif run.lastgroup == "cyrillic":
            folded = found.casefold().replace("ё", "е")
            yield Word(_stem("russian", folded), folded, "word", "", found[0].isupper())
        else:
            if spanish is None:
                spanish = language_of(text) == "es"
            yield _read_word(found, spanish)


def index_terms(text: str) -> list[str]:
    """The distinct terms of a text, at most MOST_TERMS, in the order in which they come."""
    terms: dict[str, None] = {}
    for word in read_words(text):
        terms[word.term] = None
        if word.also:
            terms[word.also] = None
        if len(terms) >= MOST_TERMS:
            break
    return list(terms)[:MOST_TERMS]


def _read_kin(run: str) -> Iterator[Word]:
    is_han = [bool(_HAN.match(letter)) for letter in run]
    for at, letter in enumerate(run):
        if len(run) == 1:
            yield Word(letter, letter, "word" if is_han[at] else "single")
        elif is_han[at]:
            lone = not any(is_han[max(0, at - 1) : at] + is_han[at + 1 : at + 2])
            yield Word(letter, letter, "word" if lone else "single")
        if at + 1 < len(run):
            pair = run[at : at + 2]
            yield Word(pair, pair, "pair")


def _read_hangul(run: str) -> Iterator[Word]:
    if not _SYLLABLE.search(run):
        return  # a laugh: letters that make no syllable
    bare = _bare_hangul(run)
    yield Word(bare, bare, "word")
    if len(bare) > 2:
        for at in range(len(bare) - 1):
            yield Word(bare[at : at + 2], bare[at : at + 2], "pair")


@lru_cache(maxsize=_STEMS_KEPT)
def _bare_hangul(run: str) -> str:
    """A word without its particles; again and again, for "-이를" and "-이" must end alike."""
    for particle in _PARTICLES:
        if run.endswith(particle) and len(run) - len(particle) >= 2:
            return _bare_hangul(run[: -len(particle)])
    return run


def _read_word(found: str, spanish: bool) -> Word:
    word = _ENDING.sub("", found.casefold()).replace("'", "").replace("’", "")
    term, folded = _fold_latin("english", word)
    also = _fold_latin("spanish", word)[0] if spanish else ""
    return Word(term, folded, "word", "" if also == term else also, found[0].isupper())


@lru_cache(maxsize=_STEMS_KEPT)
def _fold_latin(language: str, word: str) -> tuple[str, str]:
    """(term, folded word). Spanish endings are told by their accents: stemmed before folding."""
    if language == "spanish":
        return _bare_latin(_stem("spanish", word)), _bare_latin(word)
    folded = _bare_latin(word)
    return _stem("english", SAME_WORD.get(folded, folded)), folded


def _bare_latin(word: str) -> str:
    if word.isascii():
        return word
    apart = unicodedata.normalize("NFD", word)
    return "".join(letter for letter in apart if not unicodedata.combining(letter))


@lru_cache(maxsize=_STEMS_KEPT)
def _stem(language: str, word: str) -> str:
    # A stemmer holds the word that it works on: one for each call (under a microsecond), so that
    # threads never share it. Zero: it keeps no words of its own, this cache does.
    return str(Stemmer(language, 0).stemWord(word))
