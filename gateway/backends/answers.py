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

from gateway.backends.answer_shapes import (
    has_chunk_shape,
    has_substance,
    is_plain,
    plain_text,
    read_object,
    read_together,
)
from gateway.backends.base import Chunk
from gateway.backends.classification import classify_payload
from gateway.backends.events import DATA, ERROR, EventParser, EventTooLarge
from gateway.backends.faults import FaultKind, UpstreamFault, read_finish
from gateway.backends.plain_runs import PlainForm, learn_form
from gateway.redaction import redact
from gateway.wire.json_text import dump_bytes, loads
from policies.schema import Timeouts

_MANY = 4
"""Events that come together are read together from this number on."""

_LOOKS = 6
"""So many events of an answer are looked at by themselves, for the form of all that follow."""

_LESSONS = 6
"""So many forms in a row may turn out to fit nothing: then each chunk has its own."""


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
        if self._flows and data is not None and is_plain(parsed):
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
        if not isinstance(choices, list) or not all(map(has_chunk_shape, choices)):
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
            substantial = substantial or has_substance(delta)
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
        self.fail(untrue_end(self._backend, untrue, self._secrets))
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
            return self.fail(empty_answer(self._backend))
        return []

    def _malformed(self, what: str) -> UpstreamFault:
        return UpstreamFault(FaultKind.MALFORMED, f"The backend {self._backend} sent {what}")


class AnswerReader:
    """The bytes of one event stream, read into a course.

    `feed` and `close` return the chunks that may be given now; then look at `fault`, then `done`.
    joins: the answer is wanted whole, so texts that came together may be given as one chunk, which
    has no JSON then.
    """

    __slots__ = (
        "_backend",
        "_form",
        "_joins",
        "_lessons",
        "_looks",
        "_parser",
        "_secrets",
        "_stray",
        "course",
        "done",
    )

    def __init__(self, backend: str, secrets: tuple[str, ...] = (), *, joins: bool = False) -> None:
        self._backend = backend
        self._secrets = secrets
        self._joins = joins
        self._parser = EventParser()
        self._stray: list[bytes] = []
        self._form: PlainForm | None = None
        self._looks = _LOOKS
        self._lessons = _LESSONS
        self.course = Course(backend, secrets)
        self.done = False

    @property
    def fault(self) -> UpstreamFault | None:
        return self.course.fault

    def feed(self, data: bytes) -> list[Chunk]:
        """Take bytes as they came."""
        chunks: list[Chunk] = []
        while data and self._looks and self._form is None:
            self._looks -= 1
            head, end, data = data.partition(b"\n\n")
            chunks += self._feed(head + end)
        if data and self._form is not None:
            data = self._take_run(self._form, data, chunks)
        return chunks + self._feed(data) if data else chunks

    def _take_run(self, form: PlainForm, data: bytes, chunks: list[Chunk]) -> bytes:
        """Take the plain chunks that bytes begin with; what is behind them."""
        if not self.course.flows or not self._parser.is_between:
            return data
        run, rest = form.read(data)
        if run is not None:
            self._lessons = _LESSONS
            if self._joins:
                chunks.append(Chunk(b"", None, "".join(run.texts)))
            else:
                chunks += [
                    Chunk(form.payload(string), None, text)
                    for text, string in zip(*run, strict=True)
                ]
        return rest

    def _learn(self, payload: bytes) -> None:
        """Learn the form of a chunk that is mere text, unless it is known."""
        if self._lessons and (self._form is None or not self._form.fits(payload)):
            self._lessons -= 1
            self._form = learn_form(payload)

    def _feed(self, data: bytes) -> list[Chunk]:
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
        together = read_together(events) if len(events) >= _MANY else [None] * len(events)
        flows = course.flows and not self.done
        for (field, payload), parsed in zip(events, together, strict=True):
            if flows and field is DATA:
                plain = read_object(payload) if parsed is None else parsed
                text = plain_text(plain)
                if text is not None or is_plain(plain):
                    chunks.append(Chunk(payload, plain, text))
                    if text is not None:
                        self._learn(payload)
                    continue
            if self.done or course.fault is not None:
                break
            if field == DATA:
                self._take_data(payload, chunks, at_end)
            elif field == ERROR:
                self._take_error(payload)
            elif sum(map(len, self._stray)) < 65_536:
                self._stray.append(payload)
            flows = course.flows and not self.done
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


def untrue_end(backend: str, native: Any, secrets: tuple[str, ...]) -> UpstreamFault:
    """The fault of an answer whose finish_reason is none."""
    word = redact(str(native), secrets)[:60]
    what = f"The backend {backend} ended its answer with '{word}'"
    return UpstreamFault(FaultKind.INTERRUPTED, what)


def empty_answer(backend: str) -> UpstreamFault:
    """The fault of an answer that says nothing."""
    return UpstreamFault(
        FaultKind.EMPTY, f"The backend {backend} reported success with nothing in the answer"
    )
