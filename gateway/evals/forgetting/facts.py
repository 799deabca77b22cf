"""Distinctive statements of spans, found without a model.

A statement is what one sentence of one speaker says with words that stand nowhere else in the
conversation: where these words stand, the statement is remembered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from gateway.backends.accounts import telling_words
from gateway.backends.scripted_texts import VOICES
from policies.values import Line

_SENTENCE = re.compile(r"[^.!?。！？\n]+")
_MOST_KEYS = 3
_MOST_CUES = 6
_FILLED = 0.8
_TOLD_TOGETHER = {"ja": 6, "zh": 6, "ko": 6}
_TOLD_USUALLY = 3
"""Statements in one sentence: where words are short, too many sentences of one form would be taken
for a loop."""
_ASKS = {
    "en": "What did {who} say about {cue}?",
    "ja": "{who}は{cue}について何と言いましたか。",
    "zh": "关于{cue}，{who}说了什么？",
    "ko": "{who} 쪽에서 {cue} 이야기를 할 때 뭐라고 했나요?",
    "ru": "Что {who} говорит про {cue}?",
    "es": "¿Qué dijo {who} sobre {cue}?",
}


@dataclass(frozen=True, slots=True)
class Fact:
    """words: of one sentence, as they are told. keys: those of them that stand in the conversation
    once; the last of them is what is asked for. cues: the other telling words of the sentence, by
    which a question says what it is about. number: its place in the conversation, from 0."""

    number: int
    who: str
    words: tuple[str, ...]
    keys: tuple[str, ...]
    language: str
    cues: tuple[str, ...] = ()

    @property
    def is_askable(self) -> bool:
        """Whether a question can name what it is about: a key beside the answer."""
        return len(self.keys) > 1

    @property
    def question(self) -> str:
        cues = self.cues or tuple(word for word in self.words if word != self.answer)
        return _ASKS[self.language].format(who=self.who, cue=_join(cues, self.language))

    @property
    def answer(self) -> str:
        return self.keys[-1]

    def stands_in(self, text: str) -> bool:
        """Whether a text (folded) still holds the statement."""
        return all(fold_text(key) in text for key in self.keys)


def tell(facts: Sequence[Fact]) -> str:
    """These statements as a recorder tells them, in order: what one speaker said goes into one
    sentence as far as it is no list."""
    sentences = []
    for (who, language), told in groupby(facts, key=lambda fact: (fact.who, fact.language)):
        for some in _batched(list(told), _TOLD_TOGETHER.get(language, _TOLD_USUALLY)):
            words = [word for fact in some for word in fact.words]
            phrases = VOICES[language].told
            phrase = phrases[some[0].number % len(phrases)]
            sentences.append(phrase.format(who=who, what=_join(words, language)))
    joint = "" if facts and facts[0].language in ("ja", "zh") else " "
    return joint.join(sentences)


def _batched(facts: Sequence[Fact], most: int) -> list[Sequence[Fact]]:
    return [facts[at : at + most] for at in range(0, len(facts), most)]


def _join(words: Sequence[str], language: str) -> str:
    voice = VOICES[language]
    *head, last = words
    return voice.comma.join(head) + voice.last + last if head else last


def fold_text(text: str) -> str:
    return text.casefold()


def find_facts(spans: Sequence[Sequence[Line]], languages: Sequence[str]) -> list[list[Fact]]:
    """For each span its statements in order."""
    whole = fold_text("\n".join(line.text for lines in spans for line in lines))
    found: list[list[Fact]] = []
    number = 0
    for lines, language in zip(spans, languages, strict=True):
        told: list[Fact] = []
        for who, words, keys, cues in _statements(lines, language, whole):
            told.append(Fact(number, who, words, keys, language, cues))
            number += 1
        found.append(told)
    return found


def _statements(
    lines: Sequence[Line], language: str, whole: str
) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]]:
    """(speaker, words, keys, cues) of each sentence with a key. A word of the phrases that
    statements are told with is none."""
    phrases = fold_text("\n".join(VOICES[language].told))
    for line in lines:
        for sentence in _SENTENCE.findall(line.text):
            words = dict.fromkeys(telling_words(sentence.strip(), language))
            keys = [
                word
                for word in words
                if whole.count(fold_text(word)) == 1 and fold_text(word) not in phrases
            ][:_MOST_KEYS]
            if keys:
                # A word that stands all over the conversation is told only beside a lone key.
                others = [word for word in words if word not in keys][: max(0, 2 - len(keys))]
                kept = tuple(word for word in words if word in keys or word in others)
                cues = tuple(word for word in words if word != keys[-1])[:_MOST_CUES]
                yield line.speaker, kept, tuple(keys), cues


def spread(facts: Sequence[Fact], most: int) -> list[Fact]:
    """So many of them, spread evenly over their span."""
    if len(facts) <= most:
        return list(facts)
    return [facts[place * len(facts) // most] for place in range(most)]


def ask_about(facts: Sequence[Fact], count: int) -> list[Fact]:
    """So many statements of a span to ask about; fewer where it has not so many."""
    return spread([fact for fact in facts if fact.is_askable], count)


def thin(facts: Sequence[Sequence[Fact]], keep: float, length: int) -> list[list[Fact]]:
    """So many of each span's statements that the kept share of them fills four fifths of a text
    of this length: then it is the share that decides what is kept, and neither the length nor the
    judge, who takes no text that is much too short."""
    thinned = []
    for told in facts:
        cost = len(tell(told)) / max(1, len(told))
        most = max(1, int(_FILLED * length / (keep * cost))) if told else 0
        asked = spread([fact for fact in told if fact.is_askable], most)
        others = spread([fact for fact in told if not fact.is_askable], most - len(asked))
        thinned.append(sorted([*asked, *others], key=lambda fact: fact.number))
    return thinned
