"""The one rendering of a span for reading: plain lines with their speakers.

Summarizer input, stand-ins and the judge's source all come from here, so that no structure of
a chat (a call without its result, an empty turn, an image) can be invalid there.
"""

from collections.abc import Iterator, Mapping, Sequence

from policies.chapters import split_text
from policies.messages import Message, message_text, tool_calls, whole_letters
from policies.reply_parts import ReplyPart, reply_parts
from policies.schema.policy import ReplyFields
from policies.values import Line

_ARGUMENTS = 300
_RESULT_HEAD, _RESULT_TAIL = 700, 300
"""Characters of a tool's arguments and result that a summarizer is shown: enough to tell what
was asked and found; the whole stays in the transcript."""

_RESULTS = ("tool", "function")
_QUOTES = "\"'\u201c\u201e\u00ab\u300c\u300e\u2018*"


NARRATOR, THINKS = "narrator", "thinks"
"""Under these names `names` has the words for a narrator and for `who thinks this unspoken`."""


def render_span(
    messages: Sequence[Message], names: Mapping[str, str], fields: ReplyFields | None = None
) -> list[Line]:
    """Render consecutive messages, oldest first: a line for each that says anything, of a reply
    that is JSON in these ``fields`` one for each part.

    ``names`` gives the speaker for a role ("user", "assistant", ...); a message's own ``name``
    goes before it, and a role without either speaks under the role itself. Tool calls become
    ``[calls f(arguments)]``, results ``[result of f: ...]``, both shortened; images and other
    parts leave their placeholder; reasoning and empty messages leave nothing.
    """
    functions: dict[str, str] = {}
    lines: list[Line] = []
    for at, message in enumerate(messages):
        role = str(message.get("role") or "user")
        text = message_text(message)
        if role in _RESULTS:
            text = _result(message, text, functions)
        calls = tool_calls(message)
        functions.update((key, called) for key, called, _ in calls if key)
        marks = [f"[calls {called}({_shorten(raw, _ARGUMENTS, 0)})]" for _, called, raw in calls]
        speaker = whole_letters(_speaker(message, role, names))
        parts = reply_parts(text, fields or ReplyFields()) if role == "assistant" else []
        if parts:
            lines.extend(_render_parts(parts, speaker, names, at))
            text = ""
        said = "\n".join(part for part in (text, *marks) if part.strip())
        if said:
            lines.append(Line(speaker, whole_letters(said), role=role, at=at))
    return lines


def _render_parts(
    parts: Sequence[ReplyPart], speaker: str, names: Mapping[str, str], at: int
) -> Iterator[Line]:
    for part in parts:
        who, text = whole_letters(part.speaker) or speaker, whole_letters(part.text)
        aside = ""
        if part.kind == "told":
            who = names.get(NARRATOR, NARRATOR)
        elif part.kind == "thought":
            aside = names.get(THINKS, THINKS)
        elif text[0] not in _QUOTES:
            text = f'"{text}"'
        yield Line(who, text, part.kind, aside, "assistant", at)


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
