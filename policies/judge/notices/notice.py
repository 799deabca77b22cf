"""The shape of one language's notices: how it is told that something is not told."""

import re
from dataclasses import dataclass

GROUPS = ("telling", "passage", "recorder", "rules", "left", "stop")
"""What a form may capture: a word of telling (summary, chapter), the span as a text (excerpt), who
only records (chronicler), rules (policy, sensitive), leaving out, and breaking off."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Patterns over one folded sentence without its quotations.

    script: a letter of the language's script. forms: a record that is refused or shortened; each
    captures GROUPS, or none where nothing else can be meant. reported: an assistant declines, which
    may also have happened in the span. asked: how a source asks for a shorter telling. rules, left:
    as in the forms, for the source. everyday: the whole of a captured word that people use of other
    things than records. talk: the span as a talk or a text, or this record. theme: what was said,
    or what it was about. assistant: who is told of as an assistant, not as any system. own: the
    words of a notice, whatever it withholds. behind: how many words behind one of rules may say
    whose they are, beside the one before it. owner: in the word before, ` | ` and the words behind,
    that they are somebody's, or for somebody.
    """

    script: re.Pattern[str]
    forms: tuple[re.Pattern[str], ...]
    reported: tuple[re.Pattern[str], ...]
    asked: re.Pattern[str]
    rules: re.Pattern[str]
    left: re.Pattern[str]
    everyday: re.Pattern[str]
    talk: re.Pattern[str]
    theme: re.Pattern[str]
    assistant: re.Pattern[str]
    own: re.Pattern[str]
    behind: int
    owner: re.Pattern[str]


def forms(*patterns: str) -> tuple[re.Pattern[str], ...]:
    """Return the patterns, for text whose white space is single spaces."""
    return tuple(re.compile(each) for each in patterns)


def then(*parts: str) -> str:
    """Return a form in which each part stands anywhere behind the one before it.

    Each but the last is looked for once: where its first place leads nowhere, no later one does. So
    a search takes time in proportion to its text.
    """
    *firsts, last = parts
    return "^" + "".join(f"(?>.*?{first})" for first in firsts) + f".*?{last}"


def free(group: str) -> str:
    """Return a part that captures as one that does not."""
    return re.sub(r"\(\?P<\w+>", "(?:", group)


def blank(*groups: str) -> re.Pattern[str]:
    """Return parts as one pattern that captures nothing."""
    return re.compile("|".join(map(free, groups)))


def bare(group: str) -> re.Pattern[str]:
    """Return a capturing part as a pattern of its own."""
    return re.compile(group)
