"""One piece before one summarizer: drawn, judged and drawn again, until a text is accepted or
nothing more can be hoped for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gateway.backends.base import Backend, Call
from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.flows.assignments import Piece, Told
from gateway.flows.rounds import Counts, Failure, Offload, Rejected, Round
from gateway.flows.summary_forms import SEEDED, SummaryForms, find_simpler, fit_form
from gateway.meters import Meters
from gateway.prompts.summary import TOOL, Form, Prompt
from gateway.wire.replies import ReplyBuilder
from policies.ledger.values import Entries
from policies.messages import tool_calls, whole_letters
from policies.retries import Cause, draw_share

if TYPE_CHECKING:
    from policies.judge import Verdict

log = logging.getLogger("foldgate.recorder")

LEAST_ASKED = 150
"""The shortest text asked for, in characters: a piece of a span still needs a few sentences."""

_SHORTER = 0.75
"""The share of what was asked for that is asked after a text that was too long, at most."""

_IN_VAIN = frozenset({FaultKind.EMPTY, FaultKind.INTERRUPTED, FaultKind.MALFORMED})
"""Faults that are an answer, and no good one: another draw may do better."""

_FINAL = frozenset({FaultKind.REFUSED, FaultKind.BAD_REQUEST, FaultKind.OVERFLOW})
"""Faults that the same bytes will meet again, whenever they are sent."""

_CALLED = ("tool_calls", "function_call")
"""How an answer ends that is a whole call of a tool."""


@dataclass(frozen=True, slots=True)
class Room:
    """limit: characters of quoted text a call, None without bound; output: tokens at first, and
    most after an answer was cut; density: the least tokens a character that are plausible."""

    limit: int | None
    output: int
    most: int
    density: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What a summarizer said, as it came."""

    output: str
    finish_reason: str | None
    prompt_tokens: int | None


@dataclass(frozen=True, slots=True)
class Desk:
    """What every drawing works with. clock: seconds that never go back."""

    counts: Counts
    offload: Offload
    meters: Meters
    clock: Callable[[], float]
    forms: SummaryForms


