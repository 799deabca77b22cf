"""Attribution: is what a sentence tells of one speaker found only in another speaker's lines?

A true thing tied to the wrong person is the commonest fault of small summarizers, and no word
overlap shows it. Each clause whose subject is a named speaker is held against what that speaker
said; see grammars/ for what a subject is, and for the verbs that answer another's news (a person
who admires a boat has not sailed it).

Measured on LoCoMo's three development conversations, rejected of the texts as annotated and of
the same with the two names exchanged: 0 and 67 of 81 session summaries, 0 and 359 of 763 facts
of one sentence, 0 and 69 of 71 rows of four summaries against the four sessions together, 1 and
107 of 184 events, which the rule was never tuned on; with one of two names in one sentence
exchanged, 65 of 169 summaries.
"""

from collections import Counter
from dataclasses import dataclass, field

from policies.judge.grammars import GRAMMARS
from policies.judge.heard import Heard
from policies.judge.language import guess_language
from policies.judge.ownership import Ownership, find_ownership
from policies.judge.reading import fold, unquote
from policies.judge.subjects import Clause, Names, read_clauses

_NO_PERSONS = frozenset(
    "user assistant system tool function narrator gm dm ai bot game master"
    " usuario usuaria asistente narrador narradora master máster director sistema"
    " пользователь ассистент помощник рассказчик ведущий автор система"
    " 用户 用戶 助手 助理 旁白 主持人 叙述者 系统 ユーザー 利用者 アシスタント 語り手"
    " ナレーター ナレーション 進行役"
    " 사용자 어시스턴트 해설 내레이터 진행자".split()
) | {"", "game master"}
"""Those who ask, serve or narrate: their words are about others."""
_KNOWN_TURNS = 3
_UNKNOWN = 1
"""Of a speaker with fewer lines little is known: so many foreign matters more are asked for."""
_PER_OWN = 2
"""How many foreign matters outweigh one of the person's own."""


@dataclass(slots=True)
class _Balance:
    """Matters of all clauses about one person each: the person's own, and another's alone."""

    own: set[str] = field(default_factory=set)
    foreign: set[str] = field(default_factory=set)


def is_misattributed(prose: str, heard: Heard) -> bool:
    """Say whether a telling ties to a speaker what only another speaker's lines hold.

    One clause is enough, or the balance of all. Fewer than two named speakers, or a language
    without a grammar: no.
    """
    turns = Counter(fold(speaker).strip() for speaker, _ in heard.lines)
    persons = tuple(name for name in turns if name not in _NO_PERSONS)
    told = fold(unquote(prose))
    grammar = GRAMMARS.get(guess_language(told, heard.folded) or "")
    if len(persons) < 2 or grammar is None:
        return False
    names = Names(persons, grammar)
    owned = find_ownership(heard.lines, names)
    spare = 0 if min(turns[name] for name in persons) >= _KNOWN_TURNS else _UNKNOWN
    balance = _Balance()
    if any(
        _is_foreign(clause, names, owned, spare, balance) for clause in read_clauses(told, names)
    ):
        return True
    least = grammar.least[2] + spare
    return len(balance.foreign) >= least + _PER_OWN * len(balance.own)


def _is_foreign(
    clause: Clause, names: Names, owned: Ownership, spare: int, balance: _Balance
) -> bool:
    """Whether one clause alone is another's; what it holds is added to the balance."""
    matters = _find_claim(clause, names)
    single = len(clause.people) == 1
    least = names.grammar.least[0 if single else 1] + spare
    for person in clause.people:
        own, foreign = matters & owned.alone[person], owned.find_foreign(person, matters)
        if max(map(len, foreign)) >= least + _PER_OWN * len(own):
            return True
        if single:
            balance.own |= own
            balance.foreign.update(*foreign)
    return False


def _find_claim(clause: Clause, names: Names) -> set[str]:
    """The matters of a clause, none where it is about another's news or names another.

    Of what two discuss only what is called theirs is claimed.
    """
    grammar = names.grammar
    rest = names.fill(grammar.told_them).sub("", clause.rest)
    others = (form for name, form in names.forms.items() if name not in clause.people)
    if any(form.search(rest) for form in others):
        return set()
    if len(clause.people) == 1:
        return set() if grammar.answers.search(rest) else grammar.matters(rest)
    if grammar.together.search(rest):
        theirs = grammar.theirs.search(rest)
        return grammar.matters(rest[theirs.end() :]) if theirs else set()
    return grammar.matters(rest)
