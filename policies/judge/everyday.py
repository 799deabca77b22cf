"""Everyday words: does a sentence tell of others what a notice would say of the record itself?

Chapters are rejected, records are kept, scenes are removed and parts are left out in novels,
offices and museums, too. A notice says so of the text and tells nothing; a telling names who spoke,
or says what was said. So words of every day betray a recorder only in a sentence that tells
nothing, or beside rules that are nobody's, or, where a prose tells little else, beside a word of
the talk as a whole.
"""

import re
from dataclasses import dataclass
from functools import cached_property

from policies.judge.heard import Heard
from policies.judge.notices import GROUPS, Notice
from policies.judge.reading import words
from policies.judge.terms import DENSE, terms

_LEAST_TOLD = 2
"""From so many things of the span a sentence tells something; who spoke counts as one."""
_LEAST_BESIDE = 3
"""From so many things of the span in its other sentences a prose tells them beside a notice."""
_WORD_CHARS, _WORD_SIGNS = 24, 5
"""What is looked at as one word, with spaces between words and without."""
_ENDING = 2
"""So many letters longer than a name is a form of it."""
_USER = re.compile(r"\b(?:user|usuari[oa]|пользовател\w*)\b|用[户戶]|使用者|ユーザー|사용자")
_BRACKETS = tuple("[(（【［")


@dataclass(frozen=True)
class Prose:
    """The sentences of a prose, folded, beside what its source said."""

    sentences: list[str]
    heard: Heard

    @cached_property
    def _told(self) -> list[set[str]]:
        return [_things(text, self.heard) for text in self.sentences]

    @cached_property
    def _alone(self) -> list[int]:
        """For each sentence, of how many things it alone tells."""
        where: dict[str, int | None] = {}
        for at, told in enumerate(self._told):
            where.update({thing: None if thing in where else at for thing in told})
        alone = [0] * len(self._told)
        for only in where.values():
            if only is not None:
                alone[only] += 1
        return alone

    def tells_beside(self, at: int) -> bool:
        """Say whether the sentences other than that one tell of the source."""
        return len(set().union(*self._told)) - self._alone[at] >= _LEAST_BESIDE


def is_told(found: re.Match[str], notice: Notice, prose: Prose, at: int) -> bool:
    """Say whether what a form found in the sentence `at` is told of others, in everyday words."""
    met = {name: word for name, word in found.groupdict().items() if word and name in GROUPS}
    text = found.string
    if not met or text.startswith(_BRACKETS) or notice.assistant.search(found.group()):
        return False
    if not all(name == "rules" or notice.everyday.fullmatch(word) for name, word in met.items()):
        return False
    if "left" in met and not found.start() and notice.theme.search(found.group()):
        return False
    return (
        _tells(text, notice, prose.heard)
        and not _is_ruled(text, notice, prose.heard)
        and not _is_of_talk(text, notice, prose.heard)
        and (prose.tells_beside(at) or not notice.theme.search(text))
    )


def _tells(text: str, notice: Notice, heard: Heard) -> bool:
    """Whether a sentence, without a notice's own words, tells of its source."""
    told = _things(notice.own.sub(" ", text), heard)
    return len(told) + _names_speaker(text, heard) >= _LEAST_TOLD


def _is_ruled(text: str, notice: Notice, heard: Heard) -> bool:
    """Whether rules are told that the source does not know, and of which nobody is said whose or
    for whom they are: `the airline's policy`, `unsuitable for children`."""
    if heard.holds(notice.rules):
        return False
    for rules in notice.rules.finditer(text):
        before = text[max(0, rules.start() - _WORD_CHARS) : rules.start()].split()[-1:]
        behind = text[rules.end() : rules.end() + 4 * _WORD_CHARS].split()[: notice.behind]
        near = [word[-_WORD_SIGNS:] if DENSE.search(word) else word for word in before]
        around = " ".join([*near, "|", *behind])
        if not notice.owner.search(around) and not _things(notice.own.sub(" ", around), heard):
            return True
    return False


def _is_of_talk(text: str, notice: Notice, heard: Heard) -> bool:
    """Whether the talk as a whole, or this record, is told of, in a word that nobody said."""
    return any(word.group() not in heard.folded for word in notice.talk.finditer(text))


def _things(text: str, heard: Heard) -> set[str]:
    """The terms of a text that were said; the speakers' names are none."""
    return terms(text) & heard.things


def _names_speaker(text: str, heard: Heard) -> bool:
    """Whether the user, or who spoke, is named; endings may be inflected."""
    if _USER.search(text):
        return True
    told = words(text)
    for name in (who.split()[0] for who in heard.speakers):
        stem, longest = name[: max(2, len(name) - 1)], len(name) + _ENDING
        if any(word.startswith(stem) and len(word) <= longest for word in told):
            return True
        if DENSE.search(name) and name in text:
            return True
    return False
