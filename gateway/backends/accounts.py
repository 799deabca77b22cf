"""An honest account of a quoted span without a model: who brought up what, in the span's order.

It is extractive: each sentence names a speaker and telling words (names, numbers, rare words) of
one thing that this speaker said, taken from all over the span. Nothing else is claimed.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from gateway.backends.scripted_texts import STOP_WORDS, VOICES, Voice
from policies.language import language_of
from policies.standin import condense, split_sentences

_RECORD = re.compile(r"\[begin record (\w+)\]\n(.*)\n\[end record \1\]", re.DOTALL)
_THREAD = re.compile(r"^T(\d{1,9}): (.*)$", re.MULTILINE)
_LINE = re.compile(r"^([^\s:：][^\n:：]{0,39})[:：] (.*)$")
_NUMBER = re.compile(r"\d[\d,]{2,}")
_SENTENCE = re.compile(r"[^.!?。！？\n]+")
_LETTERS_OF = r"[A-Za-z\u00c0-\u024f\u0400-\u04ff][A-Za-z\u00c0-\u024f\u0400-\u04ff\d]*"
_OTHER = (
    r"|\d+(?:[.,:/-]\d+)*|[\u30a0-\u30ff]{2,}|[\uac00-\ud7a3]{2,}"
    rf"|{_LETTERS_OF}(?:['’\-]{_LETTERS_OF})*"
)
_WORD = re.compile(r"(?:(?![私僕俺君])[\u3400-\u9fff々]){2,6}" + _OTHER)
_CHINESE_WORD = re.compile(
    r"(?:(?![我你您咱他她它们們的了是在和也就都很没不有说說要去到会會能还還把被吧吗嗎呢啊这這那个個"
    r"着著过過得让讓给給跟与與或及从從向对對为為])[\u3400-\u9fff]){2,4}" + _OTHER
)
"""Chinese is written without spaces: words that only join others cut its runs."""
_ASKED_CHARS = 1_100
_PHRASES = 4
_NAME_WORDS = 3
"""Words of a speaker's name at most: before a colon more of them are prose."""
_LETTERS = 4
"""An alphabet's words below this are seldom telling; names and numbers are taken at any length."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a summarizer's prompt asks: the quoted text, the length in characters, the language,
    whether the text is a recorder's own notes (prose) in place of what people said (lines), the
    threads that were open by their numbers, and the words that ask."""

    record: str
    chars: int
    language: str
    notes: bool = False
    threads: tuple[tuple[int, str], ...] = ()
    instruction: str = ""


@dataclass(frozen=True, slots=True)
class _Said:
    who: str
    phrases: tuple[str, ...]
    weight: float


def read_task(prompt: str, *, notes: bool = False) -> Task:
    """Read a summarizer's prompt: the text between its marks (without marks: all of it), and the
    first number behind them."""
    match = _RECORD.search(prompt)
    record, rest = (match[2], prompt[match.end() :]) if match else (prompt, "")
    listed = _RECORD.search(rest)
    threads = _THREAD.findall(listed[2]) if listed else []
    rest = rest[listed.end() :] if listed else rest
    numbers = (int(found.replace(",", "")) for found in _NUMBER.findall(rest))
    chars = next((number for number in numbers if 50 <= number <= 20_000), _ASKED_CHARS)
    opened = tuple((int(number), text) for number, text in threads)
    return Task(record, chars, language_of(record) or "en", notes, opened, rest)


def write_account(task: Task) -> str:
    """Prose of about the asked length: at most that and one sentence more; shorter for a span that
    says little, and empty for one that holds no telling word.

    Of notes, and of a record in which nobody is named, the most telling sentences are kept as they
    are; but what a note quotes under its speaker, as stand-ins do, is told of that speaker: a gist
    speaks as nobody.
    """
    joint = "" if task.language in ("ja", "zh") else " "
    rows = [line for line in task.record.splitlines() if line.strip()]
    if task.notes:
        rows = list(_retell(rows, task))
    lines = [(who.partition(" (")[0], text) for who, text in map(read_line, rows)]
    if task.notes or not any(who for who, _ in lines):
        return joint.join(condense(rows, round(task.chars * 0.8)).splitlines())
    voice = VOICES[task.language]
    told = _choose(list(_read_record(lines, task.language)), task.chars, max(map(len, voice.told)))
    return joint.join(_tell(said, voice, number) for number, said in enumerate(told))


def _retell(rows: Sequence[str], task: Task) -> Iterator[str]:
    """The sentences of notes, in order, with what is quoted in them told."""
    voice = VOICES[task.language]
    overhead = max(map(len, voice.told))
    notes = list(_read_notes(rows))
    prose = [word for who, text in notes if not who for word in telling_words(text, task.language)]
    for is_quoted, group in groupby(notes, key=lambda said: said[0] != ""):
        run = list(group)
        if not is_quoted:
            yield from (text for _, text in run)
            continue
        length = sum(len(who) + len(text) for who, text in run)
        told = _choose(list(_read_record(run, task.language)), length, overhead, prose)
        yield from (_tell(said, voice, number) for number, said in enumerate(told))


