"""Sources that are asked for notes over HTTP: a CRM, a vector store.

One request each, never repeated: no redirects, no proxies, no cookies. What comes back is checked
before anything is made of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from gateway.wire.json_text import NotJson, dump_bytes, loads
from policies.schema import Lookup

if TYPE_CHECKING:
    import aiohttp

Failure = Literal["timeout", "unreachable", "status", "answer"]
"""Out of time, no connection, a status other than 200, an answer that is none."""

MOST_BYTES = 1024 * 1024
MOST_NOTES = 50
"""Of an answer; what stands behind them is left out, the best come first."""


class LookupFailed(Exception):
    """A source gave no notes. kind: why, for the meters and the log; never what it said. status:
    of an answer that was refused."""

    def __init__(self, kind: Failure, status: int | None = None) -> None:
        super().__init__(kind)
        self.kind: Failure = kind
        self.status = status


@dataclass(frozen=True, slots=True)
class Found:
    """A note as a source told it; who and when are "" where it did not."""

    text: str
    who: str = ""
    when: str = ""


@dataclass(slots=True)
class Trouble:
    """Why a source failed last, and how many questions it has failed since it answered."""

    kind: Failure
    times: int = 0


class LookupClient:
    """The connections to every source, opened with the first question."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self.troubles: dict[str, Trouble] = {}
        """Of the sources that failed when they were asked last, by name."""

    async def ask(self, lookup: Lookup, question: Mapping[str, Any]) -> tuple[Found, ...]:
        """The source's notes, best first. Raises LookupFailed; cancellation ends it at once."""
        try:
            async with asyncio.timeout(lookup.timeout):
                answer = await self._post(lookup, dump_bytes(dict(question)))
        except TimeoutError:
            raise LookupFailed("timeout") from None
        return _read_notes(answer)

    async def _post(self, lookup: Lookup, body: bytes) -> bytes:
        # Only where lookups are asked: the library takes its time and its megabytes.
        import aiohttp

        from gateway.backends.lookup_names import OperatorNames

        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(resolver=OperatorNames()),
                timeout=aiohttp.ClientTimeout(total=None),
                trust_env=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        secret = {name: value.get_secret_value() for name, value in lookup.headers.items()}
        headers = {name: value for name, value in secret.items() if value}
        try:
            async with self._session.post(
                lookup.url,
                data=body,
                headers={**headers, "Content-Type": "application/json"},
                allow_redirects=False,
            ) as response:
                if response.status != 200:
                    raise LookupFailed("status", response.status)
                return await _read_body(response)
        except (aiohttp.ClientError, OSError) as error:
            if isinstance(error, TimeoutError):
                raise
            raise LookupFailed("unreachable") from None

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


async def _read_body(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > MOST_BYTES:
            raise LookupFailed("answer")
    return bytes(body)


def _read_notes(body: bytes) -> tuple[Found, ...]:
    """`{"notes": [{"text", "who"?, "when"?}]}`; a note without text is left out, anything else
    that is not as it should be makes the whole answer none."""
    try:
        answer = loads(body)
    except NotJson:
        raise LookupFailed("answer") from None
    notes = answer.get("notes") if isinstance(answer, dict) else None
    if not isinstance(notes, list):
        raise LookupFailed("answer")
    found = map(_read_note, notes[:MOST_NOTES])
    return tuple(note for note in found if note.text.strip())


def _read_note(note: Any) -> Found:
    if not isinstance(note, dict):
        raise LookupFailed("answer")
    texts = [note.get(name) for name in ("text", "who", "when")]
    text, who, when = ("" if each is None else each for each in texts)
    if not (isinstance(text, str) and isinstance(who, str) and isinstance(when, str)):
        raise LookupFailed("answer")
    return Found(text, who, when)
