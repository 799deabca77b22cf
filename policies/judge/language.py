"""Is a chapter in the language of its conversation? Scripts decide, then the commonest words."""

import re
from collections import Counter

from policies.judge.heard import Heard
from policies.judge.reading import CYRILLIC, HAN, HANGUL, KANA, fold, has_words, unquote, words

_SCRIPTS = {
    "latin": re.compile("[a-z]"),
    "cyrillic": re.compile(f"[{CYRILLIC}]"),
    "hangul": re.compile(f"[{HANGUL}]"),
    "kana": re.compile(f"[{KANA}]"),
    "han": re.compile(f"[{HAN}]"),
    "greek": re.compile("[\u0370-\u03ff]"),
    "arabic": re.compile("[\u0600-\u06ff]"),
    "hebrew": re.compile("[\u0590-\u05ff]"),
    "devanagari": re.compile("[\u0900-\u097f]"),
    "thai": re.compile("[\u0e00-\u0e7f]"),
}
_LANGUAGES = {"cyrillic": "ru", "hangul": "ko", "japanese": "ja", "chinese": "zh"}
_COMMON = {
    "en": "the and of to was that with his her for she he they had were is it on as not by but",
    "es": "el la los las que de y en un una por con para se no su al del lo pero fue habia",
    "fr": "le les des et est une dans pour que qui avec il elle pas sur son ses du au par mais ont",
    "de": "der die das und ist nicht ein eine mit sie er auf den dem zu von sich war wurde im",
    "pt": "o os uma que de e em um para com por ela ele seu sua mais foi do da no na dos ao mas",
    "it": "il gli che di e un una per con non si del della nel sono era ha lei lui suo sua ma",
}
_FUNCTION = {
    "en": "a an or at from which who whose when while because if than so then are be been has have"
    " had do does did will would can could should no its him them me my i you your our we us their"
    " this these those there here what how after before until about into over out up down off only"
    " also all both one two more still yet each other what's it's",
    "es": "o u e ni si ya al como cuando porque donde quien cuyo es son era eran ser estar esta"
    " este estos estas ese esa eso ella ellos ellas le les me te nos mi tu mas muy tambien hasta"
    " desde entre sobre sin contra tras ante cada otro otra dos solo todo todos ha han habia",
}
_COMMON_WORDS = {name: frozenset(fold(listed).split()) for name, listed in _COMMON.items()}
_FUNCTION_WORDS = {
    name: _COMMON_WORDS[name].union(fold(listed).split()) for name, listed in _FUNCTION.items()
}
_SMALL_WORD = re.compile(r"(?<![\w'\-])[^\W\d_]+(?:['\-][^\W\d_]+)*", re.UNICODE)
_LEAST_SMALL_WORDS = 6
_FOREIGN_SHARE = 0.2
"""Of the words of a telling that are written small, what must stand in an English or Spanish source
or be a word that every text of its language has: of our own good chapters at least 0.34, of a
German or French refusal that repeats the source's names none, of Portuguese under Spanish 0.3."""
_CODE = re.compile(r"(?:```|''').*?(?:```|'''|\Z)|`[^`\n]*`|https?://\S+", re.DOTALL)
_UKRAINIAN = re.compile("[іїєґ]")
_RUSSIAN = re.compile("[ыэъё]")
_DENSITY = {"han": 2.5, "kana": 2.0, "hangul": 2.0}
_LEAST = 12
"""Letters (an alphabet's) below which a language is not guessed."""


def is_wrong_language(prose: str, heard: Heard) -> bool:
    """Say whether a prose is clearly in another language than every large part of its source.

    A language that holds a seventh of the source is a language of the conversation. Too little
    text, or words common to several languages, is no proof: then the answer is no.
    """
    told = _plain(unquote(prose))
    told = told if has_words(told) else _plain(prose)
    spoken = _CODE.sub(" ", heard.folded)
    here, there = _shares(told, certain=0.04), _shares(spoken, certain=0.2)
    if not here or not there:
        return False
    main = max(here, key=lambda name: here[name])
    if here[main] < 0.6:
        return False
    if there.get(main, 0.0) < 1 / 7:
        return True
    if main == "latin":
        return _is_other_latin(told, spoken) or _is_foreign(unquote(prose), spoken, heard)
    return main == "cyrillic" and _is_other_cyrillic(told, spoken)


