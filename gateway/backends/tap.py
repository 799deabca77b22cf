"""What really came over the wire, seen below LiteLLM.

LiteLLM turns unknown ends (`insufficient_system_resource`, `error`, null) into `stop`, an error
body inside a 200 into an empty answer, a missing usage into figures of its own, and skips or
appends lines differently per provider (1.110, measured). So each call brings its own httpx
transport, which keeps what LiteLLM loses: status, headers and body of an error, the bytes of an
answer, the moments.

It also holds the call to one request: whatever a library retries on its own ends here.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpx

from gateway.backends.classification import classify_payload, classify_response
from gateway.backends.events import DATA, MAX_EVENT_BYTES, EventParser, EventTooLarge
from gateway.backends.faults import FaultKind, UpstreamFault, read_finish
from gateway.backends.waits import Stage, Waits
from gateway.redaction import redact
from gateway.wire.json_text import loads
from policies.schema import Timeouts

ERROR_BODY_BYTES = 65_536
ERROR_BODY_SECONDS = 5.0
_HOP_HEADERS = frozenset({"content-encoding", "content-length", "transfer-encoding", "connection"})


class Wire:
    """The connections of one backend, shared by its calls; proxies are the environment's."""

    def __init__(self) -> None:
        limits = httpx.Limits(
            max_connections=None, max_keepalive_connections=32, keepalive_expiry=30.0
        )
        context = httpx.create_ssl_context(trust_env=False)
        self._direct = httpx.AsyncHTTPTransport(verify=context, limits=limits, trust_env=False)
        self._proxied = {
            scheme: httpx.AsyncHTTPTransport(
                verify=context, limits=limits, trust_env=False, proxy=address
            )
            for scheme, address in getproxies().items()
            if scheme in ("http", "https") and address.startswith("http")
        }

    def choose(self, url: httpx.URL) -> httpx.AsyncBaseTransport:
        """The transport that reaches an address."""
        proxied = self._proxied.get(url.scheme)
        return self._direct if proxied is None or proxy_bypass(url.host) else proxied

    async def aclose(self) -> None:
        for transport in (self._direct, *self._proxied.values()):
            await transport.aclose()


