"""The one rendering of a span for reading: plain lines with their speakers.

Summarizer input, stand-ins and the judge's source all come from here, so that no structure of
a chat (a call without its result, an empty turn, an image) can be invalid there.
"""

from collections.abc import Mapping, Sequence

from policies.chapters import split_text
from policies.messages import Message, message_text, tool_calls, whole_letters
from policies.values import Line

_ARGUMENTS = 300
_RESULT_HEAD, _RESULT_TAIL = 700, 300
"""Characters of a tool's arguments and result that a summarizer is shown: enough to tell what
was asked and found; the whole stays in the transcript."""

_RESULTS = ("tool", "function")


def render_span(messages: Sequence[Message], names: Mapping[str, str]) -> list[Line]:
    """Render consecutive messages, oldest first, one line for each that says anything.

    ``names`` gives the speaker for a role ("user", "assistant", ...); a message's own ``name``
    goes before it, and a role without either speaks under the role itself. Tool calls become
    ``[calls f(arguments)]``, results ``[result of f: ...]``, both shortened; images and other
    parts leave their placeholder; reasoning and empty messages leave nothing.
    """
    functions: dict[str, str] = {}
    lines = []
    for message in messages:
        role = str(message.get("role") or "user")
        text = message_text(message)
        if role in _RESULTS:
            text = _result(message, text, functions)
        calls = tool_calls(message)
        functions.update((key, called) for key, called, _ in calls if key)
        marks = [f"[calls {called}({_shorten(raw, _ARGUMENTS, 0)})]" for _, called, raw in calls]
        said = "\n".join(part for part in (text, *marks) if part.strip())
        if said:
            speaker = _speaker(message, role, names)
            lines.append(Line(whole_letters(speaker), whole_letters(said)))
    return lines


def _speaker(message: Message, role: str, names: Mapping[str, str]) -> str:
    own = message.get("name")
    if role not in _RESULTS and isinstance(own, str) and own.strip():
        return " ".join(own.split())
    return names.get(role, role)


def _result(message: Message, text: str, functions: Mapping[str, str]) -> str:
    if not text.strip():
        return ""
    own = message.get("name")
    known = functions.get(str(message.get("tool_call_id") or ""))
    called = known or (own if isinstance(own, str) and own else "a tool")
    return f"[result of {called}: {_shorten(text, _RESULT_HEAD, _RESULT_TAIL)}]"


def _shorten(text: str, head: int, tail: int) -> str:
    """The beginning and the end of a long text, cut at clean places."""
    if len(text) <= head + tail:
        return text
    first = split_text(text[: 2 * head], head)[0].rstrip()
    last = split_text(text[-2 * tail :], tail)[-1].lstrip() if tail else ""
    return f"{first} … {last}".rstrip()
