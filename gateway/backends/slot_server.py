"""What a llama-server is asked about its slots, and told to do with them.

Facts of the server that shape this file (measured, build 11549): `/slots` is answered between two
batches; a slot that was never used says no `id_task`; erasing a slot needs --slot-save-path (else
501), while a one-token request with cache_prompt false leaves nothing of what was there; with
--cache-ram what was there goes to the server's memory first, and comes back for a prompt that is
like it, pinned or not.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from gateway.backends.faults import FaultKind, UpstreamFault

ASK_SECONDS = 10.0
WIPE_SECONDS = 60.0
"""How long a question may take, and a wipe: it stands behind a batch of somebody else's."""

_NOISE_WORDS = 24
_TOLD_APART = 8
"""The length of a text that is like nothing, and how many of its tokens are read anew at most where
it came from memory."""

NO_SUCH_THING = frozenset({FaultKind.NOT_FOUND, FaultKind.SERVER, FaultKind.BAD_REQUEST})
"""How a server answers that lacks what was asked for: 404, 405, 501."""


class Ask(Protocol):
    """One small question to the server; the decoded answer. Raises UpstreamFault."""

    async def __call__(
        self, method: str, path: str, seconds: float, fields: Mapping[str, Any] | None = None
    ) -> Any: ...


@dataclass(frozen=True, slots=True)
class ServerSlot:
    """What the server says of a slot; is_fresh: it was never used since the server's start."""

    number: int
    is_busy: bool
    is_fresh: bool


class SlotServer:
    """One llama-server's slots, over small questions. Raises UpstreamFault."""

    def __init__(self, backend: str, ask: Ask) -> None:
        self._backend = backend
        self._send = ask
        self._can_erase = True

    async def _ask(
        self, method: str, path: str, seconds: float, fields: Mapping[str, Any] | None = None
    ) -> Any:
        """As Ask; a fault of a server that lacks what is asked for names the path."""
        try:
            return await self._send(method, path, seconds, fields)
        except UpstreamFault as fault:
            if fault.kind not in NO_SUCH_THING:
                raise
            _, colon, words = fault.what.partition(": ")
            what = f"{fault.outline}, asked for {method} {path}{colon}{words}"
            raise UpstreamFault(fault.kind, what, status=fault.status) from fault

    async def read_slots(self) -> list[ServerSlot]:
        """The server's own word on its slots. Raises UpstreamFault, also where it has no list."""
        answer = await self._ask("GET", "/slots", ASK_SECONDS)
        if not isinstance(answer, list) or not all(isinstance(slot, dict) for slot in answer):
            what = f"The backend {self._backend} answered /slots with no list"
            raise UpstreamFault(FaultKind.MALFORMED, what)
        return [
            ServerSlot(
                number=slot.get("id", index),
                is_busy=bool(slot.get("is_processing")),
                is_fresh=slot.get("id_task", -1) == -1,
            )
            for index, slot in enumerate(answer)
        ]

    async def erase(self, number: int) -> bool:
        """Erase a slot as soon as it is idle; False where the server cannot."""
        if self._can_erase:
            try:
                await self._ask("POST", f"/slots/{number}?action=erase", WIPE_SECONDS, {})
            except UpstreamFault as fault:
                if fault.kind not in NO_SUCH_THING:
                    raise
                self._can_erase = False
        return self._can_erase

    async def overwrite(self, number: int) -> None:
        """Erase a slot that is ours where the server can, else read a dot over it."""
        if await self.erase(number):
            return
        fields = {
            "messages": [{"role": "user", "content": "."}],
            "max_tokens": 1,
            "cache_prompt": False,
            "id_slot": number,
        }
        await self._ask("POST", "/v1/chat/completions", WIPE_SECONDS, fields)

    async def read_text(self, number: int | None, text: str, *, cache_prompt: bool = True) -> Any:
        """Have a bare text read, in a slot (None: of the server's choice); what it says of it."""
        fields = {"prompt": text, "n_predict": 1, "cache_prompt": cache_prompt}
        if number is not None:
            fields["id_slot"] = number
        return await self._ask("POST", "/completion", WIPE_SECONDS, fields)

    async def remembers(self, number: int) -> bool | None:
        """Whether a prompt that is overwritten in this slot comes back from memory; None: cannot be
        told. Leaves nothing behind, and nothing of what was there."""
        text = make_noise()
        try:
            await self.read_text(number, text)
            await self.read_text(number, ".", cache_prompt=False)
            answer = await self.read_text(number, text)
            await self.read_text(number, ".", cache_prompt=False)
        except UpstreamFault as fault:
            if fault.kind not in NO_SUCH_THING:
                raise
            return None
        timings = answer.get("timings") if isinstance(answer, dict) else None
        read = timings.get("prompt_n") if isinstance(timings, dict) else None
        return read <= _TOLD_APART if isinstance(read, int) else None

    async def is_unified(self) -> bool:
        """Whether its slots share one cache: each reports all of it."""
        try:
            answer = await self._ask("GET", "/v1/models", ASK_SECONDS)
            meta = answer["data"][0]["meta"]
            return bool(meta["n_ctx"] == meta["n_ctx_train"])
        except (UpstreamFault, LookupError, TypeError):
            return False


def make_noise() -> str:
    """A text that is like nothing else."""
    return " ".join(secrets.token_hex(2) for _ in range(_NOISE_WORDS))
