"""Backends of each kind before a server that plays what it is told."""

import warnings
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from gateway.backends.base import Backend, Call, Chunk, Purpose
from gateway.backends.cloud import Cloud
from gateway.backends.faults import UpstreamFault
from gateway.backends.llama_cpp import LlamaCpp
from gateway.wire.json_text import dump_bytes
from gateway.wire.replies import ReplyBuilder
from policies.schema import LiteLLMBackend, LlamaCppBackend, Timeouts
from tests.faults.server import FaultServer

KEY = "sk-of-the-gateway-123456"

SHORT = Timeouts(connect=1.0, first_token=0.2, idle=0.1, total=1.0)
"""Seconds: long enough for a loopback server that answers, short enough to be waited for."""

PATIENT = Timeouts(connect=5.0, first_token=10.0, idle=10.0, total=20.0)


def make_call(
    text: str = "hi", *, stream: bool = True, purpose: Purpose = "chat", **params: Any
) -> Call:
    message = dump_bytes({"role": "user", "content": text})
    return Call((message,), params, stream, 100, purpose, "r-1")


def make_llama(server: FaultServer, timeouts: Timeouts = PATIENT, **fields: Any) -> LlamaCpp:
    return LlamaCpp("local", LlamaCppBackend(url=server.url, timeouts=timeouts, **fields))


def make_cloud(
    server: FaultServer, model: str = "openai/m", timeouts: Timeouts = PATIENT, **fields: Any
) -> Cloud:
    base = server.url + ("" if model.startswith("gemini/") else "/v1")
    values = {"api_key": KEY, "api_base": base, "timeouts": timeouts, **fields}
    return Cloud("cloud", LiteLLMBackend(model=model, **values))


LITELLM_WARNS = pytest.mark.filterwarnings(
    "ignore::UserWarning:pydantic", "ignore::DeprecationWarning:litellm"
)
"""LiteLLM imports more of itself at its first calls; those warnings are left to its authors."""


async def take(backend: Backend, call: Call) -> tuple[ReplyBuilder, UpstreamFault | None]:
    """What a streamed call gave, and the fault that ended it."""
    builder = ReplyBuilder()
    try:
        async for chunk in backend.stream(call):
            assert isinstance(chunk, Chunk)
            builder.feed(chunk.parsed)
    except UpstreamFault as fault:
        return builder, fault
    return builder, None


async def take_whole(
    backend: Backend, call: Call
) -> tuple[ReplyBuilder | None, UpstreamFault | None]:
    """What a whole call gave, and the fault that it ended in."""
    try:
        answer = await backend.complete(call)
    except UpstreamFault as fault:
        return None, fault
    return ReplyBuilder.from_completion(answer.parsed), None


@pytest.fixture(scope="session")
def litellm_imported() -> None:
    """LiteLLM in memory, its warnings at import left to its authors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from gateway.backends.cloud import Library

        Library("openai/m")
        Library("gemini/gemini-3.5-flash")


@pytest_asyncio.fixture
async def server() -> AsyncIterator[FaultServer]:
    async with FaultServer() as server:
        yield server


@pytest.fixture(params=["llama_cpp", "openai", "deepseek"])
def make(request: pytest.FixtureRequest, server: FaultServer) -> Callable[..., LlamaCpp | Cloud]:
    """Makes a backend of one kind before the server."""
    if request.param == "llama_cpp":
        return lambda timeouts=PATIENT: make_llama(server, timeouts)
    request.getfixturevalue("litellm_imported")
    model = {"openai": "openai/m", "deepseek": "deepseek/deepseek-v4-flash"}[request.param]
    return lambda timeouts=PATIENT: make_cloud(server, model, timeouts)
