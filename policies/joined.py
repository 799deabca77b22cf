"""One message that tells the whole chat with names: what of it is new.

Clients with a "single user message" mode join every message as "Ann: hi", line by line, and send
that with each turn.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_GAP = re.compile(r"\s*\n\s*")
_NAME = re.compile(r"[^\n:：]{1,60}[:：]\s?")


@dataclass(frozen=True, slots=True)
class Joined:
    """last: index of the newest stored message that is told again; new: what follows it, with its
    name; empty where that question is asked again."""

    last: int
    new: str


def split_joined(text: str, told: Sequence[tuple[str, str]]) -> Joined | None:
    """Tell what is new in a text that repeats the end of a path, (role, text) oldest first.

    None unless the text begins with a user's message of it and repeats, each with a name on a line
    of its own, every message after that to the newest one, a reply among them; or to a user's
    message with which it ends. So nothing that it leaves out is unknown to the path.
    """
    text = text.strip()
    for start in reversed(range(len(told))):
        role, said = told[start]
        if role != "user" or not said.strip() or not text.startswith(said.strip()):
            continue
        if (found := _follow(text, told, start)) is not None:
            return found
    return None


def _follow(text: str, told: Sequence[tuple[str, str]], start: int) -> Joined | None:
    at = len(told[start][1].strip())
    replies = 0
    for index in range(start + 1, len(told)):
        role, said = told[index]
        end = _pass(text, at, said.strip())
        if end is None:
            return None
        at = end
        replies += role == "assistant"
        if at == len(text):
            return Joined(index, "") if replies and role == "user" else None
    gap = _GAP.match(text, at)
    if not replies or gap is None or _NAME.match(text, gap.end()) is None:
        return None
    return Joined(len(told) - 1, text[gap.end() :])


def _pass(text: str, at: int, said: str) -> int | None:
    """Where a message ends that begins on a new line with a name, the client's or its own."""
    gap = _GAP.match(text, at)
    name = None if gap is None else _NAME.match(text, gap.end())
    if gap is None or name is None or not said:
        return None
    for begin in (gap.end(), name.end()):
        if text.startswith(said, begin):
            return begin + len(said)
    return None
