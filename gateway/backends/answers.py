"""What counts as an answer: one discipline for every backend, streamed or whole.

1. An answer ends with a true finish_reason (faults.read_finish) in each choice that it began.
2. Nothing is taken after a choice's end or after [DONE]; each choice ends once.
3. Null in place of a list or an object counts as empty; anything else of the wrong shape, and a
   data line that is not JSON, makes the answer malformed: it may have been text.
4. An answer without text, tool call, reasoning, refusal or media is a fault, unless a content
   filter took it. Leading chunks without substance are held until this is known.
5. What came before a fault is given before it.
"""

from typing import Any

from gateway.backends.base import Chunk, Completion
from gateway.backends.classification import classify_payload
from gateway.backends.events import DATA, ERROR, EventParser, EventTooLarge
from gateway.backends.faults import FaultKind, UpstreamFault, read_finish
from gateway.backends.redaction import redact
from gateway.wire.json_text import dump_bytes, loads
from gateway.wire.letters import is_blank
from policies.schema import Timeouts

_MEDIA = ("tool_calls", "function_call", "audio", "images", "image", "video")
_TEXTS = ("content", "reasoning_content", "reasoning", "refusal")


class Course:
    """The course of one streamed answer, over decoded chunks.

    `take` and `close` return the chunks that may be given now. Where the answer ends in a fault it
    stands in `fault`, after those chunks; nothing is taken from then on. secrets: texts that must
    not stand in a fault's words.
    """

    __slots__ = (
        "_backend",
        "_begun",
        "_ended",
        "_flows",
        "_given",
        "_held",
        "_secrets",
        "_seen",
        "fault",
    )

    def __init__(self, backend: str, secrets: tuple[str, ...] = ()) -> None:
        self._backend = backend
        self._secrets = secrets
        self._held: list[Chunk] = []
        self._begun: set[int] = set()
        self._ended: set[int] = set()
        self._given = False
        self._flows = False
        self._seen = False
        self.fault: UpstreamFault | None = None

    @property
    def _in_first(self) -> bool:
        """Whether the first choice has begun and none has ended."""
        return not self._ended and 0 in self._begun

    @property
    def started(self) -> bool:
        """Whether a chunk came."""
        return self._seen

    @property
    def ended(self) -> bool:
        """Whether every choice that began has ended."""
        return bool(self._ended) and self._begun <= self._ended

    @property
    def flows(self) -> bool:
        """Whether a plain piece of text may be given as it is, without a look at what was."""
        return self._flows

    def take(self, parsed: Any, data: bytes | None = None) -> list[Chunk]:
        """Take one decoded chunk; `data` is its JSON, None to have it encoded."""
        if self._flows and data is not None and _is_plain(parsed):
            return [Chunk(data, parsed)]
        chunks = self._take(parsed, data)
        self._flows = self._given and self._in_first and self.fault is None
        return chunks

    def _take(self, parsed: Any, data: bytes | None) -> list[Chunk]:
        if self.fault is not None:
            return []
        if isinstance(parsed, dict) and "prompt_progress" in parsed:
            return []  # llama.cpp reads the prompt; nothing of the answer is here yet
        self._seen = True
        if not isinstance(parsed, dict):
            return self.fail(self._malformed("a chunk that is no object"))
        if parsed.get("error") and not self.ended:
            return self.fail(classify_payload(self._backend, parsed, secrets=self._secrets))
        choices = parsed.get("choices")
        if not choices:
            return self._take_without_choices(parsed, data)
        if not isinstance(choices, list) or not all(map(_has_chunk_shape, choices)):
            return self.fail(self._malformed("a chunk of a wrong shape"))
        return self._take_choices(parsed, data, choices)

    def _take_without_choices(self, parsed: dict[str, Any], data: bytes | None) -> list[Chunk]:
        """A chunk of usage passes; one that says nothing is left out."""
        if not parsed.get("usage") and not parsed.get("timings"):
            return []
        if parsed.get("choices") is None:
            parsed, data = {**parsed, "choices": []}, None
        return self._give(parsed, data, substantial=False)

    def _take_choices(
        self, parsed: dict[str, Any], data: bytes | None, choices: list[dict[str, Any]]
    ) -> list[Chunk]:
        kept: list[dict[str, Any]] = []
        substantial = changed = False
        untrue: Any = None
        for choice in choices:
            index = choice.get("index") or 0
            if index in self._ended:
                changed = True
                continue
            self._begun.add(index)
            native = choice.get("finish_reason")
            finish = read_finish(native) if native else None
            if native and finish is None:
                untrue = native
            elif finish is not None:
                self._ended.add(index)
                substantial = substantial or finish == "content_filter"
            delta = choice.get("delta")
            substantial = substantial or _has_substance(delta)
            if finish != native or delta is None:
                changed = True
                choice = {**choice, "delta": delta or {}, "finish_reason": finish}
            kept.append(choice)
        if changed:
            if not kept and not parsed.get("usage"):
                return []
            parsed, data = {**parsed, "choices": kept}, None
        if untrue is None:
            return self._give(parsed, data, substantial)
        chunks = self._give(parsed, data, substantial) if substantial else []
        self.fail(self._untrue(untrue))
        return chunks

    def _give(self, parsed: dict[str, Any], data: bytes | None, substantial: bool) -> list[Chunk]:
        chunk = Chunk(dump_bytes(parsed) if data is None else data, parsed)
        if self._given:
            return [chunk]
        self._held.append(chunk)
        if not substantial:
            return []
        self._given = True
        held, self._held = self._held, []
        return held

    def fail(self, fault: UpstreamFault) -> list[Chunk]:
        """End in a fault, marked partial where chunks were given."""
        if self.fault is None:
            self.fault = fault.after_part() if self._given else fault
        self._flows = False
        return []

    def fail_malformed(self, what: str) -> None:
        """End because of bytes that are no chunk; once all has ended they lose nothing."""
        if not self.ended:
            self.fail(self._malformed(what))

    def close(self) -> list[Chunk]:
        """The stream ended, by [DONE] or by EOF."""
        if self.fault is not None:
            return []
        if not self.ended:
            kind = FaultKind.INTERRUPTED if self._begun else FaultKind.EMPTY
            ending = "its answer without a finish_reason" if self._begun else "an empty answer"
            return self.fail(UpstreamFault(kind, f"The backend {self._backend} ended {ending}"))
        if not self._given:
            return self.fail(_empty(self._backend))
        return []

    def _malformed(self, what: str) -> UpstreamFault:
        return UpstreamFault(FaultKind.MALFORMED, f"The backend {self._backend} sent {what}")

    def _untrue(self, native: Any) -> UpstreamFault:
        word = redact(str(native), self._secrets)[:60]
        what = f"The backend {self._backend} ended its answer with '{word}'"
        return UpstreamFault(FaultKind.INTERRUPTED, what)


