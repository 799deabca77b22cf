"""The shape of one language's refusal grammar."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Voice:
    """Patterns over one folded sentence without its quotations.

    script: a letter of the language's script; the other patterns are tried only where it occurs.
    first: the speaker, as such (person, humble form), declines or is unable.
    bare: inability or declining whose form does not say whose it is.
    task: the work asked of a summarizer, or the request and its content.
    guard: a system reports that something was blocked, or a model in the third person declines.
    deflect: the asker is led to another subject, another request.
    third: somebody is told about: a reported event, not the speaker's own act.
    narrated: the form of telling what happened, in which nobody declines.
    speaker: the one who speaks shows himself: first person singular, apology, humble form.
    negative: any word of not, no, less, stop or beyond.
    talk: speech to the asker (greeting, thanks, apology, offer, you), or words about the text.
    """

    script: re.Pattern[str]
    first: re.Pattern[str]
    bare: re.Pattern[str]
    task: re.Pattern[str]
    guard: re.Pattern[str]
    deflect: re.Pattern[str]
    third: re.Pattern[str]
    narrated: re.Pattern[str]
    talk: re.Pattern[str]
    speaker: re.Pattern[str]
    negative: re.Pattern[str]


NEVER = re.compile("(?!)")


def pattern(*alternatives: str) -> re.Pattern[str]:
    """Return one pattern of several alternatives, for text whose white space is single spaces."""
    return re.compile("|".join(f"(?:{part})" for part in alternatives))
