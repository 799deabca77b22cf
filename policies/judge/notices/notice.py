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
    as in the forms, for the source.
    """

    script: re.Pattern[str]
    forms: tuple[re.Pattern[str], ...]
    reported: tuple[re.Pattern[str], ...]
    asked: re.Pattern[str]
    rules: re.Pattern[str]
    left: re.Pattern[str]


def forms(*patterns: str) -> tuple[re.Pattern[str], ...]:
    """Return the patterns, for text whose white space is single spaces."""
    return tuple(re.compile(each) for each in patterns)


def free(group: str) -> str:
    """Return a part that captures as one that does not."""
    return re.sub(r"\(\?P<\w+>", "(?:", group)


def bare(group: str) -> re.Pattern[str]:
    """Return a capturing part as a pattern of its own."""
    return re.compile(group)