class AnswerReader:
    """The bytes of one event stream, read into a course.

    `feed` and `close` return the chunks that may be given now; then look at `fault`, then `done`.
    """

    __slots__ = ("_backend", "_parser", "_secrets", "_stray", "course", "done")

    def __init__(self, backend: str, secrets: tuple[str, ...] = ()) -> None:
        self._backend = backend
        self._secrets = secrets
        self._parser = EventParser()
        self._stray: list[bytes] = []
        self.course = Course(backend, secrets)
        self.done = False

    @property
    def fault(self) -> UpstreamFault | None:
        return self.course.fault

    def feed(self, data: bytes) -> list[Chunk]:
        """Take bytes as they came."""
        try:
            events = self._parser.feed(data)
        except EventTooLarge as error:
            self.course.fail_malformed(str(error))
            return []
        return self._take_events(events)

    def close(self) -> list[Chunk]:
        """Take the end of the bytes."""
        chunks = self._take_events(self._parser.close(), at_end=True)
        if not self.done:
            self._explain()
            chunks += self.course.close()
            self.done = True
        return chunks

    def break_off(self, fault: UpstreamFault) -> list[Chunk]:
        """Take the end of a connection that broke: a fault, unless the answer had ended."""
        chunks = self._take_events(self._parser.close(), at_end=True)
        if not self.done:
            self._explain()
            chunks += self.course.close() if self.course.ended else self.course.fail(fault)
            self.done = True
        return chunks

    def _take_events(self, events: list[tuple[str, bytes]], at_end: bool = False) -> list[Chunk]:
        chunks: list[Chunk] = []
        course = self.course
        for field, payload in events:
            if self.done or course.fault is not None:
                break
            if field == DATA:
                if course.flows and (parsed := _read_plain(payload)) is not None:
                    chunks.append(Chunk(payload, parsed))
                    continue
                self._take_data(payload, chunks, at_end)
            elif field == ERROR:
                self._take_error(payload)
            elif sum(map(len, self._stray)) < 65_536:
                self._stray.append(payload)
        return chunks

    def _take_data(self, payload: bytes, chunks: list[Chunk], at_end: bool) -> None:
        said = payload.strip()
        if said == b"[DONE]":
            self._explain()
            chunks += self.course.close()
            self.done = True
        elif said:
            try:
                parsed = loads(payload)
            except ValueError:
                self._take_broken(payload, chunks, at_end)
            else:
                chunks += self.course.take(parsed, payload)

    def _take_broken(self, payload: bytes, chunks: list[Chunk], at_end: bool) -> None:
        """Lines joined by the format that are events of their own; a line cut off by the end of the
        bytes is an interruption; any other line that is not JSON may have been text."""
        lines = payload.split(b"\n")
        if len(lines) > 1:
            for line in lines:
                self._take_data(line, chunks, at_end)
        elif not at_end:
            self.course.fail_malformed("a data line that is not JSON")

    def _take_error(self, payload: bytes) -> None:
        try:
            parsed = loads(payload)
        except ValueError:
            parsed = payload.decode(errors="replace")
        if not self.course.ended:
            self.course.fail(classify_payload(self._backend, parsed, secrets=self._secrets))

    def _explain(self) -> None:
        """Text outside the format explains an answer that has no end of its own."""
        text = b"\n".join(self._stray).strip()
        if not text or self.course.ended or self.fault is not None:
            return
        try:
            parsed = loads(text)
        except ValueError:
            parsed = None
        if isinstance(parsed, list) and parsed:
            parsed = parsed[0]
        if isinstance(parsed, dict) and parsed.get("error"):
            self.course.fail(classify_payload(self._backend, parsed, secrets=self._secrets))
        elif not self.course.started:
            what = "a web page" if text[:1] == b"<" else "text"
            self.course.fail_malformed(f"{what} in place of a stream")


