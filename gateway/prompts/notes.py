"""What was recalled beside a message, as a model is shown it.

    <notes>
    header
    <note 12, 2026-03-04, Mara>
    her words as they were said
    </note>
    </notes>

    the message itself

Notes stand in front of the message's own words, which come last and are what is answered. The text
of a note is told apart by its frame alone, so nothing in it can close a frame or open one.
Rendered once and stored: later wordings change no prompt that was shown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gateway.prompts.frames import unframe
from policies.language import language_of
from policies.messages import whole_letters

_HEADERS = {
    "en": "From the past, with number, date and speaker: a record, no part of the message below.",
    "ja": "過去の発言の記録（番号・日付・発言者）。下のメッセージの一部ではありません。",
    "zh": "过往发言的记录（编号、日期、说话人），不属于下面这条消息。",
    "ko": "지난 발언의 기록(번호, 날짜, 말한 사람)이며 아래 메시지의 일부가 아닙니다.",
    "ru": "Из прошлого, с номером, датой и говорящим: запись, а не часть сообщения ниже.",
    "es": "Del pasado, con número, fecha y hablante: un registro, no parte del mensaje de abajo.",
}
_BEGIN, _END = "<notes>\n", "\n</notes>"
_FRAME = "<notes>\n{header}\n{lines}</notes>"
_LINE = "<note {label}>\n{text}\n</note>\n"
_LABEL = re.compile(r"[<>＜＞,\s\x00-\x1f]+")
_LABEL_CHARS = 40
BETWEEN = "\n\n"
"""Stands between the notes and the words of their message."""

FRAME_CHARS = max(map(len, _HEADERS.values())) + len("<notes>\n\n</notes>") + len(BETWEEN)
"""What the notes of one message cost beside their lines, at most."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line to be shown. mark: the number of its message on the path, or the name of the source
    that told it; date as YYYY-MM-DD; who said it. Only mark and text are always known."""

    text: str
    mark: str
    date: str = ""
    who: str = ""


def render_notes(lines: Sequence[Line], question: str) -> str:
    """The notes of one message, without the message. question: the message's own words, whose
    language the header takes, or else that of the lines."""
    language = language_of(question) or language_of("\n".join(line.text for line in lines))
    told = "".join(_render_line(line) for line in lines)
    return _FRAME.format(header=_HEADERS[language or "en"], lines=told)


def _render_line(line: Line) -> str:
    label = ", ".join(filter(None, map(_label, (line.mark, line.date, line.who))))
    return _LINE.format(label=label, text=framed(line.text))


def line_chars(line: Line) -> int:
    """What a line costs with its frame, in characters."""
    return len(_render_line(line))


def _label(text: str) -> str:
    return _LABEL.sub(" ", whole_letters(text)).strip()[:_LABEL_CHARS]


def framed(text: str) -> str:
    """A text that cannot close the frame of the notes."""
    return unframe(whole_letters(text).strip())


def put_notes(message: dict[str, Any], notes: str) -> dict[str, Any]:
    """The message with its notes in front of its own words, whichever form its content has."""
    content = message.get("content")
    if isinstance(content, list):
        return {**message, "content": [{"type": "text", "text": notes}, *content]}
    own = content if isinstance(content, str) else ""
    return {**message, "content": f"{notes}{BETWEEN}{own}" if own else notes}


def own_words(content: str) -> str:
    """What a text says behind the notes that were put in front of it."""
    if not content.startswith(_BEGIN):
        return content
    return content.partition(_END)[2].removeprefix(BETWEEN)


def notes_chars(notes: str) -> int:
    """What notes add to a view, in characters."""
    return len(notes) + len(BETWEEN)
