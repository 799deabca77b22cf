"""SIGTERM to a real process with a reply and a summary under way: nothing new is begun, the reply
ends, the summary ends or is given back, and it exits with 0. A second one does not wait."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
from aiohttp import web

from tests.e2e.running_gateway import RunningGateway
from tests.e2e.small_model import SmallModel, event
from tests.e2e.tales import tell

POLICIES = """
version: 1
backends:
  local: {{kind: llama_cpp, url: "{url}"}}
  scribe: {{kind: scripted, latency: {latency}, refusals: 0, truncations: 0}}
policies:
  small:
    view: {{start: 2000, ceiling: 5000, headroom: 800, keep: 400}}
    chapters: {{split: 1500, length: 150, stack: 600}}
    gist: {{length: 200}}
    summaries: {{backends: [scribe], delay: 0s}}
    recall: {{budget: 0}}
models:
  foldgate: {{tiers: [{{backend: local, policy: small}}]}}
"""

LONG: list[Any] = [
    {"role": ("user", "assistant")[n % 2], "content": tell(n, "ja") * 2 + tell(n + 50, "en")}
    for n in range(21)
]
"""A history beyond the start of folding: the first turn causes summaries."""

SLOW: list[Any] = [{"role": "user", "content": "Сколько стоит лампа? 🎉"}]
JOBS = "SELECT state, attempts, lease, lease_until_ms FROM jobs ORDER BY pk"


class Busy:
    """A gateway with a summary under way and a reply that streams until `go` is set."""

    def __init__(self, gateway: RunningGateway, client: openai.AsyncOpenAI) -> None:
        self.gateway = gateway
        self.client = client
        self.go = asyncio.Event()
        self.said = asyncio.Event()
        self.reply: asyncio.Task[tuple[str, str | None]] | None = None

    async def script(self, number: int, request: web.Request) -> web.StreamResponse | None:
        """The second request is the one that takes its time."""
        if number != 2:
            return None
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(event({"role": "assistant", "content": "Сто "}))
        await self.go.wait()
        await response.write(event({"content": "крон."}) + event({}, "stop") + b"data: [DONE]\n\n")
        return response

    async def begin(self) -> None:
        await self.client.chat.completions.create(model="foldgate", messages=LONG)
        while not self.gateway.one("SELECT count(*) FROM jobs WHERE state = 'leased'"):
            await asyncio.sleep(0.05)
        self.reply = asyncio.create_task(self._hear())
        await self.said.wait()

    async def _hear(self) -> tuple[str, str | None]:
        stream = await self.client.chat.completions.create(
            model="foldgate", messages=SLOW, stream=True
        )
        text, finish = "", None
        async for chunk in stream:
            text += chunk.choices[0].delta.content or ""
            finish = chunk.choices[0].finish_reason or finish
            self.said.set()
        return text, finish

    def send(self, number: int = signal.SIGTERM) -> None:
        assert self.gateway._process is not None
        self.gateway._process.send_signal(number)

    async def refused(self) -> None:
        """Until nobody listens any more: the signal was heard."""
        while True:
            try:
                async with httpx.AsyncClient() as client:
                    await client.get(f"{self.gateway.url}/healthz")
            except httpx.TransportError:
                return
            await asyncio.sleep(0.05)

    async def exit_code(self) -> int:
        assert self.gateway._process is not None
        return await asyncio.to_thread(self.gateway._process.wait, 120)


@asynccontextmanager
async def busy(folder: Path, *, latency: str, drain: str) -> AsyncIterator[Busy]:
    async with SmallModel() as model:
        gateway = RunningGateway(
            folder,
            POLICIES.format(url=model.url, latency=latency),
            environ={"FOLDGATE_DRAIN": drain, "FOLDGATE_GRACE": "100s"},
        )
        with gateway:
            async with openai.AsyncOpenAI(
                base_url=f"{gateway.url}/v1", api_key="any", max_retries=0, timeout=120
            ) as client:
                made = Busy(gateway, client)
                model.script = made.script
                await made.begin()
                yield made


async def test_the_reply_ends_and_the_summary_is_given_back(tmp_path: Path) -> None:
    async with busy(tmp_path, latency="90s", drain="0.2s") as house:
        house.send()
        await house.refused()
        while house.gateway.one("SELECT count(*) FROM jobs WHERE state = 'leased'"):
            await asyncio.sleep(0.05)
        # Given back while the reply still streams: another gateway has it already.
        assert house.reply is not None and not house.reply.done()
        (first, *_) = house.gateway.rows(JOBS)
        assert first == ("queued", 0, None, None)
        house.go.set()
        assert await house.reply == ("Сто крон.", "stop")
        assert await house.exit_code() == 0
        stored = "SELECT state, finish_reason FROM attempts ORDER BY pk"
        assert house.gateway.rows(stored)[1] == ("done", "stop")
        assert house.gateway.one("SELECT count(*) FROM boots") == 0
        assert house.gateway.one("SELECT count(*) FROM jobs WHERE state = 'leased'") == 0


async def test_a_summary_that_ends_in_time_is_stored_and_no_other_is_begun(tmp_path: Path) -> None:
    async with busy(tmp_path, latency="3s", drain="60s") as house:
        waiting = house.gateway.one("SELECT count(*) FROM jobs WHERE state = 'queued'")
        assert waiting > 0, "more than one chapter is owed"
        house.send()
        house.go.set()
        assert house.reply is not None
        assert await house.reply == ("Сто крон.", "stop")
        assert await house.exit_code() == 0
        states = [state for state, *_ in house.gateway.rows(JOBS)]
        assert states.count("done") >= 1 and set(states) == {"done", "queued"}
        written = house.gateway.one("SELECT count(*) FROM chapter_versions WHERE origin = 'model'")
        assert written == states.count("done")


async def test_a_second_signal_does_not_wait(tmp_path: Path) -> None:
    """The reply would stream for ever, and the summary has ten minutes left."""
    async with busy(tmp_path, latency="600s", drain="600s") as house:
        house.send()
        await house.refused()
        house.send()
        assert await house.exit_code() == 0
        assert house.reply is not None
        (done,) = await asyncio.gather(house.reply, return_exceptions=True)
        assert isinstance(done, Exception) or done[1] != "stop"
        kept = house.gateway.rows(
            "SELECT m.raw, m.partial FROM messages m JOIN attempts a ON a.reply_pk = m.pk"
            " ORDER BY a.pk DESC LIMIT 1"
        )
        assert [("Сто" in raw, partial) for raw, partial in kept] == [(True, 1)]
        assert house.gateway.one("SELECT count(*) FROM attempts WHERE state = 'running'") == 0
        (first, *_) = house.gateway.rows(JOBS)
        assert first == ("queued", 0, None, None)
