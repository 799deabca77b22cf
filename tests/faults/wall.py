"""The whole gateway before servers that break: what a client hears and what is stored.

A wall is the program as `create_app` makes it, with one backend, `upstream`, that stands before a
scripted server in one of three ways (llama.cpp directly; LiteLLM's two kinds of client), and a
second one, `spare`. Whatever the way, a test expects the same.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from sqlalchemy import Connection, text

from gateway.app import create_app
from gateway.settings import Settings
from tests.faults.server import (
    DONE,
    Exchange,
    FaultServer,
    answer,
    completion,
    delta,
    end,
    role,
    stream,
    usage,
)
from tests.gateway.databases import empty_database

WAYS = ("llama_cpp", "openai", "deepseek")
MODELS = {"openai": "openai/m", "deepseek": "deepseek/deepseek-v4-flash"}
KEY = "sk-of-the-gateway-123456"

PATIENT = "{connect: 5s, first_token: 10s, idle: 10s, total: 20s}"


def hasty(**seconds: str) -> str:
    """Timeouts of which these alone are short: whatever ends then, ended by them."""
    waits = {"connect": "5s", "first_token": "20s", "idle": "20s", "total": "40s"} | seconds
    if "total" in seconds:  # no wait may be longer than the whole
        waits = {name: wait for name, wait in waits.items() if name in (*seconds, "connect")}
    return "{" + ", ".join(f"{name}: {wait}" for name, wait in waits.items()) + "}"


POLICIES = """
version: 1
backends:
  upstream: {upstream}
  spare:
    kind: llama_cpp
    url: {spare}
    timeouts: {patient}
policies:
  plain: {{}}
  lenient: {{elsewhere: [refused, overflow]}}
  small:
    view: {{start: 3000, ceiling: 4000, headroom: 1200, keep: 600}}
    chapters: {{split: 1500, length: 100, stack: 600}}
    gist: {{length: 150}}
    summaries: {{delay: 1s, redraws: 1}}
  tale:
    chapters: {{length: 500}}
    gist: {{length: 250}}
    summaries: {{backends: [upstream], delay: 1s, redraws: 1}}
models:
  one: {{tiers: [{{backend: upstream, policy: plain}}]}}
  two:
    tiers: [{{backend: upstream, policy: plain}}, {{backend: spare, policy: small}}]
  lenient:
    tiers: [{{backend: upstream, policy: lenient}}, {{backend: spare, policy: small}}]
  small: {{tiers: [{{backend: upstream, policy: small}}]}}
"""


class SkippingClock:
    """The machine's clock; what a turn waits for because it was asked to is skipped and noted."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self.skipped: list[float] = []
        self.skips: frozenset[float] = frozenset()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + int(self.ahead * 1000)

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead

    async def sleep(self, seconds: float) -> None:
        if seconds in self.skips:
            self.skipped.append(seconds)
            self.ahead += seconds
            seconds = 0.0
        await asyncio.sleep(seconds)