def is_english(text: str) -> bool:
    """Say whether the commonest words of a text are English ones."""
    guess = _latin_language(_plain(text))
    return guess is not None and guess[0] == "en"


def guess_language(text: str, context: str) -> str | None:
    """Return en, es, ru, zh, ja, ko, another code of Latin letters, or None where it is open.

    context: more text of the same conversation; the words of both tell apart what is written
    with Latin letters.
    """
    shares = _shares(text, certain=0.04)
    if not shares:
        return None
    script = max(shares, key=lambda name: shares[name])
    if script == "latin":
        guess = _latin_language(_plain(f"{text}\n{context}"))
        return guess[0] if guess else None
    return _LANGUAGES.get(script)


def leans(text: str) -> tuple[int, int]:
    """Return how many of the commonest English and Spanish words a text holds."""
    found = words(_plain(text))
    english, spanish = (_COMMON_WORDS[name] for name in ("en", "es"))
    spanish = spanish - english - {"no"}
    return sum(word in english for word in found), sum(word in spanish for word in found)


def _plain(text: str) -> str:
    return fold(_CODE.sub(" ", text))


def _shares(text: str, *, certain: float) -> dict[str, float]:
    """Return the share of each writing in a text.

    Han with kana beside it is Japanese, without it Chinese. certain: the share of kana from which
    Han can no longer be Chinese; a Chinese talk about Japanese words has some, too.
    """
    counts = {
        name: len(script.findall(text)) * _DENSITY.get(name, 1.0)
        for name, script in _SCRIPTS.items()
    }
    kana, han = counts.pop("kana"), counts.pop("han")
    total = sum(counts.values()) + kana + han
    counts["japanese"] = kana + han if kana > 0.04 * (kana + han) else 0.0
    counts["chinese"] = han if kana <= certain * (kana + han) else 0.0
    return {name: count / total for name, count in counts.items()} if total >= _LEAST else {}


def _is_other_latin(told: str, heard: str) -> bool:
    here, there = _latin_language(told), _latin_language(heard)
    if here is None or there is None or here[0] == there[0]:
        return False
    common = _COMMON_WORDS[here[0]]
    heard_words = words(heard)
    return sum(word in common for word in heard_words) * 7 < there[1] * 3


def _is_foreign(told: str, spoken: str, heard: Heard) -> bool:
    """Whether a telling's small words are neither the source's nor its language's, whatever
    language they are: names repeated from the source prove nothing."""
    there = _latin_language(spoken)
    if there is None or there[0] not in _FUNCTION_WORDS:
        return False
    known = _FUNCTION_WORDS[there[0]]
    small = [fold(word) for word in _SMALL_WORD.findall(_CODE.sub(" ", told)) if word[0].islower()]
    met = sum(word in known or word in heard.words for word in small)
    return len(small) >= _LEAST_SMALL_WORDS and met < _FOREIGN_SHARE * len(small)


def _latin_language(text: str) -> tuple[str, int] | None:
    """Return the language whose commonest words lead by half, and how many were met."""
    found = Counter(words(text))
    met = [(sum(found[word] for word in common), name) for name, common in _COMMON_WORDS.items()]
    (most, name), (second, _) = sorted(met, reverse=True)[:2]
    return (name, most) if most >= 4 and most * 2 >= second * 3 else None


def _is_other_cyrillic(told: str, heard: str) -> bool:
    for here, there in ((_UKRAINIAN, _RUSSIAN), (_RUSSIAN, _UKRAINIAN)):
        marks, others = len(here.findall(told)), len(there.findall(heard))
        if (
            marks >= 2
            and others >= 2
            and not there.search(told)
            and len(here.findall(heard)) * 7 < others
        ):
            return True
    return False
