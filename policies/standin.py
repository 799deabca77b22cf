"""Stand-ins: a chapter made without a model, from whole sentences of its span.

Used only where the model failed and room is needed. It is honest (each sentence stands in the
source, under its speaker), spread over the span from its beginning to its end, and the same for
the same input: ties go to the earlier sentence.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import regex

from policies.chapters import split_text
from policies.values import Line

_SLACK = 1.25
"""How much longer than asked it may be, for the sake of whole sentences."""

_CUT = " …"
_READ = 64_000
"""Characters read whole: twice the largest span, about 20 ms."""

_STRETCH = 130
"""Characters of stand-in for each stretch of the span: the best sentence of each is taken first,
so that beginning, middle and end all speak."""

_REPEATABLE = 4
"""Of so many words and numbers on a sentence repeats another that has all of them but one: people
say every evening what they said the evening before, and only the day is another."""

_STOP = regex.compile(
    r"(?:(?<![.!?…])[.!?…]++[\"'”’»)\]*]*+|\p{Emoji_Presentation}[\p{Emoji_Modifier}\uFE0F]*+)"
    r"(?=\s+(?:\P{Ll}|$))(?!\s\p{M})"
    r"|(?<![。！？])[。！？][。！？!?…]*+[」』”’）*]*+(?![\s\p{M}\u200d])(?!(?<=[」』])\p{Hiragana})"
    r"|(?<![!?…])[!?…]++(?=[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}])"
)
_ABBREVIATION = regex.compile(r"(?:^|[\s(\"“])(?:\p{Lu}|Mrs?|Ms|Dr|St|Sra?|Srta|Prof|vs|No)\.$")
_TERM = regex.compile(
    r"(?V1)\p{N}+(?:[.,:/-]\p{N}+)*|[\p{Han}々]+|[\p{Katakana}ー]+"
    r"|[\p{L}--[\p{Han}\p{Hiragana}\p{Katakana}ー々]][\p{L}\p{M}'’--[\p{Han}\p{Hiragana}]]*"
)


@dataclass(frozen=True, slots=True)
class _Sentence:
    place: int
    at: int
    name: str
    text: str
    terms: tuple[str, ...]
    line: int = 0


def write_stand_in(lines: Sequence[Line], length: int) -> str:
    """An extract of about ``length`` characters, at most 1.25 times as many.

    Whole sentences in the order they were said, each on a line of its own as
    ``speaker: sentence``, chosen for names, numbers and rare words. A reply that declines what it
    was asked for is left out as a whole, of another one each sentence that does (law 7); what a
    user said never is. Only where no sentence is short enough is the beginning of one taken, cut
    at a word and ended by ``…``. Empty for lines that say nothing else than refusals.
    """
    return _extract(lines, length, _Refusals(lines).spare)


def condense(texts: Sequence[str], length: int) -> str:
    """A gist without a model: the most telling sentences of a gist and its chapters, in order.

    Lengths and choice as in ``write_stand_in``; a line that names its speaker keeps the name.
    These texts are judged already: who declines something in them is told about.
    """
    return _extract([Line("", text) for text in texts], length, lambda sentence: True)


_Fit = Callable[["_Sentence"], bool]
"""Whether a sentence may stand in an extract."""


def _extract(lines: Sequence[Line], length: int, is_fit: _Fit) -> str:
    most = int(length * _SLACK)
    sentences = list(_sentences(lines, most))
    fitting = [s for s in sentences if len(s.text) <= most]
    chosen = _choose(fitting, _values(fitting), length, is_fit) if fitting else []
    if not chosen:
        first = next(filter(is_fit, (s for s in sentences if len(s.text) > most)), None)
        return _beginning(first, most) if first else ""
    return "\n".join(sentence.text for sentence in sorted(chosen, key=lambda s: s.place))


class _Refusals:
    """Which lines and sentences of a span decline. Each is judged when it would be chosen: a
    verdict takes up to 0.2 ms, and an extract chooses a few dozen sentences of hundreds."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines
        self._replies: dict[int, list[int]] = {}
        for number, line in enumerate(lines):
            if line.role == "assistant":
                self._replies.setdefault(line.at, []).append(number)
        self._verdicts: dict[str, bool] = {}

    def spare(self, sentence: _Sentence) -> bool:
        """Whether a sentence is the user's, or neither it nor its reply declines."""
        line = self._lines[sentence.line]
        if line.role not in ("assistant", ""):
            return True
        of_reply = self._replies.get(line.at, []) if line.role else [sentence.line]
        return not (
            self._declines("\n".join(self._lines[number].text for number in of_reply))
            or self._declines(sentence.text.removeprefix(sentence.name))
        )

    def _declines(self, text: str) -> bool:
        found = self._verdicts.get(text)
        if found is None:
            # Not at every start: its patterns take a sixth of a second to compile.
            from policies.judge import declines_request

            found = self._verdicts[text] = declines_request(text)
        return found


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, each without the blanks around it."""
    return list(_split(text))


def rate_sentences(sentences: Sequence[str]) -> list[float]:
    """How telling each of these is for the room it takes: by names, numbers and rare words."""
    return _values([_Sentence(0, 0, "", said, tuple(_terms(said))) for said in sentences])


def _sentences(lines: Sequence[Line], most: int) -> Iterator[_Sentence]:
    """The sentences that may be quoted, each once, with where they end.

    Those longer than ``most`` cannot be chosen, and so their terms are not looked for.
    """
    total = sum(len(line.text) for line in lines)
    place = at = 0
    seen = set()
    for number, line in enumerate(lines):
        name = f"{line.label}: " if line.label else ""
        for sentence in _read(line.text, total, 4 * most):
            at += len(sentence)
            place += 1
            said = name + sentence
            if said not in seen:
                seen.add(said)
                terms = tuple(_terms(sentence)) if len(said) <= most else ()
                yield _Sentence(place, at, name, said, terms, number)


def _read(text: str, total: int, window: int) -> Iterator[str]:
    """The sentences of a text; of a span that is too long for milliseconds, those that stand
    whole in windows spread evenly over it."""
    if total <= _READ or len(text) <= window:
        yield from _split(text)
        return
    step = max(window, len(text) * window // _READ)
    for at in range(0, len(text), step):
        found = list(_split(text[at : at + window]))
        yield from found[at > 0 : max(at == 0, len(found) - 1)]


def _split(text: str) -> Iterator[str]:
    """Cut each line of a text behind its sentence ends; marks in brackets stay whole."""
    for line in text.splitlines():
        start = 0
        for stop in () if line.startswith("[") else _STOP.finditer(line):
            sentence = line[start : stop.end()].strip()
            if sentence and not _ABBREVIATION.search(sentence):
                yield sentence
                start = stop.end()
        rest = line[start:].strip()
        if rest:
            yield rest


def _terms(sentence: str) -> Iterator[str]:
    """Words and numbers; a run of Han letters, which has no spaces, as its pairs."""
    for term in _TERM.findall(sentence):
        if len(term) > 2 and term[0] >= "一" and term[0] <= "鿿":
            yield from (term[at : at + 2] for at in range(len(term) - 1))
        else:
            yield term


def _values(sentences: Sequence[_Sentence]) -> list[float]:
    """How telling each sentence is for the room it takes."""
    common = Counter(term.casefold() for s in sentences for term in set(s.terms))
    rarity = {term: math.log(1 + len(sentences) / n) for term, n in common.items()}
    values = []
    for sentence in sentences:
        value = sum(rarity[term.casefold()] for term in set(sentence.terms))
        value += 2 * sum(term[0].isdigit() for term in sentence.terms)
        value += 1.5 * sum(len(t) > 1 and t[0].isupper() for t in sentence.terms[1:])
        if sentence.text.rstrip('*"”’»」』）)').endswith(("?", "？")):
            value *= 0.7
        values.append(value / (len(sentence.text) + 40))
    return values


def _choose(
    sentences: Sequence[_Sentence], values: Sequence[float], length: int, is_fit: _Fit
) -> list[_Sentence]:
    """The best fit sentence of each stretch, then the second best, until the length is reached;
    what says little that was not taken yet comes when all else is."""
    count = max(1, length // _STRETCH)
    end = sentences[-1].at + 1
    stretches: list[list[int]] = [[] for _ in range(count)]
    for index, sentence in enumerate(sentences):
        stretches[sentence.at * count // end].append(index)
    for stretch in stretches:
        stretch.sort(key=lambda index: (values[index], -index))  # the best last, to be popped
    chosen: list[_Sentence] = []
    size = 0
    for sentence in map(sentences.__getitem__, _in_turn(sentences, stretches)):
        cost = len(sentence.text) + (1 if chosen else 0)
        if size + cost <= length * _SLACK and is_fit(sentence):
            chosen.append(sentence)
            size += cost
        if size >= length:
            break
    return chosen


def _in_turn(sentences: Sequence[_Sentence], stretches: Sequence[list[int]]) -> Iterator[int]:
    """Of each stretch in turn the best that is left and says something new; then the others."""
    told: list[set[str]] = []
    repeating: list[int] = []
    while any(stretches):
        for stretch in _outside_in(stretches):
            while stretch:
                index = stretch.pop()
                terms = {term.casefold() for term in sentences[index].terms}
                if len(terms) >= _REPEATABLE and any(len(terms - one) < 2 for one in told):
                    repeating.append(index)
                    continue
                told.append(terms)
                yield index
                break
    yield from repeating


def _outside_in(stretches: Sequence[list[int]]) -> Iterator[list[int]]:
    """First and last stretch before those between, so that neither end is left out."""
    for step in range((len(stretches) + 1) // 2):
        yield stretches[step]
        if step != len(stretches) - 1 - step:
            yield stretches[len(stretches) - 1 - step]


def _beginning(sentence: _Sentence, most: int) -> str:
    room = max(1, most - len(sentence.name) - len(_CUT))
    said = sentence.text.removeprefix(sentence.name)
    return sentence.name + split_text(said, room)[0].rstrip() + _CUT
