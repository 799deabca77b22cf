"""The log: one line an event, as text or as JSON, with the ids of what was being worked on.

No content and no key stands in it, and whatever looks like a key, a mail address or a number of a
person is masked besides. An exception is told by its kinds and places, not in its words: those may
quote people. What libraries say is cut to its first line, and only from warnings on.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Literal, TextIO

from gateway.redaction import redact_line
from gateway.trail import trail

Form = Literal["text", "json"]
Level = Literal["debug", "info", "warning", "error"]

OURS = "foldgate"
FIELDS = ("backend", "policy", "view", "state", "fault", "tokens_in", "tokens_out", "ms")
"""What a line may say in fields of its own (`extra=`), beside its words."""

_LINE_CHARS = 300
_CAUSES = 8
# These say in warnings what they were sent.
_TALKATIVE = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "openai", "httpx", "httpcore")


def configure_logs(form: Form, level: Level, stream: TextIO | None = None) -> None:
    """Send the program's log to `stream` (standard error) in this form, from this level on.

    Libraries are heard from warnings on; Python's own warnings come the same way.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger(OURS).setLevel(level.upper())
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    logging.captureWarnings(True)


def describe_exception(error: BaseException) -> str:
    """Kinds and places of an exception and of what caused it, without anybody's words."""
    chain: list[str] = []
    at: BaseException | None = error
    while at is not None and len(chain) < _CAUSES:
        frames = "".join(traceback.format_tb(at.__traceback__))
        chain.append(f"{type(at).__module__}.{type(at).__qualname__}\n{frames}")
        at = at.__cause__ or at.__context__
    return "caused by ".join(chain)


class TextLines(logging.Formatter):
    """`TIME LEVEL NAME: what happened [request=… conversation=…]`."""

    def format(self, record: logging.LogRecord) -> str:
        told = {**_fields_of(record), **_ids()}
        tail = " ".join(f"{name}={value}" for name, value in told.items())
        line = f"{_time_of(record)} {record.levelname} {record.name}: {_words_of(record)}"
        if tail:
            line += f" [{tail}]"
        if (error := _error_of(record)) is not None:
            line += f"\n{error}"
        return line


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, the ids, and fields of its own."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, object] = {
            "time": _time_of(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _words_of(record),
            **_ids(),
            **_fields_of(record),
        }
        if (error := _error_of(record)) is not None:
            told["error"] = error
        return json.dumps(told)


def _ids() -> dict[str, str]:
    here = trail()
    return {} if here is None else here.ids()


def _fields_of(record: logging.LogRecord) -> dict[str, object]:
    found = record.__dict__
    return {name: found[name] for name in FIELDS if found.get(name) is not None}


def _words_of(record: logging.LogRecord) -> str:
    """Our own words whole; of a library's the first line."""
    words = record.getMessage()
    if record.name.partition(".")[0] != OURS:
        words = words.strip().partition("\n")[0][:_LINE_CHARS]
    return redact_line(words)


def _time_of(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, tz=UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _error_of(record: logging.LogRecord) -> str | None:
    error = record.exc_info[1] if record.exc_info else None
    return None if error is None else describe_exception(error).rstrip()