class Tap(httpx.AsyncBaseTransport):
    """The transport of one call, which takes as long as `waits` allow.

    `fault`: what went wrong, classified from the wire. `is_chat`: the provider speaks OpenAI's chat
    completions, so that the answer can be read from here. `body`: of a whole answer. `evidence`:
    of a streamed answer in a provider's own format, as far as it has been read.
    """

    def __init__(
        self,
        wire: Wire,
        backend: str,
        timeouts: Timeouts,
        *,
        stream: bool,
        waits: Waits,
        secrets: tuple[str, ...] = (),
    ) -> None:
        self.fault: UpstreamFault | None = None
        self.is_chat = False
        self.body: bytes | None = None
        self.evidence = Evidence(backend, secrets)
        self._wire = wire
        self._backend = backend
        self._timeouts = timeouts
        self._stream = stream
        self._waits = waits
        self._secrets = secrets
        self._asked = False
        self._response: httpx.Response | None = None
        self._pieces: AsyncIterator[bytes] | None = None

    @property
    def is_open(self) -> bool:
        """Whether a streamed answer has begun and can be read."""
        return self._pieces is not None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send the call's one request; the response as LiteLLM is to see it."""
        if self._asked:
            raise httpx.ReadError("this call has had its one request")
        self._asked = True
        self.is_chat = request.url.path.endswith("/chat/completions")
        response = await self._send(request)
        headers = [(k, v) for k, v in response.headers.items() if k.lower() not in _HOP_HEADERS]
        if response.is_success and self._stream:
            self._pieces = response.aiter_bytes()
            return httpx.Response(200, headers=headers, stream=_Passed(self), request=request)
        if response.is_success:
            body = self.body = await self._read_rest(response)
        else:
            body = await self._read_error(response)
            self.fault = classify_response(
                self._backend,
                response.status_code,
                body,
                response.headers,
                secrets=self._secrets,
            )
        return httpx.Response(response.status_code, headers=headers, content=body, request=request)

    async def _send(self, request: httpx.Request) -> httpx.Response:
        """The provider's response, undecoded bytes behind it."""
        request.extensions["timeout"] = {"connect": self._timeouts.connect}
        try:
            async with asyncio.timeout_at(self._first_moment()):
                raw = await self._wire.choose(request.url).handle_async_request(request)
        except (TimeoutError, httpx.HTTPError, OSError) as error:
            raise self._end(self._explain(error)) from error
        self._response = httpx.Response(
            raw.status_code, headers=raw.headers, stream=raw.stream, request=request
        )
        return self._response

    def _first_moment(self) -> float:
        if not self._stream:
            return self._waits.end
        return self._waits.until(_now(), self._timeouts.first_token)

    async def read(self, wait: float, started: bool) -> bytes:
        """The next bytes of a streamed answer, b"" at its end; `wait`: seconds, pings included;
        `started`: whether a piece of the answer came. Raises UpstreamFault."""
        if self._pieces is None:
            raise self.fault or self._name(FaultKind.SERVER, "was never asked")
        try:
            async with asyncio.timeout_at(self._waits.until(_now(), wait)):
                return await anext(self._pieces, b"")
        except (TimeoutError, httpx.HTTPError, OSError) as error:
            raise self._explain(error, in_body=True, started=started) from error

    async def pass_on(self) -> AsyncIterator[bytes]:
        """The bytes of an answer in a provider's own format, for LiteLLM to translate; they end
        where a fault begins."""
        while not self.fault:
            started = self.evidence.started
            wait = self._timeouts.idle if started else self._timeouts.first_token
            try:
                data = await self.read(wait, started)
            except UpstreamFault as fault:
                self.fault = fault
                return
            self.fault = self.evidence.feed(data)
            if not data or self.fault:
                return
            yield data

    async def _read_rest(self, response: httpx.Response) -> bytes:
        body = bytearray()
        try:
            async with asyncio.timeout_at(self._waits.end):
                async for more in response.aiter_bytes():
                    body += more
                    if len(body) > MAX_EVENT_BYTES:
                        break
        except (TimeoutError, httpx.HTTPError, OSError) as error:
            raise self._end(self._explain(error, in_body=True)) from error
        finally:
            await response.aclose()
        if len(body) > MAX_EVENT_BYTES:
            raise self._end(self._name(FaultKind.MALFORMED, "sends an answer without end"))
        return bytes(body)

    async def _read_error(self, response: httpx.Response) -> bytes:
        """The body of an error as far as it comes: the status alone says much already."""
        body = b""
        try:
            async with asyncio.timeout(min(ERROR_BODY_SECONDS, self._timeouts.idle)):
                async for more in response.aiter_bytes():
                    body += more
                    if len(body) >= ERROR_BODY_BYTES:
                        break
        except (TimeoutError, httpx.HTTPError, OSError):
            return body[:ERROR_BODY_BYTES]
        finally:
            await response.aclose()
        return body[:ERROR_BODY_BYTES]

    def _end(self, fault: UpstreamFault) -> httpx.ReadError:
        """Keep a fault; the error that LiteLLM gets to see. Never a ConnectError: on that its
        handler would ask again."""
        self.fault = fault
        return httpx.ReadError(fault.what)

    def _explain(
        self, error: Exception, *, in_body: bool = False, started: bool = False
    ) -> UpstreamFault:
        if isinstance(error, TimeoutError | httpx.TimeoutException):
            stage: Stage = "idle" if started else "first_token"
            if isinstance(error, httpx.ConnectTimeout):
                stage = "connect"
            return self._waits.fault(self._backend, stage, _now())
        if in_body:
            return self._name(FaultKind.INTERRUPTED, "broke off its answer")
        if isinstance(error, httpx.ConnectError):
            return self._name(FaultKind.UNAVAILABLE, "cannot be reached")
        gone = isinstance(error, httpx.RemoteProtocolError) and "disconnected" in str(error)
        if gone or isinstance(error, httpx.NetworkError | OSError):
            return self._name(FaultKind.UNAVAILABLE, "closed the connection before it answered")
        words = redact(str(error), self._secrets)
        return self._name(FaultKind.MALFORMED, f"does not speak HTTP as expected ({words})")

    def _name(self, kind: FaultKind, what: str) -> UpstreamFault:
        return UpstreamFault(kind, f"The backend {self._backend} {what}")

    def take_evidence(self) -> UpstreamFault | None:
        """Read the evidence of a whole answer; the fault that it shows."""
        try:
            return self.evidence.take_whole(loads(self.body or b"null"))
        except ValueError:
            return self._name(FaultKind.MALFORMED, "sent an answer that is not JSON")

    async def aclose(self) -> None:
        """Nothing: a library's client that goes away must not take the connections with it."""

    async def hang_up(self) -> None:
        """Close the connection if anything of the answer is still to come."""
        if self._response is not None:
            await self._response.aclose()