def _read_notes(rows: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The sentences of notes, each with the speaker under whom its row quotes it, "" for prose."""
    for row in rows:
        who = ""
        for sentence in split_sentences(row):
            speaker, text = read_line(sentence)
            name = speaker.partition(" (")[0]
            if name and len(name.split()) <= _NAME_WORDS:
                who = name
                yield who, text
            else:
                yield who, sentence


def _choose(
    said: Sequence[_Said], chars: int, overhead: int, told: Iterable[str] = ()
) -> list[_Said]:
    """What is told, in the order of the span: nothing twice, and nothing of which all words were
    told already."""
    chosen: dict[int, _Said] = {}
    known = set(told)
    length = 0
    for place in _spread(said, chars):
        fresh = tuple(p for p in said[place].phrases if not (_words(p) and known >= {*_words(p)}))
        words = [word for phrase in fresh for word in _words(phrase)]
        if len(words) < 2:
            continue
        known.update(words)
        chosen[place] = replace(said[place], phrases=fresh)
        length += overhead + len(said[place].who) + sum(len(phrase) + 2 for phrase in fresh)
        if length >= chars:
            break
    return [chosen[place] for place in sorted(chosen)]


def _words(phrase: str) -> list[str]:
    """The words of a phrase without its numbers: another number makes no other matter."""
    return [word for word in phrase.split() if not word[0].isdigit()]


def _read_record(lines: Sequence[tuple[str, str]], language: str) -> Iterator[_Said]:
    """What each sentence of a record brings up, in order."""
    heard = Counter(word for _, text in lines for word, _ in _telling(text, language))
    who = ""
    for speaker, text in lines:
        who = speaker or who
        for sentence in _SENTENCE.findall(text):
            phrases = _find_phrases(sentence.strip(), language)
            worth = {phrase: sum(_value(w, heard[w]) for w in phrase.split()) for phrase in phrases}
            best = sorted(worth, key=lambda phrase: -worth[phrase])[:_PHRASES]
            kept = tuple(phrase for phrase in worth if phrase in best)
            if who and kept:
                yield _Said(who, kept, sum(worth[phrase] for phrase in kept))


def _find_phrases(sentence: str, language: str) -> list[str]:
    """Telling words, those that stand side by side together; three at most, which is no copy."""
    phrases: list[str] = []
    end, words = -2, 0
    for word, start in _telling(sentence, language):
        if start == end + 1 and words < 3 and sentence[end] == " ":
            phrases[-1] += " " + word
            words += 1
        else:
            phrases.append(word)
            words = 1
        end = start + len(word)
    return phrases


def read_line(line: str) -> tuple[str, str]:
    """A line of a record: its speaker, "" where it names none, and what follows."""
    match = _LINE.match(line)
    return (match[1].strip(), match[2]) if match else ("", line)


def _telling(text: str, language: str) -> Iterator[tuple[str, int]]:
    """Names, numbers and content words of a text, with where they begin. What begins a sentence is
    no name for its capital, and a contraction speaks as somebody."""
    pattern = _CHINESE_WORD if language == "zh" else _WORD
    for match in pattern.finditer(text):
        word = match[0]
        lowered = word.lower().replace("’", "'")
        if lowered in STOP_WORDS or ("'" in lowered and not lowered.endswith("'s")):
            continue
        if _is_name(word, match.start()) or not _is_alphabetic(word) or len(word) >= _LETTERS:
            yield word, match.start()


def telling_words(text: str, language: str) -> list[str]:
    """The names, numbers and content words of a text, in order."""
    return [word for word, _ in _telling(text, language)]


def _is_alphabetic(word: str) -> bool:
    return word[0] < "\u0500" and not word[0].isdigit()


def _is_name(word: str, start: int) -> bool:
    return word[:1].isupper() and start > 0 and len(word) > 1


def _value(word: str, times: int) -> float:
    """Rare words tell more; names and numbers most."""
    named = word[0].isdigit() or word[:1].isupper()
    return 1.0 / math.sqrt(max(times, 1)) + (0.7 if named else 0.0)


def _spread(said: Sequence[_Said], chars: int) -> Iterator[int]:
    """Places in the order of their worth: the best of each stretch, then the second best."""
    count = max(1, chars // 80)
    stretches: list[list[int]] = [[] for _ in range(count)]
    for place in range(len(said)):
        stretches[place * count // len(said)].append(place)
    for stretch in stretches:
        stretch.sort(key=lambda place: (-said[place].weight, place))
    for rank in range(max(map(len, stretches))):
        for stretch in stretches:
            if rank < len(stretch):
                yield stretch[rank]


def _tell(said: _Said, voice: Voice, number: int) -> str:
    *head, last = said.phrases
    what = voice.comma.join(head) + voice.last + last if head else last
    return voice.told[number % len(voice.told)].format(who=said.who, what=what)


def mention(text: str, language: str) -> tuple[str, ...]:
    """Up to two telling words of a text, for a reply that takes them up."""
    words = list(dict.fromkeys(word for word, _ in _telling(text[:2_000], language)))
    best = sorted(words, key=lambda word: (-_value(word, 1), -len(word)))[:2]
    return tuple(word for word in words if word in best)
