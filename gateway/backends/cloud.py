"""Cloud models through LiteLLM, which writes the requests; the answers are read off the wire.

LiteLLM (1.110) is imported on first use, in a thread: that takes 4 s and 190 MB. It names the
address, signs, and brings the parameters into each provider's form. Where a provider speaks
OpenAI's chat completions the answer is read from the tap (tap.py) by the reader that reads
llama.cpp's; where it speaks its own format (Gemini) LiteLLM translates and the tap's evidence
corrects it.
"""

import asyncio
import logging
import os
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from gateway.backends.answers import AnswerReader, choose_wait
from gateway.backends.base import Call, Chunk, Completion, Health
from gateway.backends.cache_marks import cache_options, mark_prefix
from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.backends.veil import complete_veiled, stream_veiled
from gateway.backends.waits import Waits
from gateway.backends.whole_answers import check_completion, read_completion
from gateway.wire.json_text import dump_bytes, loads
from policies.messages import whole_letters
from policies.schema import LiteLLMBackend

if TYPE_CHECKING:
    from gateway.backends.tap import Tap

ALLOWED = frozenset(
    {
        "audio",
        "frequency_penalty",
        "function_call",
        "functions",
        "logit_bias",
        "logprobs",
        "modalities",
        "n",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "prompt_cache_key",
        "reasoning_effort",
        "response_format",
        "safety_identifier",
        "seed",
        "service_tier",
        "stop",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "user",
        "verbosity",
        "web_search_options",
    }
)
"""OpenAI's parameters. No other field reaches LiteLLM, which would obey api_base, api_key,
extra_headers, mock_response, fallbacks and many more."""

MANAGED = frozenset(
    {"messages", "model", "stream", "stream_options", "max_tokens", "max_completion_tokens"}
)
"""Fields that the gateway decides; they are not reported as dropped."""

BY_HTTP_HANDLER = frozenset(
    {
        "anthropic",
        "azure_ai",
        "cohere_chat",
        "deepseek",
        "fireworks_ai",
        "gemini",
        "groq",
        "hosted_vllm",
        "minimax",
        "mistral",
        "ollama_chat",
        "openrouter",
        "together_ai",
        "xai",
    }
)
BY_OPENAI_CLIENT = frozenset(
    {
        "cerebras",
        "dashscope",
        "deepinfra",
        "github",
        "lm_studio",
        "moonshot",
        "novita",
        "nvidia_nim",
        "openai",
        "perplexity",
        "sambanova",
        "vercel_ai_gateway",
        "volcengine",
        "zai",
    }
)
"""Which kind of client LiteLLM takes for a provider, measured with 1.110.2. For any other provider
there is no tap: LiteLLM's own words are all there is."""

UNHEALTHY_SECONDS = 10.0
"""How long a refused key or an unreachable provider counts as unhealthy."""

_ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_MODE": "PRODUCTION",
    "LITELLM_OFFLINE_MODE": "true",
    "LITELLM_TELEMETRY": "False",
}


