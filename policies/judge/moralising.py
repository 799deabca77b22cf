"""Moralising: talk about the text, or about its lesson, instead of what happened.

Small models that have lost the thread praise it in phrases that fit any text. One such phrase is
a manner, two are a habit. English alone. None of these stands in LoCoMo's 81 development session
summaries, in 159 of its lists of facts, or in the English chapters of the tests.
"""

import re

from policies.judge.heard import Heard
from policies.judge.reading import fold, unquote

_TEXT = r"(?:story|passage|narrative|text|excerpt|tale|scene|dialogue|transcript)"
_ABOUT_TEXT = re.compile(
    rf"\bin (?:the|this) (?P<place>{_TEXT}),"
    rf"|\b(?:the|this) (?P<subject>{_TEXT}) (?:\w+ly |also )?(?:emphasi|highlight|underscor"
    r"|illustrat|convey|remind|teach|explor|showcas|demonstrat|reflect|revolv|focus|center|serves)"
)
_PRAISES = (
    re.compile(r"\btestaments? to\b"),
    re.compile(r"\bserv\w+ as an? (?:\w+ )?reminder\b|\bremind\w* (?:us|readers|everyone)\b"),
    re.compile(r"\bmessage of (?:hope|love|peace|faith|unity)\b|\bmoral of\b"),
    re.compile(
        r"\b(?:story|journey|experience|dedication|determination|spirit)s?\b[^.]{0,40}"
        r"\b(?:is|are|was|were) (?:\w+ ){0,2}(?:inspir|empower|moving\b)"
    ),
    re.compile(r"\b(?:power|beauty|value) of (?:\w+ and )?(?:perseverance|resilience|passion)\b"),
    re.compile(r"\binspir\w+ (?:and motivat\w+ )?others\b"),
)
_MOST_PRAISES = 1


def is_moralising(prose: str, heard: Heard) -> bool:
    """Say whether a prose speaks of itself as a text, or praises in several ready-made phrases.

    What the source says itself (a talk about a story, a sermon) may be told.
    """
    told = fold(unquote(prose))
    for found in _ABOUT_TEXT.finditer(told):
        if (found["place"] or found["subject"]) not in heard.words:
            return True
    praises = [match for phrase in _PRAISES if (match := phrase.search(told))]
    return sum(match.group() not in heard.folded for match in praises) > _MOST_PRAISES
