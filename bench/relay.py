"""The bare relay: what the gateway's own server stack costs without a gateway.

uvicorn, uvloop, httptools, FastAPI and aiohttp; the bytes of a request go up and those of the
answer come down, and nothing is looked at but `stream`. Run as `python -m bench.relay UPSTREAM`
(a URL); its first line of output is its port.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import uvicorn
import uvloop
from fastapi import FastAPI, Request
from starlette.responses import Response, StreamingResponse


def build_relay(upstream: str) -> FastAPI:
    """The relay as an ASGI application."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:
            app.state.session = session
            yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/v1/chat/completions")
    async def relay(request: Request) -> Response:
        body = await request.body()
        session: aiohttp.ClientSession = request.app.state.session
        answer = await session.post(
            upstream + "/v1/chat/completions",
            data=body,
            headers={"Content-Type": "application/json"},
        )
        if b'"stream":true' in body:
            return StreamingResponse(_pass_on(answer), media_type="text/event-stream")
        return Response(await answer.read(), media_type="application/json")

    return app


async def _pass_on(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    async with answer:
        async for data in answer.content.iter_any():
            yield data


async def _main(upstream: str) -> None:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            build_relay(upstream),
            http="httptools",
            ws="none",
            access_log=False,
            log_level="warning",
            timeout_keep_alive=75,
        )
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        await uvicorn.Server(config).serve(sockets=[listener])


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.Loop) as runner:
        runner.run(_main(sys.argv[1]))
