"""One background job: load its rows, have the text written, and end it.

A round that gave no text changes nothing but the job's own row, until a stand-in is due.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial

from gateway.backends.base import Backend
from gateway.backends.faults import FaultKind
from gateway.flows import upkeep_rows as rows
from gateway.flows.assignments import Assignment, ChapterAssignment, GistAssignment
from gateway.flows.chapter_jobs import ChapterRows, load_chapter, save_chapter
from gateway.flows.context import Context
from gateway.flows.gist_jobs import GistRows, load_gist, save_gist
from gateway.flows.migrate import plan_next_gist
from gateway.flows.recorder import Recorder
from gateway.flows.rounds import Counts, Draft, Failure, Offload, Rejected, Round
from gateway.flows.stand_ins import condense_notes
from gateway.flows.upkeep_rows import Outcome
from gateway.jobs import leases
from gateway.jobs.leases import Held
from gateway.jobs.rows import JobRow
from gateway.prompts.span import span_lines
from gateway.store.origins import Origin, find_origin
from gateway.store.profile_learning import personal_kinds
from gateway.trail import learn_conversation
from policies.generations import GREAT_STACK
from policies.language import language_of
from policies.ledger.threads import choose_threads
from policies.masking.kinds import KINDS, Kind
from policies.retries import Cause, plan_retry
from policies.schema import Policy
from policies.standin import write_stand_in
from policies.values import Line

log = logging.getLogger("foldgate.upkeep")


@dataclass(frozen=True, slots=True)
class _Task:
    """A claimed job, ready to run: what to write, what to do without a model, and how a text is
    stored."""

    held: Held
    policy: Policy
    origin: Origin
    work: Assignment
    stand_in: Callable[[], str | None]
    save: Callable[..., bool]


class Errands:
    """Runs claimed jobs. gate: entered for each call, waits for a backend's quiet moment."""

    def __init__(
        self,
        ctx: Context,
        counts: Counts,
        offload: Offload,
        gate: Callable[[str], AbstractAsyncContextManager[None]],
    ) -> None:
        self._ctx = ctx
        self._counts = counts
        self._offload = offload
        self._gate = gate
        self._recorder = Recorder(counts, offload, ctx.meters, ctx.clock.monotonic)
        self._final: dict[int, dict[str, dict[str, Failure]]] = {}

    def forget(self, conversation_pk: int) -> None:
        """A conversation was deleted."""
        self._final.pop(conversation_pk, None)

    def _settle(self, job: JobRow) -> None:
        """A job ended: who failed it for good matters no more."""
        known = self._final.get(job.conversation_pk, {})
        known.pop(job.key, None)
        if not known:
            self._final.pop(job.conversation_pk, None)

    async def attend(self, held: Held) -> None:
        store, job = self._ctx.store, held.job
        origin = await store.read(find_origin, job.conversation_pk)
        if origin is None:
            self.forget(job.conversation_pk)
            return
        learn_conversation(origin.id)
        policy = self._policy(job, origin)
        if policy is None:
            said = f"the policy {job.policy} is not in policies.yaml any more"
            await self.end_broken(held, "no-policy", said)
            return
        if job.kind == "chapter":
            task = await self._prepare_chapter(held, policy, origin)
        else:
            task = await self._prepare_gist(held, policy, origin)
        if task is not None:
            await self._play(task)

    def _policy(self, job: JobRow, origin: Origin) -> Policy | None:
        """The job's policy; a chapter, which belongs to no policy, may go by the conversation's
        present one where its own was renamed."""
        known = self._ctx.policies.file.policies
        if job.policy not in known and job.kind == "chapter" and origin.policy is not None:
            return known.get(origin.policy)
        return known.get(job.policy)

    async def _prepare_chapter(self, held: Held, policy: Policy, origin: Origin) -> _Task | None:
        found = await self._ctx.store.read(load_chapter, held.job)
        if found is None:
            await self.end_broken(held, "gone", "its span is gone")
            return None
        if found.origin in ("model", "owner") and "again" not in held.job.payload:
            await self._complete(held)
            return None
        work: ChapterAssignment = await self._offload(_chapter_work, found, policy)
        if not work.lines:
            await self._park(held, "empty", "its span says nothing")
            return None
        stand_in = partial(_chapter_stand_in, work.lines, policy.chapters.length)
        save = partial(save_chapter, pks=found.pks, learns=policy.profile.learn)
        return _Task(held, policy, origin, work, stand_in, save)

    async def _prepare_gist(self, held: Held, policy: Policy, origin: Origin) -> _Task | None:
        found = await self._ctx.store.read(load_gist, held.job, origin, policy)
        if found is None:
            await self.end_broken(held, "gone", "its chapters are gone")
            return None
        if found.is_made:
            await self._complete(held)
            return None
        read = {"chapters": list(found.sources), "earlier": found.earlier}
        told = {**held.job.payload, **read}
        held = replace(held, job=replace(held.job, payload=told))
        language = language_of("\n".join(found.notes))
        work = GistAssignment(found.notes, language, policy.gist.length, found.threads)
        stand_in = partial(_gist_stand_in, found, policy)
        return _Task(held, policy, origin, work, stand_in, save_gist)

    async def _play(self, task: _Task) -> None:
        """One round over the summarizers, and its end.

        Who failed this job for good in an earlier round is not sent the same bytes again.
        """
        job = task.held.job
        final = self._final.get(job.conversation_pk, {}).get(job.key, {})
        order = [
            backend
            for backend in self._summarizers(task.policy, task.origin)
            if backend.name not in final
        ]
        names = [backend.name for backend in order]
        round_ = Round(
            work=task.work,
            order=order,
            rules=task.policy.summaries,
            key=job.key,
            attempt=job.attempts,
            ratios=await self._ctx.store.read(rows.load_ratios, job.conversation_pk, names),
            gate=self._gate,
            report=partial(self._quarantine, task.held),
            conversation=task.origin.id,
            mask=self._hidden(task.policy, task.origin),
        )
        outcome = await self._write(round_)
        if isinstance(outcome, Draft):
            await self._save(task, outcome)
            return
        for failure in outcome:
            if failure.cause == "final":
                known = self._final.setdefault(job.conversation_pk, {})
                known.setdefault(job.key, {})[failure.backend] = failure
        await self._end_round(task, [*final.values(), *outcome])

    async def _write(self, round_: Round) -> Draft | list[Failure]:
        """A round, as one span."""
        span = self._ctx.traces.begin(
            "summary", job=round_.key, kind=round_.kind, round=round_.attempt
        )
        try:
            outcome = await self._recorder.write(round_)
            span.tell(calls=len(round_.calls))
            if isinstance(outcome, Draft):
                span.tell(backend=outcome.backend)
            else:
                span.fail(_sum_up(outcome)[1])
        finally:
            span.end()
        return outcome

    def _hidden(self, policy: Policy, origin: Origin) -> tuple[Kind, ...]:
        """What summarizers off this machine do not see: what this policy or that of any tier of the
        model hides."""
        file = self._ctx.policies.file
        model = file.find_model(origin.model)
        tiers = () if model is None else model.tiers
        masks = [policy.privacy.mask, *(file.policies[t.policy].privacy.mask for t in tiers)]
        return tuple(kind for kind in KINDS if any(kind in mask for mask in masks))

    def _summarizers(self, policy: Policy, origin: Origin) -> list[Backend]:
        """Who is asked, in order; whoever is left alone after failed turns comes last. A private
        conversation stays on this machine; so does what a model was told that is not in
        policies.yaml any more."""
        own = (origin.backend,) if origin.backend is not None else ()
        model = self._ctx.policies.file.find_model(origin.model)
        is_private = origin.is_private or model is None or model.private
        known = [self._ctx.backends.get(name) for name in policy.summaries.backends or own]
        allowed = [
            backend
            for backend in known
            if backend is not None
            and backend.off_reason is None
            and (backend.local or not is_private)
        ]
        circuits = self._ctx.circuits
        return sorted(allowed, key=lambda backend: not circuits.is_passable(backend.name))

    def choose_first(self, job: JobRow, origin: Origin) -> str | None:
        policy = self._policy(job, origin)
        order = [] if policy is None else self._summarizers(policy, origin)
        return order[0].name if order else None

    async def _quarantine(self, held: Held, rejected: Rejected) -> None:
        reasons = ", ".join(rejected.reasons)
        log.info("%s: a text of %s is judged out: %s", held.job.key, rejected.backend, reasons)
        await self._ctx.write_timed(rows.save_rejected, held, rejected)

    async def _save(self, task: _Task, draft: Draft) -> None:
        held = task.held
        self._settle(held.job)
        if not await self._ctx.write_timed(task.save, held, draft):
            log.info("%s: its result came too late and is dropped", held.job.key)
            self._ctx.ring(self._ctx.clock.now_ms())
            return
        self._ctx.meters.chapter_stored(held.job.kind, draft.took_ms / 1000)
        if held.job.kind == "chapter":
            self._counts.chapters += 1
            self._count_refused(task.policy, draft)
        else:
            self._counts.majors += 1
        await self._look_ahead(held.job, is_model=True)
        self._ctx.prefills.memory_grew(held.job.conversation_pk)

    def _count_refused(self, policy: Policy, draft: Draft) -> None:
        """Facts that the owner's profile does not take."""
        if policy.profile.learn:
            for fact in draft.entries.facts:
                for kind in sorted(personal_kinds(fact)):
                    self._ctx.meters.fact_refused(kind)

    async def _look_ahead(self, job: JobRow, *, is_model: bool) -> None:
        """After a text that no view shows yet: the next one that its view will need. Where this is
        broken off, the next turn or the next fold does it. A gist made without a model waits for
        its successor, before more is folded into it."""
        goes_on = job.kind == "gist" and is_model
        name = job.payload.get("ahead", job.policy if goes_on else "")
        policy = self._ctx.policies.file.policies.get(name)
        if policy is not None:
            await self._ctx.write_timed(plan_next_gist, job.conversation_pk, policy, job.payload)

    async def _complete(self, held: Held) -> None:
        self._settle(held.job)
        await self._ctx.write_timed(leases.complete, held.job.pk, held.lease)

    async def _end_round(self, task: _Task, failures: Sequence[Failure]) -> None:
        cause, kind, said, retry_after = _sum_up(failures)
        job = task.held.job
        rounds = task.policy.summaries.rounds
        retry = plan_retry(job.key, job.attempts, rounds, cause, retry_after)
        stand_in: str | None = None
        if retry.stand_in:
            stand_in = await self._offload(task.stand_in)
        await self._end(task.held, retry.wait, kind, said, stand_in or None)

    async def end_broken(self, held: Held, kind: str, said: str) -> None:
        retry = plan_retry(held.job.key, held.job.attempts, 1, "broken")
        await self._end(held, retry.wait, kind, said)

    async def _park(self, held: Held, kind: str, said: str) -> None:
        await self._end(held, None, kind, said)

    async def _end(
        self, held: Held, wait: float | None, kind: str, said: str, stand_in: str | None = None
    ) -> None:
        """Write how an attempt failed; `wait` in seconds, None to park the job."""
        outcome = Outcome(wait, kind, said, stand_in)
        is_stored = await self._ctx.write_timed(rows.save_failure, held, outcome)
        if is_stored:
            self._counts.stand_ins += 1
            self._ctx.meters.stand_ins_made(held.job.kind, "ahead")
            log.warning("%s: a stand-in was prepared", held.job.key)
            await self._look_ahead(held.job, is_model=False)
            self._ctx.prefills.memory_grew(held.job.conversation_pk)
        if wait is None:
            self._counts.parked += 1
            self._ctx.meters.job_parked(held.job.kind)
            self._settle(held.job)
            log.warning("%s: parked (%s: %s)", held.job.key, kind, said)
        else:
            log.info("%s: again in %.0f s (%s: %s)", held.job.key, wait, kind, said)
            self._ctx.ring(self._ctx.clock.now_ms() + int(wait * 1000))


