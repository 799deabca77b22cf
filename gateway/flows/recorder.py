"""Asking summarizers for a text until one is fit to be remembered, or none is.

One round: each summarizer in its order, the first draw, a redraw where the answer was judged out,
then the next. Nothing is stored here and nothing is thrown: a round ends with a text or with the
failures of everybody who was asked.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from gateway.backends.base import Backend, Call
from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.flows.assignments import Assignment, Piece, Told
from gateway.meters import Meters
from gateway.prompts.summary import TOOL, Form, Prompt
from gateway.wire.replies import ReplyBuilder
from policies.budget import first_ratio
from policies.ledger.values import NOTHING, Entries, join_entries
from policies.messages import tool_calls, whole_letters
from policies.retries import Cause, draw_share
from policies.schema.policy import Summaries

if TYPE_CHECKING:
    from policies.judge import Verdict

log = logging.getLogger("foldgate.recorder")

MARGIN_TOKENS = 64
"""What a chat template adds to one message, and a little more."""

LEAST_CHARS = 300
"""A window that leaves less room than this for the quoted text is too small to record anything."""

LEAST_ASKED = 150
"""The shortest text asked for, in characters: a piece of a span still needs a few sentences."""

OVERFLOWS = 3
"""How often a span is cut smaller after the window turned out smaller than reckoned."""

_SHORTER = 0.75
"""The share of what was asked for that is asked after a text that was too long, at most."""

_LEAST_KNOWN = 0.4
_LEAST_UNKNOWN = 0.3
"""Shares of the estimated tokens of a prompt below which the backend cannot have read all of it:
of this conversation's own figures, and of a cautious guess (tokenizers differ by a factor of two on
one script). A prompt that was cut from the front is a small fraction."""

_IN_VAIN = frozenset({FaultKind.EMPTY, FaultKind.INTERRUPTED, FaultKind.MALFORMED})
"""Faults that are an answer, and no good one: another draw may do better."""

_FINAL = frozenset({FaultKind.REFUSED, FaultKind.BAD_REQUEST, FaultKind.OVERFLOW})
"""Faults that the same bytes will meet again, whenever they are sent."""

_SIMPLER: dict[Form, Form] = {
    "grammar": "object",
    "schema": "object",
    "object": "tool",
    "tool": "prose",
}
"""How else to demand the frame after a request was refused: other bytes, not the same again."""

_DEMANDS: dict[Form, str] = {
    "grammar": "response_format",
    "schema": "response_format",
    "object": "response_format",
    "tool": "tools",
}
"""The field of a request that demands the frame."""

_CALLED = ("tool_calls", "function_call")
"""How an answer ends that is a whole call of a tool."""

_SEEDED = frozenset({"llama_cpp", "scripted"})


@dataclass(frozen=True, slots=True)
class Draft:
    """An accepted text, who wrote it, how long the calls of its round took in all, and what is told
    beside it. moved: sentences that a gist had no room for."""

    text: str
    backend: str
    took_ms: int
    entries: Entries = NOTHING
    moved: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a summarizer gave nothing. kind is a machine word, said is for people."""

    backend: str
    kind: str
    said: str
    cause: Cause
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """An output that the judge refused, storable: no lone surrogate, no NUL."""

    backend: str
    reasons: tuple[str, ...]
    text: str
    finish_reason: str | None


@dataclass(slots=True)
class Counts:
    """What the background work did since the program started.

    asked: calls; accepted: texts stored; rejected by main reason and faults by kind; chapters and
    majors: stored texts of models; stand_ins: prepared ahead, chapters and gists; parked: jobs.
    """

    asked: int = 0
    accepted: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    chapters: int = 0
    majors: int = 0
    stand_ins: int = 0
    parked: int = 0


@dataclass(frozen=True, slots=True)
class Round:
    """One round: which work of which conversation, by whom, under which name and number (seeds are
    drawn from both).

    ratios: characters per token as learned in this conversation, by backend. gate: entered for
    each call, waits for a quiet moment of the backend. report: stores a rejected output. calls:
    the seconds that each call took.
    """

    work: Assignment
    order: Sequence[Backend]
    rules: Summaries
    key: str
    attempt: int
    ratios: Mapping[str, float]
    gate: Callable[[str], AbstractAsyncContextManager[None]]
    report: Callable[[Rejected], Awaitable[None]]
    conversation: str | None = None
    calls: list[float] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """What is written, as the jobs and the meters name it."""
        return "gist" if self.work.purpose == "gist" else "chapter"