def _now() -> float:
    return asyncio.get_running_loop().time()


class _Passed(httpx.AsyncByteStream):
    """The body that LiteLLM reads."""

    def __init__(self, tap: Tap) -> None:
        self._tap = tap

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._tap.pass_on()

    async def aclose(self) -> None:
        await self._tap.hang_up()


class Evidence:
    """What a streamed answer in a provider's own format says of its end (Gemini's, Anthropic's).

    `known`: the format is one of these, so that what is not in evidence did not happen.
    """

    def __init__(self, backend: str, secrets: tuple[str, ...] = ()) -> None:
        self._backend = backend
        self._secrets = secrets
        self._parser = EventParser()
        self.started = self.known = self.counted = False
        self.native: str | None = None

    def feed(self, data: bytes) -> UpstreamFault | None:
        """Take bytes, b"" at their end; the fault that they show."""
        try:
            events = self._parser.feed(data) if data else self._parser.close()
        except EventTooLarge as error:
            return UpstreamFault(FaultKind.MALFORMED, f"The backend {self._backend}: {error}")
        for field, payload in events:
            try:
                parsed = loads(payload)
            except ValueError:
                if field != DATA or not data:
                    continue  # a line that is no field, or one cut off by the end
                what = f"The backend {self._backend} sent a data line that is not JSON"
                return UpstreamFault(FaultKind.MALFORMED, what)
            if isinstance(parsed, list) and parsed:
                parsed = parsed[0]
            if isinstance(parsed, dict) and (fault := self._take(parsed)):
                return fault
        return None

    def take_whole(self, parsed: Any) -> UpstreamFault | None:
        """As feed, of a whole answer."""
        return self._take(parsed) if isinstance(parsed, dict) else None

    def _take(self, parsed: dict[str, Any]) -> UpstreamFault | None:
        self.started = True
        if parsed.get("error"):
            return classify_payload(self._backend, parsed, secrets=self._secrets)
        self.counted = self.counted or bool(parsed.get("usageMetadata") or parsed.get("usage"))
        blocked = (parsed.get("promptFeedback") or {}).get("blockReason")
        if blocked:
            what = f"The backend {self._backend} refuses the prompt ({blocked})"
            return UpstreamFault(FaultKind.REFUSED, what)
        for candidate in parsed.get("candidates") or ():
            self.known = True
            self.native = candidate.get("finishReason") or self.native
        if parsed.get("type") in ("message_start", "message", "message_delta"):
            self.known = True
            delta = parsed.get("delta") or parsed
            self.native = delta.get("stop_reason") or self.native
        return None

    def correct(self, finish: str | None) -> str | None:
        """The true finish for the one that LiteLLM gives: an untrue end keeps its native word,
        an end that never came is None, a filter is named as such."""
        if finish is None or not self.known:
            return finish
        if self.native is None:
            return None
        meaning = read_finish(self.native)
        if meaning is None:
            return self.native
        return meaning if meaning in ("content_filter", "length") else finish
