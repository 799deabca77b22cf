"""Thinking that a model's server left in the content, told from the reply."""

import re

from gateway.wire.letters import is_blank

_OPENING = re.compile(r"\s*<(think|thinking)>")

_CLOSING = re.compile(r"</(?:think|thinking)>")

_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)


def split_thinking(text: str) -> tuple[str, str]:
    """(thinking, text) of a content into which a model's thinking leaked.

    Leading `<think>…</think>` is thinking, also when it never ends; so is all that stands before a
    stray `</think>` (GLM's template opens the tag itself). A tag inside code is text, and a stray
    tag with nothing behind it is dropped: the reply is what stood before it.
    """
    if "think" not in text:
        return "", text
    opening = _OPENING.match(text)
    if opening is not None:
        closing = _CLOSING.search(text, opening.end())
        if closing is None:
            return text[opening.end() :].strip(), ""
        thinking, rest = text[opening.end() : closing.start()], text[closing.end() :]
        return thinking.strip(), rest.lstrip()
    for closing in _CLOSING.finditer(text):
        before, after = text[: closing.start()], text[closing.end() :]
        if _ends_in_code(before):
            continue
        if is_blank(after):
            return "", before.rstrip()
        return before.strip(), after.lstrip()
    return "", text


def _ends_in_code(before: str) -> bool:
    """Whether a text ends inside a fenced block or an inline code span."""
    if len(_FENCE.findall(before)) % 2:
        return True
    return before.rpartition("\n")[2].count("`") % 2 == 1
