"""A summarizer without a model that forgets at a known rate.

Of the statements that stand in what it reads it keeps each with one probability, drawn anew for
each text it writes; where the length asked for holds fewer, those are kept that were drawn first.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from gateway.backends.accounts import read_task
from gateway.backends.base import Call, Chunk, Completion, Health
from gateway.evals.forgetting.facts import Fact, fold_text, tell
from gateway.wire.json_text import dump_bytes, dumps, loads
from policies.retries import draw_share


class Keeper:
    """A Backend (base.py) that only summarizes. facts: every statement of the conversation; keep:
    the probability; seed: another one draws otherwise."""

    name = "keep"
    kind = "keep"
    local = True
    image_chars = 0
    can_prefill = False
    slot_care = None
    window_tokens: int | None = None
    off_reason: str | None = None

    def __init__(self, facts: Sequence[Fact], keep: float, seed: int) -> None:
        self._facts = [(fact, [fold_text(word) for word in fact.keys]) for fact in facts]
        self._keep = keep
        self._seed = seed

    async def start(self) -> None:
        """Nothing to open."""

    async def aclose(self) -> None:
        """Nothing to close."""

    async def health(self) -> Health:
        return Health(True)

    async def window(self) -> int | None:
        return None

    async def count_tokens(
        self, messages: Sequence[bytes], params: Mapping[str, Any] | None = None
    ) -> int | None:
        return None

    def dropped_params(self, params: dict[str, Any]) -> tuple[str, ...]:
        return ()

    async def prefill(self, call: Call) -> bool:
        return False

    async def stream(self, call: Call) -> AsyncIterator[Chunk]:
        """As one piece."""
        parsed = await self.complete(call)
        yield Chunk(parsed.data, parsed.parsed)

    async def complete(self, call: Call) -> Completion:
        task = read_task(loads(call.messages[-1])["content"], notes=call.purpose == "gist")
        text = self._write(call.request_id, fold_text(task.record), task.chars)
        message = {"role": "assistant", "content": dumps({"chapter": text})}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        parsed = {"object": "chat.completion", "model": self.name, "choices": [choice]}
        return Completion(dump_bytes(parsed), parsed)

    def _write(self, key: str, record: str, chars: int) -> str:
        drawn = [
            (draw_share(f"{self._seed}:{key}:{fact.number}"), fact)
            for fact, words in self._facts
            if all(word in record for word in words)
        ]
        drawn.sort(key=lambda pair: pair[0])
        kept = [fact for share, fact in drawn if share < self._keep]
        while len(text := tell(sorted(kept, key=lambda fact: fact.number))) > chars:
            kept.pop()
        return text
