"""The backend that ships with the product: no network, no model, and it misbehaves by default.

It is late, refuses a share of its summaries in the conversation's language and breaks off another
share in mid-sentence, as the policy file says; the rest are honest accounts (accounts.py), with
entries beside them of which some are not (scripted_frames.py). What it does depends on the seed,
the call's bytes and how often these bytes were asked, on nothing else.
"""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from gateway.backends.accounts import Task, mention, read_task, write_account
from gateway.backends.base import Call, Chunk, Completion, Health
from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.backends.scripted_frames import write_lists
from gateway.backends.scripted_texts import VOICES
from gateway.wire.json_text import dump_bytes, dumps, loads
from policies.language import language_of
from policies.schema import ScriptedBackend

BYTES_PER_TOKEN = 4
"""Its tokens: four bytes of UTF-8 each, about what tokenizers make of English (4) and Chinese (0.75
tokens a character)."""

PIECE_CHARS = 24
"""Characters of one chunk of a stream."""

REMEMBERED_CALLS = 4_096
"""How many different calls it counts repetitions of."""

Script = Callable[[Call], str]
Sleep = Callable[[float], Awaitable[None]]


class Scripted:
    """A Backend (base.py) without a model.

    script: what it answers in a chat (it may raise UpstreamFault); None: a short reply that takes
    up words of the newest message. summary_latency: seconds before a summary, None: as before a
    chat.
    sleep, now: the clock it is late by, and Unix time in seconds for `created`.
    """

    kind = "scripted"
    can_prefill = False
    slot_care = None
    local = True

    def __init__(
        self,
        name: str,
        config: ScriptedBackend,
        *,
        script: Script | None = None,
        summary_latency: float | None = None,
        sleep: Sleep = asyncio.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.name = name
        self.image_chars = config.image_chars
        self.window_tokens = config.window
        self.off_reason = config.off_reason
        self._config = config
        self._script = script
        self._summary_latency = config.latency if summary_latency is None else summary_latency
        self._sleep = sleep
        self._now = now
        self._asked: OrderedDict[bytes, int] = OrderedDict()

    async def start(self) -> None:
        """Nothing to open."""

    async def aclose(self) -> None:
        """Nothing to close."""

    async def health(self) -> Health:
        return Health(True)

    async def window(self) -> int | None:
        return self.window_tokens

    async def count_tokens(
        self, messages: Sequence[bytes], params: Mapping[str, Any] | None = None
    ) -> int | None:
        """The messages alone: what `params` would add, it never reads."""
        return _count(messages)

    async def prefill(self, call: Call) -> bool:
        """False: it reads in no time."""
        return False

    def dropped_params(self, params: dict[str, Any]) -> tuple[str, ...]:
        """None: it takes everything, and heeds max_tokens only."""
        return ()

    async def stream(self, call: Call) -> AsyncIterator[Chunk]:
        digest, text, finish = await self._answer(call)
        head = self._head(digest, "chat.completion.chunk")
        for place in range(0, len(text), PIECE_CHARS):
            piece = {"content": text[place : place + PIECE_CHARS]}
            delta = {"role": "assistant", **piece} if place == 0 else piece
            yield _chunk({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        ending = {"index": 0, "delta": {}, "finish_reason": finish}
        yield _chunk({**head, "choices": [ending]})
        yield _chunk({**head, "choices": [], "usage": _usage(call, text)})

    async def complete(self, call: Call) -> Completion:
        digest, text, finish = await self._answer(call)
        message = {"role": "assistant", "content": text}
        parsed = {
            **self._head(digest, "chat.completion"),
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": _usage(call, text),
        }
        return Completion(dump_bytes(parsed), parsed)

    async def _answer(self, call: Call) -> tuple[bytes, str, str]:
        """(a digest that names the answer, its text, its finish_reason), after the latency."""
        self._check_window(call)
        digest = self._draw(call)
        is_memory = call.purpose in ("summary", "gist")
        await self._sleep(self._summary_latency if is_memory else self._config.latency)
        if is_memory:
            text, finish = self._summarize(call, digest)
        else:
            text, finish = self._reply(call, digest), "stop"
        most = call.max_tokens * BYTES_PER_TOKEN
        if len(encoded := text.encode("utf-8", "surrogatepass")) > most:
            text, finish = encoded[:most].decode("utf-8", "ignore"), "length"
        if not text.strip():
            what = f"The backend {self.name} reported success with nothing in the answer"
            raise UpstreamFault(FaultKind.EMPTY, what)
        return digest, text, finish

    def _check_window(self, call: Call) -> None:
        prompt, window = _count(call.messages), self.window_tokens
        if window is not None and prompt >= window:
            what = f"The backend {self.name} cannot hold {prompt} tokens in a window of {window}"
            raise UpstreamFault(
                FaultKind.OVERFLOW, what, prompt_tokens=prompt, window_tokens=window
            )

    def _draw(self, call: Call) -> bytes:
        """16 bytes that decide everything about this answer."""
        content = hashlib.blake2b(call.purpose.encode(), digest_size=16)
        for message in call.messages:
            content.update(message)
        asked = content.digest()
        number = self._asked.pop(asked, 0)
        self._asked[asked] = number + 1
        if len(self._asked) > REMEMBERED_CALLS:
            self._asked.popitem(last=False)
        drawn = hashlib.blake2b(asked, digest_size=16)
        drawn.update(b"%d/%d" % (self._config.seed, number))
        return drawn.digest()

    def _reply(self, call: Call, digest: bytes) -> str:
        if self._script is not None:
            return self._script(call)
        newest = _read_newest(call.messages)
        language = language_of(newest) or "en"
        voice, words = VOICES[language], mention(newest, language)
        if not words:
            return _pick(voice.bare, digest)
        return _pick(voice.replies, digest).format(a=words[0], b=words[-1])

    def _summarize(self, call: Call, digest: bytes) -> tuple[str, str]:
        task = read_task(_read_newest(call.messages), notes=call.purpose == "gist")
        share = int.from_bytes(digest[:4]) / 2**32 * 100
        refusals, truncations = self._config.refusals, self._config.truncations
        if share < refusals:
            return self._refuse(call, task, digest), "stop"
        text = _frame(call, write_account(task), task, digest)
        if share < refusals + truncations:
            return text[: max(1, len(text) * (40 + digest[5] % 50) // 100)], "length"
        return text, "stop"

    def _refuse(self, call: Call, task: Task, digest: bytes) -> str:
        """A refusal in the conversation's language, outside the frame or, as a grammar forces
        models to, inside it."""
        text = _pick(VOICES[task.language].refusals, digest)
        return _frame(call, text) if digest[6] % 2 else text

    def _head(self, digest: bytes, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{digest.hex()}",
            "object": kind,
            "created": int(self._now()),
            "model": self.name,
        }


def _pick(choices: Sequence[str], digest: bytes) -> str:
    return choices[int.from_bytes(digest[8:12]) % len(choices)]


def _count(messages: Sequence[bytes]) -> int:
    return sum(len(message) for message in messages) // BYTES_PER_TOKEN + 1


def _usage(call: Call, text: str) -> dict[str, int]:
    prompt = _count(call.messages)
    # Rounded up, so that a reply cut at max_tokens says no more than that.
    reply = -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": reply,
        "total_tokens": prompt + reply,
    }


def _chunk(parsed: dict[str, Any]) -> Chunk:
    return Chunk(dump_bytes(parsed), parsed)


def _read_newest(messages: Sequence[bytes]) -> str:
    """The text of the newest user message."""
    for message in reversed(messages):
        parsed = loads(message)
        if parsed.get("role") == "user":
            return _read_text(parsed.get("content"))
    return ""


def _read_text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _frame(call: Call, text: str, task: Task | None = None, digest: bytes = b"") -> str:
    """The JSON frame that the call asks for: the first key of its schema, else `chapter`, and the
    lists that it names. Without a task the lists are left out."""
    schema = call.params.get("response_format") or {}
    named = ((schema.get("json_schema") or {}).get("schema") or {}).get("properties") or {}
    lists = write_lists(task, digest) if task is not None and "facts" in named else {}
    return dumps({next(iter(named), "chapter"): text, **lists})