@dataclass(frozen=True, slots=True)
class _Room:
    """limit: characters of quoted text a call, None without bound; output: tokens at first, and
    most after an answer was cut; density: the least tokens a character that are plausible."""

    limit: int | None
    output: int
    most: int
    density: float


@dataclass(frozen=True, slots=True)
class _Answer:
    output: str
    finish_reason: str | None
    prompt_tokens: int | None


Offload = Callable[..., Awaitable[Any]]


class Recorder:
    """Runs rounds. offload runs a function that costs milliseconds away from the event loop;
    clock tells seconds that never go back."""

    def __init__(
        self, counts: Counts, offload: Offload, meters: Meters, clock: Callable[[], float]
    ) -> None:
        self._counts = counts
        self._offload = offload
        self.meters = meters
        self.clock = clock
        self._forms: dict[str, Form] = {}

    async def write(self, round_: Round) -> Draft | list[Failure]:
        """The text, or the failures of everybody asked, in order.

        A content that two providers refused is offered to no third one.
        """
        failures: list[Failure] = []
        for backend in round_.order:
            outcome = await self._write_with(backend, round_)
            if isinstance(outcome, Told):
                self._counts.accepted += 1
                took_ms = round(sum(round_.calls) * 1000)
                return Draft(outcome.text, backend.name, took_ms, outcome.entries, outcome.moved)
            failures.append(outcome)
            if sum(failure.kind == FaultKind.REFUSED for failure in failures) > 1:
                break
        return failures

    async def _write_with(self, backend: Backend, round_: Round) -> Told | Failure:
        room = await self._measure(backend, round_)
        limit = room.limit
        if limit is not None and limit < LEAST_CHARS:
            said = f"the window of {backend.name} is too small to record anything"
            return Failure(backend.name, "window", said, "outage")
        for _ in range(OVERFLOWS):
            try:
                pieces = await self._offload(round_.work.cut, limit)
            except ValueError as error:
                return Failure(backend.name, "window", f"{backend.name}: {error}", "outage")
            outcome = await self._write_pieces(backend, round_, room, pieces)
            if isinstance(outcome, Told) or outcome.kind != FaultKind.OVERFLOW:
                return outcome
            limit = max(len(piece.text) for piece in pieces) // 2
            if limit < LEAST_CHARS:
                break
        return outcome

    async def _measure(self, backend: Backend, round_: Round) -> _Room:
        """The room of this backend, by its window and what is known of characters per token."""
        work, most = round_.work, round_.rules.max_output
        learned = round_.ratios.get(backend.name)
        guessed: float = await self._offload(first_ratio, work.text)
        density = _LEAST_UNKNOWN / guessed
        if learned is not None:
            density = _LEAST_KNOWN / max(learned, guessed)
        ratio = learned or guessed
        window = await backend.window()
        if window is None:
            return _Room(None, most, most, density)
        output = min(most, max(window // 4, 256))
        fixed = MARGIN_TOKENS + int(work.overhead / ratio)
        limit = int((window - output - fixed) * ratio)
        return _Room(limit, output, min(most, window // 2), density)

    async def _write_pieces(
        self, backend: Backend, round_: Round, room: _Room, pieces: Sequence[Piece]
    ) -> Told | Failure:
        told: list[Told] = []
        share = max(LEAST_ASKED, round_.work.length // max(1, len(pieces)))
        for index, piece in enumerate(pieces):
            asked = min(share, max(LEAST_ASKED, len(piece.text) // 2))
            form = self.form(backend)
            drawing = _Drawing(self, backend, round_, room, piece, index, asked, form)
            outcome = await drawing.run()
            if isinstance(outcome, Failure):
                return outcome
            told.append(outcome)
        text = "\n\n".join(each.text for each in told)
        moved = tuple(sentence for each in told for sentence in each.moved)
        return Told(text, join_entries([each.entries for each in told]), moved)

    def form(self, backend: Backend) -> Form:
        """How the frame is demanded of a backend; learned where it refused another way."""
        usual: Form = "grammar" if backend.kind in _SEEDED else "schema"
        return self._forms.get(backend.name, usual)

    def fit_form(self, backend: Backend, form: Form) -> Form:
        """The form, or where the backend passes none of it on to its model, another: nothing would
        hold an answer to the frame then."""
        demand = _DEMANDS.get(form)
        if demand is None or demand not in backend.dropped_params({demand: {}}):
            return form
        return self.fit_form(backend, "prose" if form == "tool" else "tool")

    def learn_form(self, backend: Backend, form: Form) -> None:
        """Keep to the form in which a backend took a request, after it refused another."""
        if form != self.form(backend):
            log.warning("%s takes summary requests only as %s, not as usual", backend.name, form)
            self._forms[backend.name] = form

    async def judge(self, piece: Piece, answer: _Answer, asked: int) -> Verdict:
        verdict: Verdict = await self._offload(
            piece.judge, answer.output, answer.finish_reason, asked
        )
        return verdict

    async def ground(self, piece: Piece, verdict: Verdict) -> Entries:
        entries: Entries = await self._offload(piece.ground, verdict)
        return entries

    async def shorten(self, piece: Piece, verdict: Verdict) -> Told | None:
        told: Told | None = await self._offload(piece.shorten, verdict)
        return told

    @property
    def counts(self) -> Counts:
        return self._counts


@dataclass(slots=True)
class _Drawing:
    """One piece before one summarizer: the draws until a text is accepted."""

    recorder: Recorder
    backend: Backend
    round: Round
    room: _Room
    piece: Piece
    index: int
    asked: int
    form: Form
    draw: int = 0

    async def run(self) -> Told | Failure:
        output_tokens = self.room.output
        while True:
            answer = await self._ask(output_tokens)
            if isinstance(answer, UpstreamFault):
                if (failure := await self._take_fault(answer)) is not None:
                    return failure
                continue
            verdict = await self._judge(answer)
            if verdict.accepted:
                self.recorder.meters.summary_accepted(self.backend.name, self.round.kind)
                entries = await self.recorder.ground(self.piece, verdict)
                self._count_entries(verdict, entries)
                return Told(_storable(verdict.text), entries)
            await self._reject(verdict.reasons, answer.output, answer.finish_reason)
            if self.draw == self.round.rules.redraws:
                return await self._settle(verdict)
            self.draw += 1
            if "truncated" in verdict.reasons:
                output_tokens = self.room.most
            if "long" in verdict.reasons:
                self.asked = max(LEAST_ASKED, self._shorter(len(verdict.text)))

    def _count_entries(self, verdict: Verdict, entries: Entries) -> None:
        for name in ("facts", "claims", "opened", "resolved", "quotes"):
            told, kept = len(getattr(verdict.beside, name)), len(getattr(entries, name))
            if told:
                self.recorder.meters.entries_told(self.backend.name, name, kept, told - kept)

    def _shorter(self, came: int) -> int:
        """What to ask for after an answer of so many characters (0: unknown) that was too long."""
        share = min(_SHORTER, self.round.work.length / came) if came else _SHORTER
        return int(self.asked * share)

    async def _settle(self, verdict: Verdict) -> Told | Failure:
        """What is left to be done after the last draw was judged out."""
        made: Told | None = await self.recorder.shorten(self.piece, verdict)
        if made is None:
            return self._failed(verdict.reasons[0], "judged out: " + ", ".join(verdict.reasons))
        self.recorder.meters.summary_accepted(self.backend.name, self.round.kind)
        return replace(made, text=_storable(made.text), moved=tuple(map(_storable, made.moved)))

    async def _ask(self, output_tokens: int) -> _Answer | UpstreamFault:
        round_, name = self.round, self.backend.name
        self.form = self.recorder.fit_form(self.backend, self.form)
        seed = int(draw_share(f"{round_.key}:{round_.attempt}:{self.index}:{self.draw}") * 2**31)
        prompt = self.piece.ask(
            self.asked,
            self.form,
            self.draw,
            seed if self.backend.kind in _SEEDED else None,
        )
        call = Call(
            messages=prompt.messages,
            params=prompt.params,
            stream=False,
            max_tokens=output_tokens,
            purpose=round_.work.purpose,
            request_id=f"{round_.key}#{round_.attempt}.{self.index}.{self.draw}",
            conversation=round_.conversation,
        )
        async with round_.gate(name):
            self.recorder.counts.asked += 1
            self.recorder.meters.summary_asked(name, round_.kind)
            began = self.recorder.clock()
            try:
                async with asyncio.timeout(round_.rules.timeout):
                    completion = await self.backend.complete(call)
            except UpstreamFault as fault:
                return fault
            except TimeoutError:
                what = f"The backend {name} took longer than {round_.rules.timeout:g} s"
                return UpstreamFault(FaultKind.TIMEOUT, what)
            finally:
                round_.calls.append(self.recorder.clock() - began)
        self.recorder.learn_form(self.backend, self.form)
        reply = ReplyBuilder.from_completion(completion.parsed)
        self._count_tokens(call, reply)
        return self._check_prompt(_read(completion.parsed, reply), prompt)

    def _count_tokens(self, call: Call, reply: ReplyBuilder) -> None:
        meters, name = self.recorder.meters, self.backend.name
        used = reply.prompt_tokens, reply.cached_tokens, reply.completion_tokens
        meters.tokens_used(name, call.purpose, *used)
        if call.trace.queued is not None:
            meters.queue_left(name, call.purpose, call.trace.queued)

    def _check_prompt(self, answer: _Answer, prompt: Prompt) -> _Answer | UpstreamFault:
        """A fault where the backend read far less than it was sent: it told half of a story."""
        expected = prompt.chars * self.room.density
        if answer.prompt_tokens is None or answer.prompt_tokens >= expected:
            return answer
        what = (
            f"The backend {self.backend.name} read {answer.prompt_tokens} tokens "
            f"where at least {int(expected)} were sent"
        )
        log.warning("%s: its window is smaller than it says", what)
        return UpstreamFault(FaultKind.OVERFLOW, what)

    async def _take_fault(self, fault: UpstreamFault) -> Failure | None:
        """The failure that a fault is; None where another draw may help."""
        self.recorder.counts.faults[fault.kind] += 1
        if fault.received is not None:
            answer = _read(fault.received, ReplyBuilder.from_completion(fault.received))
            await self._reject(("truncated",), answer.output, answer.finish_reason)
        elif fault.kind is FaultKind.REFUSED:
            await self._reject((FaultKind.REFUSED,), "", None)  # counted with what models refuse
        else:
            self.recorder.meters.summary_failed(self.backend.name, self.round.kind, fault.kind)
        if fault.kind in _IN_VAIN and self.draw < self.round.rules.redraws:
            self.draw += 1
            return None
        if fault.kind is FaultKind.BAD_REQUEST and self.form in _SIMPLER:
            self.form = _SIMPLER[self.form]
            if self.form == "tool" and self.backend.kind == "llama_cpp":
                self.form = "prose"  # its tools are a grammar too, and ask for a template beside
            return None
        cause: Cause = "outage"
        if fault.kind in _FINAL:
            cause = "final"
        elif fault.kind in _IN_VAIN:
            cause = "judged"
        return Failure(self.backend.name, fault.kind, fault.outline, cause, fault.retry_after)

    async def _judge(self, answer: _Answer) -> Verdict:
        return await self.recorder.judge(self.piece, answer, self.asked)

    async def _reject(self, reasons: tuple[str, ...], text: str, finish: str | None) -> None:
        self.recorder.counts.rejected[reasons[0]] += 1
        self.recorder.meters.summary_rejected(self.backend.name, self.round.kind, reasons[0])
        await self.round.report(
            Rejected(self.backend.name, reasons, _storable(text), finish),
        )

    def _failed(self, kind: str, said: str) -> Failure:
        return Failure(self.backend.name, kind, f"{self.backend.name}: {said}", "judged")


def _read(parsed: dict[str, Any], reply: ReplyBuilder) -> _Answer:
    """The raw answer: content as it came, never the reasoning in its place; where the frame was a
    tool's, what the tool was called with."""
    choices = parsed.get("choices") or [{}]
    message = choices[0].get("message") or {}
    content, finish = message.get("content"), reply.finish_reason
    output = content if isinstance(content, str) else reply.text
    for _, name, arguments in tool_calls(message):
        if name == TOOL:
            return _Answer(arguments, "stop" if finish in _CALLED else finish, reply.prompt_tokens)
    return _Answer(output, finish, reply.prompt_tokens)


def _storable(text: str) -> str:
    """The text as every database holds it."""
    return whole_letters(text).replace("\x00", "\ufffd")