END_SECONDS = 5.0
"""How long the usage and [DONE] of an answer that has ended are waited for."""


def choose_wait(timeouts: Timeouts, reader: AnswerReader) -> float:
    """Seconds within which the next bytes of a stream, pings included, must come."""
    if reader.course.ended:
        return min(END_SECONDS, timeouts.idle)
    return timeouts.idle if reader.course.started else timeouts.first_token


def read_completion(backend: str, data: bytes, secrets: tuple[str, ...] = ()) -> Completion:
    """As check_completion, of the body of a response with status 200."""
    try:
        parsed = loads(data)
    except ValueError:
        parsed = None
    return check_completion(backend, data, parsed, secrets)


def check_completion(
    backend: str, data: bytes, parsed: Any, secrets: tuple[str, ...] = ()
) -> Completion:
    """A whole answer that holds by the rules above, its native finish reasons translated.

    Raises UpstreamFault; where the answer has no true end, `received` holds what came.
    """

    def fault(kind: FaultKind, what: str) -> UpstreamFault:
        return UpstreamFault(kind, f"The backend {backend} {what}")

    if not isinstance(parsed, dict):
        raise fault(FaultKind.MALFORMED, "sent no answer but " + _describe_body(data))
    if parsed.get("error"):
        raise classify_payload(backend, parsed, secrets=secrets)
    choices = parsed.get("choices")
    if choices is not None and (
        not isinstance(choices, list) or not all(map(_has_message_shape, choices))
    ):
        raise fault(FaultKind.MALFORMED, "sent an answer of a wrong shape")
    if not choices:
        raise _empty(backend)
    natives = [choice.get("finish_reason") for choice in choices]
    finishes = [read_finish(native) for native in natives]
    substantial = any(_has_substance(choice.get("message")) for choice in choices)
    if None in finishes:
        native = natives[finishes.index(None)]
        word = redact(str(native), secrets)[:60]
        failed = fault(FaultKind.INTERRUPTED, f"ended its answer with '{word}'")
        failed.partial, failed.received = substantial, parsed
        raise failed
    if not substantial and "content_filter" not in finishes:
        raise _empty(backend)
    if finishes != natives or any(choice.get("message") is None for choice in choices):
        parsed = {
            **parsed,
            "choices": [
                {**choice, "message": choice.get("message") or _NOTHING, "finish_reason": finish}
                for choice, finish in zip(choices, finishes, strict=True)
            ],
        }
        data = dump_bytes(parsed)
    return Completion(data, parsed)


