"""`foldgate serve`: the gateway on a port, one process."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import math
import platform
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click
import uvicorn
from sqlalchemy import make_url

from gateway.cli.arguments import Text
from gateway.cli.options import database_option, policies_option, settings_of
from gateway.errors import ConfigurationError
from gateway.logs import configure_logs
from gateway.store.postgres import place_of

if TYPE_CHECKING:
    from fastapi import FastAPI

    from gateway.backends.base import Backend
    from gateway.jobs.bells import Bells
    from gateway.settings import Settings

# What is cancelled gets this long to store how far it came.
_CLOSING_SECONDS = 5.0
_BACKLOG = 2048
# What a turn makes holds few cycles: looked for every 700 objects, as Python would, they take three
# hundredths of a turn.
_COLLECTED = (10_000, 20, 20)
# mallopt's parameters (malloc.h of glibc).
_M_ARENA_MAX, _M_TRIM_THRESHOLD = -8, -1


@click.command("serve")
@click.option("--host", type=Text(), metavar="H", help="The address to listen on [127.0.0.1].")
@click.option(
    "--port", metavar="N", type=click.IntRange(0, 65_535), help="The port [8400]; 0: any free one."
)
@policies_option
@database_option
def serve_command(
    host: str | None, port: int | None, policies: Path | None, database_url: str | None
) -> None:
    """Run the gateway until it is told to stop (Ctrl-C, SIGTERM)."""
    settings = settings_of(host=host, port=port, policies=policies, database_url=database_url)
    configure_logs(settings.log, settings.log_level)
    _give_memory_back()
    app = _build(settings)
    with _listening(settings) as listener:
        _run(app, settings, listener)


def _give_memory_back() -> None:
    """Where the C library is glibc: let the threads of the store share two heaps, else each keeps
    what it once needed; and give back at once what a long history took, else the library learns
    from it to keep as much. Some ten megabytes after one of 5,000 messages."""
    if platform.libc_ver()[0] == "glibc":
        library = ctypes.CDLL(None)
        library.mallopt(_M_ARENA_MAX, 2)
        library.mallopt(_M_TRIM_THRESHOLD, 128 * 1024)


def _build(settings: Settings) -> FastAPI:
    """The app. What is imported and built for it stays for ever, so the collector need not look
    at it: a tenth of the start, and of every later full collection."""
    gc.disable()
    from gateway.app import create_app

    app = create_app(settings)
    gc.freeze()
    gc.set_threshold(*_COLLECTED)
    gc.enable()
    return app


@contextlib.contextmanager
def _listening(settings: Settings) -> Iterator[socket.socket]:
    """The bound socket. Raises ConfigurationError where the address cannot be had."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.host, settings.port))
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {settings.host}:{settings.port}: {error.strerror or error}"
            ) from error
        yield listener


def _run(app: FastAPI, settings: Settings, listener: socket.socket) -> None:
    config = uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        # Run here, around the server: what stops the start is then raised here, in its own words.
        lifespan="off",
        access_log=False,
        log_config=None,
        log_level="warning",
        server_header=False,
        # Nothing here asks for a client's address.
        proxy_headers=False,
        backlog=_BACKLOG,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=math.ceil(settings.grace_seconds),
    )

    async def serve() -> None:
        async with app.router.lifespan_context(app):
            context, bells = app.state.context, app.state.bells
            await Server(config, settings, context.backends, bells).serve(sockets=[listener])

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(serve())


def _loop_factory() -> type[asyncio.AbstractEventLoop] | None:
    if sys.platform == "win32":
        return None
    import uvloop

    loop: type[asyncio.AbstractEventLoop] = uvloop.Loop
    return loop


class Server(uvicorn.Server):
    """uvicorn's server, which says where it is and ends in order on a signal.

    The first one: nothing new is begun, turns under way get `grace_seconds` to end, summaries
    `drain_seconds` beside them; what still runs then is stored or given back. A second one: at
    once. uvicorn raises a caught signal again when it is done, which would end the process before
    the store is closed.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        settings: Settings,
        backends: Mapping[str, Backend],
        bells: Bells,
    ) -> None:
        super().__init__(config)
        self._settings = settings
        self._backends = backends
        self._bells = bells

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self.should_exit:
            self.should_exit = True
            self._bells.drain(self._settings.drain_seconds)
            return
        self.force_exit = True
        self._bells.drain(0)
        for task in list(self.server_state.tasks):
            task.cancel(msg="told twice to stop")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Here, where a second signal is still heard, and not in the lifespan."""
        await super().shutdown(sockets)
        await self._bells.stop()
        if tasks := list(self.server_state.tasks):
            await asyncio.wait(tasks, timeout=_CLOSING_SECONDS)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        host, port = (sockets or [])[0].getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        click.echo(f"Foldgate listens on http://{shown}:{port}/v1")
        click.echo(f"policies: {self._settings.policies.resolve()}   data: {self._place()}")
        click.echo(f"backends: {self._name_backends()}   whether they answer: foldgate doctor")
        if not self._settings.keys:
            click.echo("no keys are set: whoever is on this machine is `local`")
        sys.stdout.flush()

    def _place(self) -> str:
        """Where the data is, in full: started elsewhere the same words mean another file."""
        url = make_url(self._settings.database_url)
        if url.get_backend_name() == "sqlite" and url.database:
            return str(Path(url.database).resolve())
        return place_of(url)

    def _name_backends(self) -> str:
        on = [name for name, one in self._backends.items() if one.off_reason is None]
        off = [name for name in self._backends if name not in on]
        return ", ".join(on or ["none"]) + (f"   off: {', '.join(off)}" if off else "")
