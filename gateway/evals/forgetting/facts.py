"""Distinctive statements of spans, found without a model.

A statement is what one sentence of one speaker says with words that stand in no other span of the
conversation: where these words stand, the statement is remembered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gateway.backends.accounts import telling_words
from gateway.backends.scripted_texts import VOICES
from policies.values import Line

_SENTENCE = re.compile(r"[^.!?。！？\n]+")
_MOST_WORDS = 3
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
    """words: distinctive ones of one sentence, the first ones to ask by, the last to answer with.
    number: its place in the conversation, from 0."""

    span: int
    number: int
    who: str
    words: tuple[str, ...]
    language: str

    @property
    def question(self) -> str:
        return _ASKS[self.language].format(who=self.who, cue=_join(self.words[:-1], self.language))

    @property
    def answer(self) -> str:
        return self.words[-1]

    @property
    def sentence(self) -> str:
        """As a recorder tells it; always the same, so that it can be told on."""
        voice = VOICES[self.language]
        told = voice.told[self.number % len(voice.told)]
        return told.format(who=self.who, what=_join(self.words, self.language))

    def stands_in(self, text: str) -> bool:
        """Whether a text (folded) still holds the statement."""
        return all(fold_text(word) in text for word in self.words)


def _join(words: Sequence[str], language: str) -> str:
    voice = VOICES[language]
    *head, last = words
    return voice.comma.join(head) + voice.last + last if head else last


def fold_text(text: str) -> str:
    return text.casefold()


def find_facts(spans: Sequence[Sequence[Line]], languages: Sequence[str]) -> list[list[Fact]]:
    """For each span its statements in order. The words of each stand in its own span only."""
    texts = [fold_text("\n".join(line.text for line in lines)) for lines in spans]
    found: list[list[Fact]] = []
    number = 0
    for place, lines in enumerate(spans):
        others = "\n".join(text for at, text in enumerate(texts) if at != place)
        told: list[Fact] = []
        for who, words in _statements(lines, languages[place], others):
            told.append(Fact(place, number, who, words, languages[place]))
            number += 1
        found.append(told)
    return found


def _statements(
    lines: Sequence[Line], language: str, others: str
) -> Iterator[tuple[str, tuple[str, ...]]]:
    used: set[str] = set()
    for line in lines:
        for sentence in _SENTENCE.findall(line.text):
            words: list[str] = []
            for word in telling_words(sentence, language):
                folded = fold_text(word)
                if folded not in used and folded not in others:
                    words.append(word)
                    used.add(folded)
            if len(words) > 1:
                yield line.speaker, tuple(words[:_MOST_WORDS])


def spread(facts: Sequence[Fact], most: int) -> list[Fact]:
    """So many of them, spread evenly over their span."""
    if len(facts) <= most:
        return list(facts)
    return [facts[place * len(facts) // most] for place in range(most)]


def thin(facts: Sequence[Sequence[Fact]], keep: float, length: int) -> list[list[Fact]]:
    """So many of each span's statements that the kept share of them fills four fifths of a text
    of this length: then it is the share that decides what is kept, not the length."""
    thinned = []
    for told in facts:
        cost = sum(len(fact.sentence) + 1 for fact in told) / max(1, len(told))
        most = int(0.8 * length / (keep * cost)) if told else 0
        thinned.append(spread(told, max(1, most)))
    return thinned
