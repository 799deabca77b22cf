"""Slots of a real llama-server: pinned, wiped, probed, read ahead, and many clients on few."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, aclosing
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bench.hammer import MODES, _chunks, _tokens, hammer
from bench.hammer_proof import Reply, Token, prove
from gateway.backends.base import Call, Purpose
from gateway.backends.llama_cpp import LlamaCpp
from gateway.demo.llama import LlamaInstall, LlamaServer
from gateway.wire.replies import ReplyBuilder
from policies.schema import LlamaCppBackend

Start = Callable[..., AbstractAsyncContextManager[LlamaServer]]

HERONS = "The ranger walked along the river and counted the herons. "
OWLS = "雨の夜、灯台守は古い日誌を読んだ。 Сова молчала. "


def call_of(
    conversation: str | None,
    text: str,
    purpose: Purpose = "chat",
    *,
    max_tokens: int = 4,
    **more: Any,
) -> Call:
    message = json.dumps({"role": "user", "content": text}).encode()
    return Call(
        (message,),
        {"temperature": 0, **more},
        True,
        max_tokens,
        purpose,
        "r",
        conversation=conversation,
    )


async def ask(backend: LlamaCpp, call: Call) -> tuple[int | None, int | None]:
    """The slot that served it, and the tokens that it used again."""
    builder = ReplyBuilder()
    async for chunk in backend.stream(call):
        builder.feed(chunk.parsed)
    return call.trace.slot, builder.cached_tokens


def open_backend(server: LlamaServer, slots: str) -> LlamaCpp:
    config = LlamaCppBackend.model_validate({"url": server.url, "slots": slots})
    return LlamaCpp("local", config)


async def test_pinned_slots_keep_their_conversations_and_a_deleted_one_leaves_nothing(
    start_llama: Start,
) -> None:
    async with start_llama(window=1024, slots=2, pinned=True) as server:
        backend = open_backend(server, "pinned")
        assert await backend.window() == 1024
        assert await backend.slot_care.check() == ()
        herons, owls = HERONS * 8, OWLS * 4
        # The probe left a dot in one slot: that template's beginning may be used again.
        slot, first = await ask(backend, call_of("a", herons))
        other, _ = await ask(backend, call_of("b", owls))
        assert first is not None and first < 40
        assert {slot, other} == {0, 1}
        again = await ask(backend, call_of("a", herons))
        assert again[0] == slot and again[1] is not None and again[1] > 80
        # Deleted and wiped: whoever sends the same text finds nothing of it.
        backend.slot_care.forget("a")
        await backend.slot_care.wipe()
        taken, cached = await ask(backend, call_of("c", herons))
        assert taken == slot and cached is not None and cached < 40
        kept = await ask(backend, call_of("b", owls))
        assert kept[0] == other and kept[1] is not None and kept[1] > 80
        await backend.aclose()


@pytest.mark.parametrize(
    ("slots", "pinned", "said"),
    [
        ("pinned", False, "start it with --cache-ram 0"),
        ("shared", False, "those of deleted conversations too"),
        ("shared", True, "keeps no prompts in memory"),
    ],
)
async def test_the_check_sees_the_cache_in_memory(
    start_llama: Start, slots: str, pinned: bool, said: str
) -> None:
    async with start_llama(window=512, slots=2, pinned=pinned) as server:
        backend = open_backend(server, slots)
        await backend.window()
        (caution,) = await backend.slot_care.check()
        assert said in caution
        await backend.aclose()


async def test_every_idle_shared_slot_is_wiped(start_llama: Start) -> None:
    async with start_llama(window=1024, slots=2, pinned=True) as server:
        backend = open_backend(server, "shared")
        await backend.window()
        for text in (HERONS * 8, OWLS * 4):
            await ask(backend, call_of(text[:3], text))
        backend.slot_care.forget("The")
        await backend.slot_care.wipe()
        for text in (HERONS * 8, OWLS * 4):
            _, cached = await ask(backend, call_of("c", text))
            assert cached is not None and cached < 40
        await backend.aclose()


async def test_what_was_read_ahead_is_used_by_the_turn(start_llama: Start) -> None:
    async with start_llama(window=1024, slots=2, pinned=True) as server:
        backend = open_backend(server, "pinned")
        assert await backend.prefill(call_of("a", HERONS * 8 + "…", "prefill"))
        slot, cached = await ask(backend, call_of("a", HERONS * 8 + "Go on."))
        assert slot == 0
        assert cached is not None and cached > 80
        await backend.aclose()


async def test_a_turn_drops_what_is_being_read_ahead(start_llama: Start) -> None:
    async with start_llama(window=2048, slots=1, pinned=True) as server:
        backend = open_backend(server, "pinned")
        long = HERONS * 140
        reading = asyncio.create_task(backend.prefill(call_of("a", long, "prefill")))
        while not any(slot.is_busy for slot in await backend.slot_care.read_slots()):
            await asyncio.sleep(0.01)
        assert (await ask(backend, call_of("b", "Hello.")))[0] == 0
        assert await reading is False
        await backend.aclose()


async def test_a_slot_is_free_again_after_a_client_left(start_llama: Start) -> None:
    async with start_llama(window=1024, slots=1, pinned=True) as server:
        backend = open_backend(server, "pinned")
        call = call_of("a", "Tell a long story.", max_tokens=900, ignore_eos=True)
        async with aclosing(backend.stream(call)) as chunks:
            await anext(chunks)
        async with asyncio.timeout(30):
            assert (await ask(backend, call_of("b", "Hello.")))[0] == 0
        assert not any(slot.is_busy for slot in await backend.slot_care.read_slots())
        assert backend.slot_care.in_flight() == 0
        await backend.aclose()


async def test_the_proof_finds_what_pinning_beside_a_cache_in_memory_does(
    llama_install: LlamaInstall, start_llama: Start, tmp_path: Path
) -> None:
    """The failure that all this keeps away is real: a prompt that the server kept in memory is
    loaded into the slot in which another's reply is being written."""
    owls = {"role": "user", "content": "Sulmek sells owls. " * 20}
    name = {"role": "user", "content": "My name is Vorlin. Say my name, then say hello to me."}
    async with (
        start_llama(window=1024, slots=2, pinned=False) as server,
        aiohttp.ClientSession(server.url) as session,
    ):
        await say_in_slot_0(session, owls)
        began = asyncio.Event()
        reply = asyncio.create_task(say_in_slot_0(session, name, began))
        await began.wait()
        await say_in_slot_0(session, owls)
        tokens, prompt_tokens = await reply
    said = Reply("Vorlin", (name,), tokens, prompt_tokens)
    proof = await prove(
        llama_install, [said], {"Vorlin", "Sulmek"}, window=1024, log=tmp_path / "proof.log"
    )
    assert len(proof.foreign) == 1, said.text


