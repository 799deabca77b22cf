"""What the scripted backend tells beside its accounts: entries taken from the span it reads.

Most are honest: sentences of the span under their speakers. Some are what small models do: a
character's words as the user's fact, a quote that nobody said, a thread that nobody opened, an
entry without an end. Which, depends on the call's digest alone.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.backends.accounts import Task, mention, read_line

_SENTENCE = re.compile(r"[^.!?。！？…\n]+[.!?。！？…]*[\"'”’»」』）)*]*")
_LONGEST = 160
_EACH = 2
_MISBEHAVES = 4
"""One of so many frames holds entries that nothing bears out."""


@dataclass(frozen=True, slots=True)
class _Spoken:
    who: str
    text: str
    aside: bool

    @property
    def asks(self) -> bool:
        return self.text.rstrip("\"'”’»」』）)*").endswith(("?", "？"))


def write_lists(task: Task, digest: bytes) -> dict[str, list[Any]]:
    """The lists of a frame, by their keys."""
    spoken = list(_read(task.record))
    names = list(dict.fromkeys(said.who for said in spoken))
    user = next((name for name in names if _is_named(name, task.instruction)), "")
    other = next((name for name in names if name != user), "")
    told = [said for said in spoken if not said.asks and not said.aside and _is_telling(said, task)]
    own = [said for said in told if said.who == user]
    claimed = [said for said in told if said.who != user]
    thought = [said.text for said in spoken if said.aside]
    asked = [said.text for said in spoken if said.asks]
    lists: dict[str, list[Any]] = {
        "facts": [_fact(said, task) for said in _pick(own, _EACH)],
        "claims": [
            {"who": said.who, "to": user, "said": said.text, "truth": "".join(thought[:1])}
            for said in _pick(claimed, _EACH)
        ],
        "opened": asked[-1:],
        "resolved": [f"T{number}" for number, text in task.threads if _is_met(text, task)],
        "quotes": [{"who": said.who, "text": said.text} for said in _pick(told[::-1], 1)],
    }
    if digest[7] % _MISBEHAVES == 0:
        _misbehave(lists, claimed, user, other, task)
    return lists


def _misbehave(
    lists: dict[str, list[Any]], claimed: Sequence[_Spoken], user: str, other: str, task: Task
) -> None:
    lists["facts"] += [_fact(said, task) for said in claimed[:1]]
    lists["facts"] += [{"about": user, "text": f"{user} " * 200}]
    lists["quotes"] += [{"who": other, "text": said.text[::-1]} for said in claimed[:1]]
    lists["resolved"] += ["T987654"]
    lists["opened"] += [f"{user} 987,654?"]


def _read(record: str) -> Iterator[_Spoken]:
    who, aside = "", False
    for row in record.splitlines():
        speaker, text = read_line(row)
        if speaker:
            who, _, rest = speaker.partition(" (")
            aside = bool(rest)
        for sentence in _SENTENCE.findall(text):
            bare = sentence.strip()
            if who and 8 <= len(bare) <= _LONGEST:
                yield _Spoken(who, bare, aside)


def _is_named(name: str, instruction: str) -> bool:
    """Whether an instruction speaks of somebody: it names the user as the record does."""
    if name.isascii():
        return re.search(rf"\b{re.escape(name)}\b", instruction) is not None
    return name in instruction


def _is_telling(said: _Spoken, task: Task) -> bool:
    return len(mention(said.text, task.language)) > 1


def _fact(said: _Spoken, task: Task) -> dict[str, str]:
    return {"about": " ".join(mention(said.text, task.language)), "text": said.text}


def _pick(said: Sequence[_Spoken], most: int) -> list[_Spoken]:
    """So many of them, spread over the span, each once."""
    each = list({one.text: one for one in said}.values())
    step = max(1, -(-len(each) // most))
    return each[::step][:most]


def _is_met(thread: str, task: Task) -> bool:
    """Whether a span speaks of all that a thread is about."""
    words = mention(thread, task.language)
    return bool(words) and all(word in task.record for word in words)
