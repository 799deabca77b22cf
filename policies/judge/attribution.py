"""Attribution: is what a sentence tells of one speaker found only in another speaker's lines?

For English alone: it needs to know which verbs answer another's news (a person who admires a boat
has not sailed it). Measured on LoCoMo's hand-annotated conversations, with its 763 annotated
facts: 3 of them were called misattributed, and 332 of the same with the two names exchanged; of
its 81 session summaries 2. Other languages are left to the other rules.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from policies.judge.heard import Heard
from policies.judge.language import is_english
from policies.judge.reading import fold, sentences, unquote
from policies.judge.terms import terms

_ROLES = frozenset({"user", "assistant", "system", "tool", "narrator", "gm", "ai", "bot", ""})
_FOREIGN = {1: 2, 2: 3}
"""How many words heard from another alone it takes: for a sentence about one person, about two."""
_LEAST_TURNS = 4
"""Lines from which a speaker's words are known well enough to miss one among them."""
_PER_OWN = 3
"""How many foreign words outweigh one of the person's own."""
_LEAD = (
    r"(?:(?:is|was|are|were|been|being|also|very|really|deeply|always|both|then|later|recently"
    r"|that|he|she|they|to|feels?|felt|have|has|had|'s|'ve|'re|\w+ly),? )*"
)
_TOLD_TO = re.compile(
    r"\b(?:is|was|are|were|has|had|have|needs?) to\b|\b(?:must|should|ought|may)\b"
)
"""What somebody is to do stands in the words of whoever said so."""
_TOLD_THEM = re.compile(r"^(?:told|tells|informed|informs) (?:\w+ )?(?:that|about|of)\b")
"""What somebody tells another is the teller's own: the listener is no part of it."""
_ANSWERS = re.compile(
    _LEAD + r"(?:impress|admir|prais|compl[ei]men|congratul|encourag|support|proud|thank|appreciat"
    r"|ask|inquir|wonder|agree|acknowledg|offer|reassur|comfort|sympath|hear|see|look|interest"
    r"|happy|glad|respon|replie|underst|remind|wish|hope|suggest|advis|belie|excit|relat|empath"
    r"|note|recogni|learn|curious|reflect|find|found|enthus|amaz|think|thought|check|react"
    r"|comment|value|inspired by|affirm|assur)"
)
_TOGETHER = re.compile(
    _LEAD + r"(?:discuss|talk|chat|convers|catch|caught|spoke|speak|shar|reconnect|each|me[et]t?\b"
    r"|plan|bond|exchang|reflect|express|agree|at |on |in |told|touch|enjoy|lov|appreciat|find"
    r"|found|support|encourag|value|reminisc|look|consider|bring|brainstorm|explor|get|convey"
    r"|emphas|highlight|acknowledg|connect)"
)
_MANNERS = frozenset(
    stem[:5]
    for stem in (
        "excited expresses feels feeling happy glad proud grateful great amazing awesome shares"
        " photo picture shows mentions loves looks enjoys experience important believes support"
        " inspired talks passion love people things time highlights discuss working work forward"
        " always encourages praised compliments sharing showed shared looking loved"
    ).split()
)


@dataclass(frozen=True, slots=True)
class _Clause:
    """What is told (rest) of one or two speakers (people)."""

    people: tuple[str, ...]
    rest: str


def is_misattributed(prose: str, heard: Heard) -> bool:
    """Say whether an English clause ties to a speaker what only another speaker's lines hold.

    Fewer than two named speakers whose words are known, or another language: no.
    """
    turns = Counter(fold(speaker).strip() for speaker, _ in heard.lines)
    names = {name for name, count in turns.items() if count >= _LEAST_TURNS} - _ROLES
    if len(names) < 2 or not is_english(prose):
        return False
    alone = _words_of_their_own(heard.lines, names)
    return any(_is_foreign(clause, alone) for clause in _clauses(fold(unquote(prose)), names))


def _words_of_their_own(lines: Sequence[tuple[str, str]], names: set[str]) -> dict[str, set[str]]:
    """Return for each speaker the words that nobody else said.

    A question, a sentence with `you` or a name in it, a stage direction and a narrator's words
    may tell of others: they are nobody's own.
    """
    said: dict[str, set[str]] = {name: set() for name in names}
    shared = set().union(*map(terms, names))
    of_others = re.compile(rf"\byou\b|\byour|[*?]|\b(?:{'|'.join(map(re.escape, names))})\b")
    for speaker, text in lines:
        name = fold(speaker).strip()
        for sentence in sentences(fold(text)):
            own = name in names and not of_others.search(sentence)
            (said[name] if own else shared).update(terms(sentence))
    return {
        name: own.difference(shared, *(other for by, other in said.items() if by != name))
        for name, own in said.items()
    }


def _clauses(told: str, names: set[str]) -> Iterator[_Clause]:
    any_name = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    joint = re.compile(rf"(?:,? (?:while|whereas|but)|, and) (?=(?:{any_name})\b)|; ")
    start = re.compile(
        rf"\W*(?:\w+ly,? |however,? |in fact,? )?"
        rf"(?:(they)\b|({any_name})(?:'s)?\b(?:,? (?:and|&) ({any_name})\b)?)"
    )
    pair: tuple[str, ...] = ()
    for sentence in sentences(told):
        for clause in joint.split(sentence):
            begun = start.match(clause)
            if begun is None:
                continue
            they, first, second = begun.groups()
            people = pair if they else (first, second) if second else (first,)
            pair = people if len(people) == 2 else ()
            if people:
                yield _Clause(people, clause[begun.end() :].strip(" ,'"))


def _is_foreign(clause: _Clause, alone: dict[str, set[str]]) -> bool:
    others = [name for name in alone if name not in clause.people]
    rest = _TOLD_THEM.sub("", clause.rest)
    if any(re.search(rf"\b{re.escape(name)}\b", rest) for name in others):
        return False
    verbs = _TOGETHER if len(clause.people) == 2 else _ANSWERS
    if verbs.match(rest) or _TOLD_TO.search(rest):
        return False
    told = terms(rest) - _MANNERS
    counts = {name: len(told & own) for name, own in alone.items()}
    return any(
        max(count for name, count in counts.items() if name != person)
        >= _FOREIGN[len(clause.people)] + _PER_OWN * counts[person]
        for person in clause.people
    )