async def say_in_slot_0(
    session: aiohttp.ClientSession, message: dict[str, str], began: asyncio.Event | None = None
) -> tuple[tuple[Token, ...], int]:
    """A reply's tokens and the tokens of its prompt; began: set at its first token."""
    body = {
        "messages": [message],
        "max_tokens": 16,
        "temperature": 0,
        "logprobs": True,
        "top_logprobs": 1,
        "stream": True,
        "stream_options": {"include_usage": True},
        "id_slot": 0,
    }
    tokens: list[Token] = []
    prompt_tokens = 0
    async with session.post("/v1/chat/completions", json=body) as answer:
        async for chunk in _chunks(answer):
            tokens += _tokens(chunk)
            prompt_tokens = (chunk.get("usage") or {}).get("prompt_tokens", prompt_tokens)
            if tokens and began is not None:
                began.set()
    return tuple(tokens), prompt_tokens


@pytest.mark.parametrize("mode", MODES)
async def test_nothing_foreign_and_nothing_lost_under_many_clients(
    llama_install: LlamaInstall, tmp_path: Path, mode: str
) -> None:
    """`make hammer` for a short while."""
    found = await hammer(llama_install, mode, clients=16, slots=2, seconds=15, folder=tmp_path)
    assert found["replies"] >= 5 and found["disconnects"] >= 1
    assert (found["foreign"], found["failures"], found["leaked_slots"]) == ([], [], 0)
    caught, tried = found["controls"]
    assert caught >= 0.5 * tried
