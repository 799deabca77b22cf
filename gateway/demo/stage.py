"""Everything the demonstration needs, put up in its order and taken down whatever happens."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai

from gateway.demo.gateway_server import GatewayServer
from gateway.demo.llama import LlamaInstall, LlamaServer
from gateway.demo.policy import SLOTS, WINDOW, write_policies
from gateway.demo.relay import RecordingRelay
from gateway.store.engine import Store

_PATIENCE_SECONDS = 180.0
_GLANCE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Stage:
    """Both servers running, a client before them, and the gateway's database to look into."""

    folder: Path
    llama: LlamaServer
    relay: RecordingRelay
    gateway: GatewayServer
    client: openai.AsyncOpenAI
    store: Store

    async def until_one_ends(self) -> str:
        """Wait until one of the two servers ends; which one it was."""
        servers = {"llama-server": self.llama.process, "the gateway": self.gateway.process}
        while True:
            for name, process in servers.items():
                if process is None or process.poll() is not None:
                    return name
            await asyncio.sleep(_GLANCE_SECONDS)


@asynccontextmanager
async def put_up(install: LlamaInstall, folder: Path) -> AsyncIterator[Stage]:
    """Start llama-server, the relay and the gateway, each on a free loopback port.

    folder: an existing one; policies, database, prompts and both logs go there and stay.
    Errors: LlamaFailed, GatewayFailed. Whatever was started is ended, in the reverse order.
    """
    async with AsyncExitStack() as opened:
        llama = await opened.enter_async_context(
            LlamaServer(
                install,
                window=WINDOW,
                slots=SLOTS,
                log=folder / "llama-server.log",
                patience=_PATIENCE_SECONDS,
            )
        )
        relay = await opened.enter_async_context(
            RecordingRelay(llama.url, folder / "prompts.jsonl")
        )
        policies = folder / "policies.yaml"
        policies.write_text(write_policies(relay.url), encoding="utf-8")
        gateway = await opened.enter_async_context(
            GatewayServer(
                policies=policies,
                folder=folder,
                log=folder / "gateway.log",
                patience=_PATIENCE_SECONDS,
            )
        )
        store = Store(gateway.database_url)
        opened.callback(store.close)
        # The gateway owns retries (law 12), and nothing of the environment leads elsewhere.
        client = openai.AsyncOpenAI(
            base_url=f"{gateway.url}/v1", api_key="any", max_retries=0, organization="", project=""
        )
        opened.push_async_callback(client.close)
        yield Stage(folder, llama, relay, gateway, client, store)


class Stopped(BaseException):
    """A signal ended the demonstration."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def run(main: Coroutine[Any, Any, int]) -> int:
    """Run to the end, or until Ctrl-C, SIGTERM or a closed terminal cancels it in order.

    Raises Stopped for a signal, once everything is taken down.
    """
    with asyncio.Runner() as runner:
        return runner.run(_until_signalled(main))


async def _until_signalled(main: Coroutine[Any, Any, int]) -> int:
    task = asyncio.ensure_future(main)
    with _signals(task) as caught:
        try:
            return await task
        except asyncio.CancelledError:
            if caught:
                raise Stopped(caught[0]) from None
            raise


@contextmanager
def _signals(task: asyncio.Task[int]) -> Iterator[list[int]]:
    """The first signal cancels the task; further ones change nothing: it is being taken down."""
    loop, caught = asyncio.get_running_loop(), list[int]()

    def stop(number: int) -> None:
        caught.append(number)
        if len(caught) == 1:
            task.cancel()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, stop, number)
    try:
        yield caught
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