class Cloud:
    """A Backend (base.py) behind LiteLLM. `clock`: monotonic seconds, for the health cache."""

    kind = "litellm"
    can_prefill = False
    slot_care = None
    local = False

    def __init__(
        self, name: str, config: LiteLLMBackend, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.name = name
        self.image_chars = config.image_chars
        self.window_tokens: int | None = config.window
        self.off_reason = config.off_reason
        self._config = config
        self._clock = clock
        key = config.api_key.get_secret_value() if config.api_key else ""
        self._secrets = (key,) if key else ()
        self._loaded: Library | None = None
        self._loading = asyncio.Lock()
        self._trouble: tuple[float, str] | None = None

    async def start(self) -> None:
        """Nothing is opened: LiteLLM comes with the first call."""

    async def aclose(self) -> None:
        if self._loaded is not None:
            await self._loaded.wire.aclose()
            self._loaded = None

    async def health(self) -> Health:
        if self.off_reason is not None:
            return Health(False, self.off_reason)
        if self._trouble is not None and self._clock() - self._trouble[0] < UNHEALTHY_SECONDS:
            return Health(False, self._trouble[1])
        return Health(True)

    async def window(self) -> int | None:
        return self.window_tokens

    async def count_tokens(
        self, messages: Sequence[bytes], params: Mapping[str, Any] | None = None
    ) -> int | None:
        """None: LiteLLM's counter is a guess that blocks the event loop (56 to 330 ms for 200k
        tokens) and may download images."""
        return None

    async def prefill(self, call: Call) -> bool:
        """False: a provider's cache is filled by paid calls alone."""
        return False

    def dropped_params(self, params: dict[str, Any]) -> tuple[str, ...]:
        """As Backend.dropped_params. What this provider does not support is known once LiteLLM is
        loaded, which is before the first chunk of the first call."""
        passed = self._pass(params)
        return tuple(sorted(key for key in params if key not in passed and key not in MANAGED))

    def _pass(self, params: dict[str, Any]) -> dict[str, Any]:
        allowed = ALLOWED if self._loaded is None else ALLOWED & self._loaded.supported
        return {k: v for k, v in params.items() if k in allowed and v is not None}

    # --- calls -----------------------------------------------------------------------------------

    def stream(self, call: Call) -> AsyncIterator[Chunk]:
        return stream_veiled(self._stream, call) if call.mask else self._stream(call)

    async def complete(self, call: Call) -> Completion:
        if call.mask:
            return await complete_veiled(self._complete, call)
        return await self._complete(call)

    async def _stream(self, call: Call) -> AsyncGenerator[Chunk, None]:
        tap = await self._open(call)
        try:
            reply = await self._ask(call, tap)
            async with aclosing(self._choose_answer(reply, tap)) as answer:
                async for chunk in answer:
                    yield chunk
        except UpstreamFault as fault:
            self._note(fault)
            raise
        finally:
            await tap.hang_up()

    async def _complete(self, call: Call) -> Completion:
        tap = await self._open(call)
        try:
            reply = await self._ask(call, tap)
            return self._check(reply, tap)
        except UpstreamFault as fault:
            self._note(fault)
            raise
        finally:
            await tap.hang_up()

    def _choose_answer(self, reply: Any, tap: "Tap") -> AsyncGenerator[Chunk, None]:
        if tap.is_chat and tap.is_open:
            return self._read(tap)
        return self._library.translate(self.name, reply, tap, self._secrets)

    async def _read(self, tap: "Tap") -> AsyncGenerator[Chunk, None]:
        """The chunks of an answer in OpenAI's format, off the wire."""
        reader = AnswerReader(self.name, self._secrets)
        while not reader.done:
            try:
                wait = choose_wait(self._config.timeouts, reader)
                data = await tap.read(wait, reader.course.started)
            except UpstreamFault as fault:
                chunks = reader.break_off(fault)
            else:
                chunks = reader.feed(data) if data else reader.close()
            for chunk in chunks:
                yield chunk
            if reader.fault is not None:
                raise reader.fault

    def _check(self, reply: Any, tap: "Tap") -> Completion:
        if tap.is_chat and tap.body is not None:
            return read_completion(self.name, tap.body, self._secrets)
        if tap.body is not None and (fault := tap.take_evidence()):
            raise fault
        parsed = self._library.read_translated(reply, tap)
        return check_completion(self.name, dump_bytes(parsed), parsed, self._secrets)

    async def _open(self, call: Call) -> "Tap":
        if self.off_reason is not None:
            raise UpstreamFault(
                FaultKind.AUTH, f"The backend {self.name} is off: {self.off_reason}"
            )
        async with self._loading:
            if self._loaded is None:
                self._loaded = await asyncio.to_thread(Library, self._config.model)
        now = asyncio.get_running_loop().time()
        limit = None if call.stream else call.deadline
        return self._loaded.make_tap(
            self._loaded.wire,
            self.name,
            self._config.timeouts,
            stream=call.stream,
            waits=Waits(self._config.timeouts, now, limit),
            secrets=self._secrets,
        )

    @property
    def _library(self) -> "Library":
        if self._loaded is None:
            raise RuntimeError("LiteLLM is loaded by the first call")
        return self._loaded

    async def _ask(self, call: Call, tap: "Tap") -> Any:
        """LiteLLM's answer to a call. Where the wire shows a better one, an error of LiteLLM's own
        making is no error. Raises UpstreamFault."""
        library, config = self._library, self._config
        key = config.api_key.get_secret_value() if config.api_key else None
        options: dict[str, Any] = {"stream_options": {"include_usage": True}} if call.stream else {}
        if config.api_base is not None:
            options["api_base"] = config.api_base
        try:
            reply = await library.litellm.acompletion(
                model=config.model,
                messages=self._messages(call, library.provider),
                api_key=key,
                client=library.make_client(tap, key, config.api_base),
                stream=call.stream,
                max_tokens=call.max_tokens,
                timeout=config.timeouts.total,
                max_retries=0,
                num_retries=0,
                drop_params=True,
                **self._pass(call.params),
                **cache_options(library.provider, call),
                **options,
            )
        except Exception as error:  # of a library with a hundred providers
            if tap.fault is None and tap.is_chat and (tap.body is not None or tap.is_open):
                return None
            if tap.fault is not None:
                raise tap.fault from None  # the wire said it better, and without a prompt in it
            raise library.explain(self.name, error, self._secrets) from error
        if tap.fault is not None:
            raise tap.fault
        return reply

    def _messages(self, call: Call, provider: str) -> list[dict[str, Any]]:
        decoded = self._decode(call.messages)
        mark_prefix(provider, self._config.model, call, decoded)
        return decoded

    def _decode(self, messages: Sequence[bytes]) -> list[dict[str, Any]]:
        decoded: list[dict[str, Any]] = [
            _complete(loads(message)) if _ESCAPED_SURROGATE.search(message) else loads(message)
            for message in messages
        ]
        if self._config.reasoning == "drop":
            for message in decoded:
                message.pop("reasoning_content", None)
                message.pop("reasoning", None)
        return decoded

    def _note(self, fault: UpstreamFault) -> None:
        if fault.kind in (FaultKind.AUTH, FaultKind.UNAVAILABLE):
            self._trouble = (self._clock(), fault.what)


_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def _complete(value: Any) -> Any:
    """A JSON value with U+FFFD for lone surrogates, which providers' clients cannot encode."""
    if isinstance(value, str):
        return whole_letters(value)
    if isinstance(value, list):
        return [_complete(item) for item in value]
    if isinstance(value, dict):
        return {key: _complete(item) for key, item in value.items()}
    return value


class Library:
    """LiteLLM and what stands on it, imported and set up; made in a thread (4 s, 190 MB)."""

    def __init__(self, model: str) -> None:
        os.environ.update(_ENVIRONMENT)
        import httpx
        import litellm
        import openai
        from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

        from gateway.backends.tap import Tap, Wire
        from gateway.backends.translation import explain, read_translated, translate

        self.litellm: Any = litellm
        self.make_tap = Tap
        self.translate, self.read_translated, self.explain = translate, read_translated, explain
        self._http_client: Any = httpx.AsyncClient  # openai's types name another httpx
        self._openai_client: Any = openai.AsyncOpenAI
        self._handler: Any = AsyncHTTPHandler
        logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)  # it warns with texts of prompts
        self.litellm.telemetry = False
        # Where a provider wants an image's bytes LiteLLM fetches it: from public addresses alone,
        # connected to as they were checked, each redirect as well.
        self.litellm.user_url_validation = True
        self.litellm.user_url_allowed_hosts = []
        self.litellm.suppress_debug_info = True
        self.litellm.drop_params = True
        self.litellm.num_retries = 0
        self.litellm.disable_streaming_logging = True
        self.wire = Wire()
        _, self.provider, _, self._address = self.litellm.get_llm_provider(model)
        supported = self.litellm.get_supported_openai_params(
            model=model, custom_llm_provider=self.provider
        )
        self.supported = frozenset(supported) if supported else ALLOWED

    def make_client(self, tap: "Tap", key: str | None, api_base: str | None) -> Any:
        """The client of one call, which sends through its tap; None where LiteLLM takes none."""
        if self.provider in BY_HTTP_HANDLER:
            handler = self._handler(transport=tap)
            handler.client = handler.client  # ours from here on: its finalizer leaves it alone
            return handler
        address = api_base or self._address
        if self.provider in BY_OPENAI_CLIENT and (address or self.provider == "openai"):
            return self._openai_client(
                api_key=key,
                base_url=address,
                http_client=self._http_client(transport=tap, trust_env=False),
                max_retries=0,
            )
        return None