def _chapter_work(found: ChapterRows, policy: Policy) -> ChapterAssignment:
    lines = tuple(span_lines(found.raws, policy.reply_fields))
    text = "\n".join(line.text for line in lines)
    threads = choose_threads(found.threads, text)
    chapters = policy.chapters
    return ChapterAssignment(lines, language_of(text), chapters.length, chapters.split, threads)


def _chapter_stand_in(lines: Sequence[Line], length: int) -> str:
    return write_stand_in(lines, length).replace("\x00", "\ufffd")


def _gist_stand_in(found: GistRows, policy: Policy) -> str | None:
    """A gist without a model, where the stack has outgrown its budget by far; else none, and the
    old gist with all chapters behind it stays."""
    if found.stack_chars <= GREAT_STACK * policy.chapters.stack:
        return None
    return condense_notes(found.notes, policy.gist.length, found.threads)


def _sum_up(failures: Sequence[Failure]) -> tuple[Cause, str, str, float | None]:
    """A round's failures as one: cause, kind, words, and the longest wait that was asked for.

    Final only where everybody failed for good, or two refused the content; judged only where
    nobody was out.
    """
    if not failures:
        said = "no summarizer can be asked: each is off, unknown, or not on this machine"
        return "outage", "no-summarizer", said, None
    causes = {failure.cause for failure in failures}
    refusals = sum(failure.kind == FaultKind.REFUSED for failure in failures)
    cause: Cause = "judged"
    if refusals > 1 or causes == {"final"}:
        cause = "final"
    elif "outage" in causes:
        cause = "outage"
    worst = next((failure for failure in failures if failure.cause == cause), failures[0])
    waits = [failure.retry_after for failure in failures if failure.retry_after is not None]
    said = "; ".join(failure.said for failure in failures)
    return cause, worst.kind, said, max(waits, default=None)


def describe(error: Exception) -> str:
    """An error of our own by its kind and place: its words may repeat a user's text."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {frames[-1].name}, line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}"