@dataclass
class Heard:
    """What a client heard of one request, in full or as far as it stayed."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def data(self) -> list[str]:
        """The data of the events, in order."""
        blocks = self.body.decode().split("\n\n")
        return [block.removeprefix("data: ") for block in blocks if block.startswith("data: ")]

    @property
    def chunks(self) -> list[dict[str, Any]]:
        return [json.loads(data) for data in self.data if data != "[DONE]"]

    @property
    def is_done(self) -> bool:
        return self.data[-1:] == ["[DONE]"]

    @property
    def text(self) -> str:
        return "".join(self._each("content"))

    @property
    def ends(self) -> list[str]:
        """Every finish_reason that was told."""
        choices = [choice for chunk in self.chunks for choice in chunk.get("choices") or ()]
        return [choice["finish_reason"] for choice in choices if choice.get("finish_reason")]

    @property
    def error(self) -> dict[str, Any] | None:
        """The error, as a response or as the last event."""
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            last = self.chunks[-1] if self.chunks else {}
            return last.get("error")
        found: dict[str, Any] | None = self.json.get("error")
        return found

    def _each(self, key: str) -> list[str]:
        deltas = [
            choice.get("delta") or choice.get("message") or {}
            for chunk in (self.chunks or [self.json])
            for choice in chunk.get("choices") or ()
        ]
        return [delta[key] for delta in deltas if delta.get(key)]


class Visit:
    """One request under way on the bare ASGI surface: it can be listened to and left."""

    def __init__(self, app: FastAPI, body: dict[str, Any], headers: dict[str, str]) -> None:
        self.heard = Heard()
        self._news = asyncio.Event()
        self._left = asyncio.Event()
        self._said = [{"type": "http.request", "body": json.dumps(body).encode()}]
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/v1/chat/completions",
            "query_string": b"",
            "headers": [
                (b"host", b"localhost"),
                *((name.encode(), value.encode()) for name, value in headers.items()),
            ],
            "app": app,
        }
        self.work = asyncio.ensure_future(app(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        if self._said:
            return self._said.pop()
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.heard.status = message["status"]
            pairs = message["headers"]
            self.heard.headers = {name.decode(): value.decode() for name, value in pairs}
        else:
            self.heard.body += message.get("body", b"")
        self._news.set()

    async def hear(self, part: bytes) -> None:
        """Until this has been heard; at most 10 s."""
        async with asyncio.timeout(10):
            while part not in self.heard.body:
                self._news.clear()
                await self._news.wait()

    async def leave(self) -> None:
        """Close the connection; returns when the gateway is done with the request."""
        self._left.set()
        await asyncio.wait_for(asyncio.wait({self.work}), 10)


class Wall:
    """The gateway, the servers behind it, and eyes for its database."""

    def __init__(self, app: FastAPI, way: str, upstream: FaultServer, spare: FaultServer) -> None:
        self.app = app
        self.way = way
        self.upstream = upstream
        self.spare = spare
        self.context = app.state.context
        self.clock: SkippingClock = self.context.clock

    def visit(
        self, *said: str | dict[str, Any], id: str | None = "c", stream: bool = True, **more: Any
    ) -> Visit:
        """A request that has been sent off. Headers: `headers`; other fields go into the body."""
        headers = dict(more.pop("headers", {}))
        if id is not None:
            headers["x-conversation-id"] = id
        messages = [{"role": "user", "content": m} if isinstance(m, str) else m for m in said]
        body = {"model": "one", "stream": stream, "messages": messages, **more}
        return Visit(self.app, body, headers)

    async def ask(self, *said: str | dict[str, Any], **more: Any) -> Heard:
        """A request and all of its answer; a gateway that hangs fails the test after 10 s."""
        visit = self.visit(*said, **more)
        await asyncio.wait_for(visit.work, 10)
        return visit.heard

    def whole(
        self, said: str, reason: str | None = "stop", prompt: int = 11, **message: Any
    ) -> Exchange:
        """A whole answer as this way's server gives it: llama.cpp is asked for a stream always.

        prompt: the tokens that it says it read; message: more of the message.
        """
        if self.way == "llama_cpp":
            return stream(role(), delta(said, **message), end(reason), usage(prompt), DONE)
        told = completion(said, reason, **message)
        return answer(200, told | {"usage": {**told["usage"], "prompt_tokens": prompt}})

    # -- what is stored -----------------------------------------------------------------------

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        def run(connection: Connection) -> list[tuple[Any, ...]]:
            return [tuple(row) for row in connection.execute(text(sql))]

        found: list[tuple[Any, ...]] = self.context.store.reading(run)
        return found

    def attempts(self) -> list[tuple[Any, ...]]:
        """(backend, state, finish_reason, error) of each, oldest first."""
        return self.rows("SELECT backend, state, finish_reason, error FROM attempts ORDER BY pk")

    def messages(self) -> list[tuple[str, Any, int]]:
        """(role, content, partial) of each, oldest first."""
        rows = self.rows("SELECT role, raw, partial FROM messages ORDER BY pk")
        return [(role, json.loads(raw).get("content"), partial) for role, raw, partial in rows]

    def replies(self) -> list[tuple[Any, int]]:
        """(content, partial) of each stored reply."""
        return [(said, partial) for role, said, partial in self.messages() if role == "assistant"]

    # -- background work ----------------------------------------------------------------------

    async def run_jobs(self, later: float = 60.0) -> int:
        """Let time pass and run what has become due; the round of the start is over then."""
        upkeep = self.app.state.upkeep
        async with asyncio.timeout(10):
            while upkeep._is_pumping:
                await asyncio.sleep(0.001)
        self.clock.ahead += later
        ended: int = await upkeep.run_due()
        return ended


def backend_config(way: str, url: str, timeouts: str, fields: str = "") -> str:
    """`upstream` of a policies file, reached in this way."""
    if way == "llama_cpp":
        return f'{{kind: llama_cpp, url: "{url}", timeouts: {timeouts}{fields}}}'
    model, base = MODELS[way], f"{url}/v1"
    return (
        f'{{kind: litellm, model: {model}, api_key: {KEY}, api_base: "{base}", '
        f"strict_roles: false, timeouts: {timeouts}{fields}}}"
    )


Builder = Callable[..., Any]


@asynccontextmanager
async def build_wall(
    folder: Path,
    way: str,
    *,
    timeouts: str = PATIENT,
    fields: str = "",
    local: str = "",
    cloud: str = "",
    policies: Callable[[str], str] = lambda text: text,
    **settings: Any,
) -> AsyncIterator[Wall]:
    """A wall that stands. fields: more of the upstream's own, local and cloud: of one kind's;
    policies: edits the file's text; settings: of the program."""
    fields += local if way == "llama_cpp" else cloud
    async with FaultServer() as upstream, FaultServer() as spare:
        for server in (upstream, spare):
            server.routes["/health"] = answer(200, {"status": "ok"})
        file = folder / "policies.yaml"
        written = POLICIES.format(
            upstream=backend_config(way, upstream.url, timeouts, fields),
            spare=f'"{spare.url}"',
            patient=PATIENT,
        )
        file.write_text(policies(written))
        (folder / "wall.db").write_bytes(empty_database())
        database = f"sqlite:///{folder / 'wall.db'}"
        given = Settings(policies=file, database_url=database, **settings)
        app = create_app(given, clock=SkippingClock())
        async with app.router.lifespan_context(app):
            yield Wall(app, way, upstream, spare)
