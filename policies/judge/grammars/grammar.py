"""The shape of one language's grammar of who did what."""

import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Grammar:
    """How a language ties what happened to people; patterns over one folded sentence.

    In lead, joint, subject and told_them `{name}` stands for the names of those who spoke, and
    `{apart}` for a place that follows none of them with one of the links of two subjects. lead:
    what may stand before a subject. subject: one name, or two that are one subject, as groups
    `first` and `second`, or `they` for the two named last. joint: where a clause of another
    subject begins. further: where another predicate of the same subject begins. told_them: the
    teller tells a listener, who is no part of it. answers: the clause is about another's news, or
    about what somebody else is to do. links: what stands behind the first of two names. together:
    what two do with each other, or each for himself. theirs: the word that makes of what follows
    the matter of both. addressed: a sentence of the talk that may be about the one spoken to.
    named: how a name in `{name}` is met in any of its forms. matters: the stems of the words of a
    text that tell one matter from another. least: matters of another speaker alone from which a
    clause about one person, a clause about two, and all clauses together are foreign.
    """

    lead: str
    subject: str
    joint: str
    further: re.Pattern[str]
    told_them: str
    answers: re.Pattern[str]
    together: re.Pattern[str]
    theirs: re.Pattern[str]
    addressed: re.Pattern[str]
    named: Callable[[str], str]
    matters: Callable[[str], set[str]]
    links: tuple[str, ...] = ("",)
    least: tuple[int, int, int] = (2, 3, 3)


NEVER = re.compile("(?!)")


def whole_word(name: str) -> str:
    """Return the pattern of a name that is not inflected, in scripts with spaces."""
    return rf"\b{re.escape(name)}\b"