_NOTHING = {"role": "assistant", "content": ""}


def _describe_body(data: bytes) -> str:
    return "a web page" if data.lstrip()[:1] == b"<" else "something else"


def _empty(backend: str) -> UpstreamFault:
    return UpstreamFault(
        FaultKind.EMPTY, f"The backend {backend} reported success with nothing in the answer"
    )


def _read_plain(payload: bytes) -> Any:
    """The chunk, where it is plain and its JSON is what it should be; None: look closer."""
    if payload[:1] != b"{":
        return None
    try:
        parsed = loads(payload)
    except ValueError:
        return None
    return parsed if _is_plain(parsed) else None


def _is_plain(parsed: Any) -> bool:
    """Whether a chunk is a piece of the first choice's text and nothing else, as nearly all are:
    whatever is asked of chunks holds for it, and needs no second look."""
    try:
        (choice,) = parsed["choices"]
        delta = choice["delta"]
        return (
            choice["finish_reason"] is None
            and choice["index"] == 0
            and len(delta) == 1
            and type(delta["content"]) is str
            and not parsed.get("error")
            and "prompt_progress" not in parsed
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return False


def _has_chunk_shape(choice: Any) -> bool:
    return _has_choice_shape(choice, "delta")


def _has_message_shape(choice: Any) -> bool:
    return _has_choice_shape(choice, "message")


def _has_choice_shape(choice: Any, part: str) -> bool:
    if not isinstance(choice, dict):
        return False
    index = choice.get("index")
    return (index is None or (type(index) is int and index >= 0)) and _has_shape(choice.get(part))


_SHAPES: dict[str, tuple[type, ...]] = {
    "content": (str, list),
    "reasoning_content": (str, list),
    "reasoning": (str, list, dict),
    "refusal": (str, list),
    "tool_calls": (list,),
    "function_call": (dict,),
    "audio": (dict,),
}


def _has_shape(delta: Any) -> bool:
    """Whether a delta or message can be read by wire.choices."""
    if delta is None:
        return True
    if not isinstance(delta, dict):
        return False
    for key, value in delta.items():
        if value is not None and key in _SHAPES and not isinstance(value, _SHAPES[key]):
            return False
    parts = delta.get("content")
    if isinstance(parts, list) and not all(isinstance(part, dict) for part in parts):
        return False
    function = delta.get("function_call")
    return all(map(_has_call_shape, delta.get("tool_calls") or ())) and (
        not function or _has_texts(function, "name", "arguments")
    )


def _has_call_shape(call: Any) -> bool:
    """Arguments that came as an object, not as its text, can be read."""
    if not isinstance(call, dict) or not isinstance(call.get("function") or {}, dict):
        return False
    return _has_texts(call, "id", "type") and _has_texts(call.get("function") or {}, "name")


def _has_texts(value: dict[str, Any], *names: str) -> bool:
    return all(isinstance(value.get(name) or "", str) for name in names)


def _has_substance(delta: dict[str, Any] | None) -> bool:
    """Whether a delta or message holds anything that a person or a program could use."""
    if not delta:
        return False
    for key in _TEXTS:
        value = delta.get(key)
        if value and (not isinstance(value, str) or not is_blank(value)):
            return True
    return any(delta.get(key) for key in _MEDIA)
