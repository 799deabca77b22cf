"""The whole program put together. `create_app` is the only place that constructs anything."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from importlib import import_module

from fastapi import FastAPI
from sqlalchemy import Connection
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.api import (
    chat,
    conversation_memory,
    conversations,
    documents,
    health,
    jobs,
    memories,
    memory_pins,
    metrics,
    models,
    policies,
)
from gateway.api.deps import Keyring
from gateway.api.door import Door
from gateway.api.errors import add_error_handlers
from gateway.api.watch import Watch
from gateway.backends.base import Backend
from gateway.clock import Clock, SystemClock
from gateway.flows.context import Context
from gateway.flows.upkeep import Upkeep
from gateway.jobs import leases
from gateway.jobs.bells import Bells
from gateway.meters import Meters
from gateway.policy_file import LoadedPolicies, find_cautions, load_policies
from gateway.settings import Settings
from gateway.store.boots import begin_boot, end_boot, living, record_revision
from gateway.store.documents import keep_policy_documents
from gateway.store.engine import Store
from gateway.traces import build_traces
from policies.schema import Backend as BackendConfig
from policies.schema import LiteLLMBackend, LlamaCppBackend, PolicyFile

log = logging.getLogger("foldgate.app")

_SURELY_A_KEY = 12
_JUDGING = ("policies.judge", "policies.gists", "policies.ledger.grounding")


class _App(FastAPI):
    """Chat requests go straight through the door to where they are served: the framework's router
    would take a twelfth of a turn, its other layers a fiftieth."""

    chats: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == chat.CHAT and scope["method"] == "POST":
            scope["app"] = self
            await self.chats(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def create_app(settings: Settings, *, clock: Clock | None = None) -> FastAPI:
    """The program as an ASGI application.

    Reads the policies file and makes every part; opens nothing yet: the lifespan opens the
    database (a failed migration ends the start), the backends and the background work.
    Raises PolicyFileError and ConfigurationError.
    """
    context = build_context(settings, clock or SystemClock())
    upkeep = Upkeep(context)
    bells = Bells(upkeep, context.clock)
    context.ring = bells.ring
    context.quiet = upkeep.notice_quiet
    context.stop_work = upkeep.forget
    app = _App(
        title="Foldgate",
        lifespan=_lifespan,
        # Their pages load scripts from elsewhere; the surface is in the README.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        # FastAPI's own spans and figures beside ours would look for an exporter at each request.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.context = context
    app.state.upkeep = upkeep
    app.state.bells = bells
    app.state.keyring = Keyring.of(settings)
    app.state.began_s = context.clock.now_ms() // 1_000
    door = partial(
        Door,
        body_limit=settings.body_limit,
        keyless=not settings.keys,
        watch=Watch(context.meters, context.traces),
    )
    app.add_middleware(door)
    app.chats = door(chat.serve_chat)
    add_error_handlers(app)
    for part in (
        chat,
        models,
        documents,
        conversation_memory,
        memory_pins,
        conversations,
        memories,
        jobs,
        policies,
        health,
        metrics,
    ):
        app.include_router(part.router)
    return app


def build_context(settings: Settings, clock: Clock) -> Context:
    """The parts that flows work with, none of them opened. Raises as create_app."""
    loaded = load_policies(settings.policies, settings.environ)
    meters = Meters()
    meters.expect(
        loaded.file.backends,
        ((t.backend, t.policy) for model in loaded.file.models.values() for t in model.tiers),
    )
    return Context(
        settings=settings,
        clock=clock,
        store=Store(settings.database_url, synchronous=settings.synchronous),
        policies=loaded,
        backends=build_backends(loaded.file, clock),
        boot=f"boot_{secrets.token_hex(8)}",
        meters=meters,
        traces=build_traces(settings.traces),
    )


def build_backends(file: PolicyFile, clock: Clock) -> Mapping[str, Backend]:
    """Every backend of a policies file by its name, not started."""
    return {name: _build_backend(name, config, clock) for name, config in file.backends.items()}


def _build_backend(name: str, config: BackendConfig, clock: Clock) -> Backend:
    """Each kind is imported only where the file names one: not everybody needs every client."""
    if isinstance(config, LlamaCppBackend):
        from gateway.backends.llama_cpp import LlamaCpp

        return LlamaCpp(name, config, clock=clock.monotonic)
    if isinstance(config, LiteLLMBackend):
        from gateway.backends.cloud import Cloud

        return Cloud(name, config)
    from gateway.backends.scripted import Scripted

    return Scripted(name, config)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with running(app.state.context, app.state.bells):
        yield


@asynccontextmanager
async def running(context: Context, bells: Bells) -> AsyncIterator[None]:
    """The program as it runs: store open, dead runs accounted for, backends started, bells
    ringing.

    Raises ConfigurationError where the database cannot be opened or brought up to date. Whatever
    was opened is closed, in the reverse order.
    """
    async with AsyncExitStack() as opened:
        opened.push_async_callback(asyncio.to_thread, context.traces.close)
        opened.callback(context.store.close)
        await asyncio.get_running_loop().run_in_executor(None, context.store.open)
        await _announce(context)
        opened.push_async_callback(context.store.write, end_boot, context.boot)
        for backend in context.backends.values():
            opened.push_async_callback(backend.aclose)
            await backend.start()
        opened.push_async_callback(context.lookups.aclose)
        opened.push_async_callback(context.slots.aclose)
        await context.slots.start()
        opened.push_async_callback(context.prefills.aclose)
        opened.push_async_callback(context.indexing.aclose)
        opened.push_async_callback(bells.stop)
        await bells.start()
        warming = asyncio.create_task(asyncio.to_thread(warm_judge))
        opened.push_async_callback(asyncio.wait, [warming])
        yield


def warm_judge() -> None:
    """Compile the judge's patterns, a sixth of a second, before the first text is read by them:
    that may be inside the transaction of a turn."""
    for name in _JUDGING:
        import_module(name)


async def _announce(context: Context) -> None:
    now_ms = context.clock.now_ms()
    database = context.store.database

    def begin(connection: Connection) -> int:
        running = partial(database.is_running, connection)
        process = database.process
        return begin_boot(connection, context.boot, process, is_running=running, now_ms=now_ms)

    ended = await context.store.write(begin)
    if ended:
        log.warning("%d replies were cut off when the gateway last stopped", ended)
    alive = await context.store.read(living)
    freed = await context.store.write(leases.free_dead, alive, now_ms)
    if freed:
        log.info("%d summaries were cut off when the gateway last stopped; queued again", freed)
    loaded = context.policies
    for sentence in find_cautions(loaded.file):
        log.info("%s", sentence)
    await context.store.write(keep_policy_documents, loaded.documents, now_ms)
    await context.store.write(record_revision, loaded.revision, _without_secrets(loaded), now_ms)


def _without_secrets(loaded: LoadedPolicies) -> str:
    """The file's text; a key that was written into it, where a ${VAR} belongs, is left out."""
    text = loaded.text
    keys = [
        ("api_key", getattr(backend, "api_key", None)) for backend in loaded.file.backends.values()
    ]
    keys += [one for lookup in loaded.file.lookups.values() for one in lookup.headers.items()]
    for name, key in keys:
        if key is None or not key.get_secret_value():
            continue
        secret = re.escape(key.get_secret_value())
        text = re.sub(rf"({re.escape(name)}[\"']?\s*:\s*[\"']?){secret}", r"\1[key]", text)
        if len(key.get_secret_value()) >= _SURELY_A_KEY:
            # Behind an anchor it may stand anywhere; a short one might be a common word.
            text = re.sub(secret, "[key]", text)
    return text
