"""What a run has made, kept line by line, so that no model is asked the same thing twice.

One JSON object a line, appended at once: the header first (what is evaluated, as digests), then
each call with its answer, and what was made of it: texts, questions, answers, grades.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from gateway.backends.base import Backend, Call, Chunk, Completion, Health, SlotCare
from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.errors import ConfigurationError
from gateway.wire.json_text import NotJson, dump_bytes, loads

FILE = "forgetting.jsonl"
_ANSWERS = frozenset(
    {
        *(FaultKind.REFUSED, FaultKind.BAD_REQUEST, FaultKind.OVERFLOW),
        *(FaultKind.EMPTY, FaultKind.MALFORMED),
    }
)
"""Faults that are an answer, if no good one: they are kept and told again. What broke off is told
and not kept, because another call may end. The others say that nobody answered."""


class RunStopped(Exception):
    """A run that cannot go on now, in words for people; what was made is kept."""


@dataclass(slots=True)
class State:
    """lines: the values by kind and key. Without a file everything is kept in memory only."""

    _file: IO[bytes] | None = None
    _lines: dict[tuple[str, str], Any] = field(default_factory=dict)
    path: Path | None = None

    def find(self, kind: str, key: str) -> Any:
        """What was made under this key, None where nothing was."""
        return self._lines.get((kind, key))

    def add(self, kind: str, key: str, value: Any) -> None:
        """Keep what was made; what is known already is not written again."""
        if (kind, key) in self._lines:
            return
        self._lines[kind, key] = value
        if self._file is not None:
            self._file.write(dump_bytes({"kind": kind, "key": key, "value": value}) + b"\n")
            self._file.flush()

    def count(self, kind: str) -> int:
        return sum(known == kind for known, _ in self._lines)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def open_state(
    folder: Path | None, fingerprint: Mapping[str, str], *, fresh: bool = False
) -> State:
    """The state in this folder, made where there is none; fresh: begun anew.

    ConfigurationError where it was made with another fingerprint, or holds something else.
    """
    if folder is None:
        return State()
    path = folder / FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if fresh:
            path.unlink(missing_ok=True)
        lines = _read(path)
        file = path.open("ab")
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror or error}") from error
    state = State(file, {}, path)
    if not lines:
        state.add("fingerprint", "", dict(fingerprint))
        return state
    try:
        _check(path, lines[0], fingerprint)
    except ConfigurationError:
        file.close()
        raise
    state._lines.update({(line["kind"], line["key"]): line["value"] for line in lines})
    return state


def _read(path: Path) -> list[dict[str, Any]]:
    """The whole lines; one that was cut by a kill is taken off the file."""
    if not path.exists():
        return []
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        os.truncate(path, len(whole))
    found = []
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            value = loads(line)
        except NotJson as error:
            raise ConfigurationError(f"{path}:{number}: not JSON: {error}") from error
        if not isinstance(value, dict) or not {"kind", "key", "value"} <= value.keys():
            raise ConfigurationError(f"{path}:{number}: no line of a forgetting run")
        found.append(value)
    return found


def _check(path: Path, header: Mapping[str, Any], fingerprint: Mapping[str, str]) -> None:
    told = header["value"] if header["kind"] == "fingerprint" else {}
    other = [name for name, digest in fingerprint.items() if told.get(name) != digest]
    if other:
        raise ConfigurationError(
            f"{path} was made with another {', '.join(other)}: what it holds cannot be mixed with "
            "this run. Take another --state, or begin it anew with --fresh"
        )


class Recorded:
    """A backend whose whole answers are kept in a state; a call that is known is not made again.

    asked: calls that the backend really got. Raises RunStopped where nobody answers.
    """

    can_prefill = False

    def __init__(self, backend: Backend, state: State) -> None:
        self.name, self.kind, self.local = backend.name, backend.kind, backend.local
        self.image_chars = backend.image_chars
        self.window_tokens = backend.window_tokens
        self.off_reason = backend.off_reason
        self.asked = 0
        self._backend = backend
        self._state = state

    @property
    def slot_care(self) -> SlotCare | None:
        return self._backend.slot_care

    async def start(self) -> None:
        await self._backend.start()

    async def aclose(self) -> None:
        await self._backend.aclose()

    async def health(self) -> Health:
        return await self._backend.health()

    async def window(self) -> int | None:
        return await self._backend.window()

    async def count_tokens(
        self, messages: Sequence[bytes], params: Mapping[str, Any] | None = None
    ) -> int | None:
        return await self._backend.count_tokens(messages, params)

    def dropped_params(self, params: dict[str, Any]) -> tuple[str, ...]:
        return self._backend.dropped_params(params)

    def stream(self, call: Call) -> AsyncIterator[Chunk]:
        """As it is: nothing of a stream is kept."""
        return self._backend.stream(call)

    async def prefill(self, call: Call) -> bool:
        """False: nothing is asked twice."""
        return False

    async def complete(self, call: Call) -> Completion:
        key = call_key(self.name, call)
        known = self._state.find("call", key)
        if known is None:
            known = await self._ask(call)
            self._state.add("call", key, known)
        if (fault := known.get("fault")) is not None:
            kind, said, received = FaultKind(fault["kind"]), fault["said"], fault["received"]
            raise UpstreamFault(kind, said, received=received)
        answer = known["answer"]
        return Completion(dump_bytes(answer), answer)

    async def _ask(self, call: Call) -> dict[str, Any]:
        self.asked += 1
        try:
            completion = await self._backend.complete(call)
        except UpstreamFault as fault:
            if fault.kind in _ANSWERS:
                told = {"kind": str(fault.kind), "said": fault.what, "received": fault.received}
                return {"fault": told}
            if fault.kind is FaultKind.INTERRUPTED:
                raise
            raise RunStopped(f"{fault.what} ({fault.kind})") from fault
        return {"answer": completion.parsed}


def call_key(name: str, call: Call) -> str:
    """By what a call is known: whose it is, its own name, and everything that is sent."""
    digest = hashlib.blake2b(digest_size=16)
    for message in call.messages:
        digest.update(message + b"\n")
    digest.update(dump_bytes({"params": call.params, "most": call.max_tokens}))
    return f"{name} {call.request_id} {digest.hexdigest()}"