@dataclass(slots=True)
class Drawing:
    """One piece before one summarizer: the draws until a text is accepted."""

    desk: Desk
    backend: Backend
    round: Round
    room: Room
    piece: Piece
    index: int
    asked: int
    form: Form
    draw: int = 0

    async def run(self) -> Told | Failure:
        """What was accepted, or why nothing was."""
        output_tokens = self.room.output
        while True:
            answer = await self._ask(output_tokens)
            if isinstance(answer, UpstreamFault):
                if (failure := await self._take_fault(answer)) is not None:
                    return failure
                continue
            verdict = await self._judge(answer)
            if verdict.accepted:
                self.desk.meters.summary_accepted(self.backend.name, self.round.kind)
                entries: Entries = await self.desk.offload(self.piece.ground, verdict)
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
                self.desk.meters.entries_told(self.backend.name, name, kept, told - kept)

    def _shorter(self, came: int) -> int:
        """What to ask for after an answer of so many characters (0: unknown) that was too long."""
        share = min(_SHORTER, self.round.work.length / came) if came else _SHORTER
        return int(self.asked * share)

    async def _settle(self, verdict: Verdict) -> Told | Failure:
        """What is left to be done after the last draw was judged out."""
        made: Told | None = await self.desk.offload(self.piece.shorten, verdict)
        if made is None:
            return self._failed(verdict.reasons[0], "judged out: " + ", ".join(verdict.reasons))
        self.desk.meters.summary_accepted(self.backend.name, self.round.kind)
        return replace(made, text=_storable(made.text), moved=tuple(map(_storable, made.moved)))

    async def _ask(self, output_tokens: int) -> Answer | UpstreamFault:
        round_, name = self.round, self.backend.name
        self.form = fit_form(self.backend, self.form)
        seed = int(draw_share(f"{round_.key}:{round_.attempt}:{self.index}:{self.draw}") * 2**31)
        prompt = self.piece.ask(
            self.asked,
            self.form,
            self.draw,
            seed if self.backend.kind in SEEDED else None,
        )
        call = Call(
            messages=prompt.messages,
            params=prompt.params,
            stream=False,
            max_tokens=output_tokens,
            purpose=round_.work.purpose,
            request_id=f"{round_.key}#{round_.attempt}.{self.index}.{self.draw}",
            conversation=round_.conversation,
            mask=round_.mask,
        )
        async with round_.gate(name):
            self.desk.counts.asked += 1
            self.desk.meters.summary_asked(name, round_.kind)
            began = self.desk.clock()
            try:
                async with asyncio.timeout(round_.rules.timeout):
                    completion = await self.backend.complete(call)
            except UpstreamFault as fault:
                return fault
            except TimeoutError:
                what = f"The backend {name} took longer than {round_.rules.timeout:g} s"
                return UpstreamFault(FaultKind.TIMEOUT, what)
            finally:
                round_.calls.append(self.desk.clock() - began)
        self.desk.forms.learn(self.backend, self.form)
        reply = ReplyBuilder.from_completion(completion.parsed)
        self._count_tokens(call, reply)
        return self._check_prompt(_read(completion.parsed, reply), prompt)

    def _count_tokens(self, call: Call, reply: ReplyBuilder) -> None:
        meters, name = self.desk.meters, self.backend.name
        used = reply.prompt_tokens, reply.cached_tokens, reply.completion_tokens
        meters.tokens_used(name, call.purpose, *used)
        if call.trace.queued is not None:
            meters.queue_left(name, call.purpose, call.trace.queued)

    def _check_prompt(self, answer: Answer, prompt: Prompt) -> Answer | UpstreamFault:
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
        self.desk.counts.faults[fault.kind] += 1
        if fault.received is not None:
            answer = _read(fault.received, ReplyBuilder.from_completion(fault.received))
            await self._reject(("truncated",), answer.output, answer.finish_reason)
        elif fault.kind is FaultKind.REFUSED:
            await self._reject((FaultKind.REFUSED,), "", None)  # counted with what models refuse
        else:
            self.desk.meters.summary_failed(self.backend.name, self.round.kind, fault.kind)
        if fault.kind in _IN_VAIN and self.draw < self.round.rules.redraws:
            self.draw += 1
            return None
        if fault.kind is FaultKind.BAD_REQUEST:
            simpler = find_simpler(self.backend, self.form)
            if simpler is not None:
                self.form = simpler
                return None
        cause: Cause = "outage"
        if fault.kind in _FINAL:
            cause = "final"
        elif fault.kind in _IN_VAIN:
            cause = "judged"
        return Failure(self.backend.name, fault.kind, fault.outline, cause, fault.retry_after)

    async def _judge(self, answer: Answer) -> Verdict:
        verdict: Verdict = await self.desk.offload(
            self.piece.judge, answer.output, answer.finish_reason, self.asked
        )
        return verdict

    async def _reject(self, reasons: tuple[str, ...], text: str, finish: str | None) -> None:
        self.desk.counts.rejected[reasons[0]] += 1
        self.desk.meters.summary_rejected(self.backend.name, self.round.kind, reasons[0])
        await self.round.report(
            Rejected(self.backend.name, reasons, _storable(text), finish),
        )

    def _failed(self, kind: str, said: str) -> Failure:
        return Failure(self.backend.name, kind, f"{self.backend.name}: {said}", "judged")


def _read(parsed: dict[str, Any], reply: ReplyBuilder) -> Answer:
    """The raw answer: content as it came, never the reasoning in its place; where the frame was a
    tool's, what the tool was called with."""
    choices = parsed.get("choices") or [{}]
    message = choices[0].get("message") or {}
    content, finish = message.get("content"), reply.finish_reason
    output = content if isinstance(content, str) else reply.text
    for _, name, arguments in tool_calls(message):
        if name == TOOL:
            return Answer(arguments, "stop" if finish in _CALLED else finish, reply.prompt_tokens)
    return Answer(output, finish, reply.prompt_tokens)


def _storable(text: str) -> str:
    """The text as every database holds it."""
    return whole_letters(text).replace("\x00", "\ufffd")
