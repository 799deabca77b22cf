"""Whether a reply could have been written by the model from its own conversation alone.

A reply names itself: each token with the log-probability that the model gave it. On a quiet
server the same request is asked again, greedily. Another conversation's text in the cache would
move those figures, long before it shows in the words.

1. Each token must be the quiet server's own choice, or one that it holds nearly as likely as its
   own: numbers differ with the batch in which they are computed. From such a token on the quiet
   server goes on behind the words that were really said.
2. Its log-probability must be that of the quiet server, but for TOLERANCE, and over the reply but
   for MEAN_TOLERANCE.
3. The prompt must have as many tokens.
4. No name of another conversation may stand in it, unless its own messages hold it: towns are
   made of the same syllables.
A token that is part of a letter ends the comparison: a stream tells it otherwise than a whole
answer does.

That this finds anything is shown each time by controls: replies that are held against the history
of another conversation must be found out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from gateway.demo.llama import LlamaInstall, LlamaServer

TOLERANCE = 0.8
MEAN_TOLERANCE = 0.15
"""Nats. With Q4_1 weights on two cores other batches moved a token's figure by up to 0.39, and over
a reply by 0.06 (1,400 tokens); another conversation's history moves some token by several."""

CONTROLS = 12

_ALTERNATIVES = 5


class Token(NamedTuple):
    """A token of a reply, its natural log-probability, and its number in the vocabulary."""

    bytes: bytes
    logprob: float
    id: int


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply and what was asked. mark: the name that its conversation alone has."""

    mark: str
    messages: tuple[dict[str, str], ...]
    tokens: tuple[Token, ...]
    prompt_tokens: int

    @property
    def text(self) -> str:
        return b"".join(token.bytes for token in self.tokens).decode(errors="replace")


@dataclass(slots=True)
class Proof:
    """foreign: what is wrong with replies, in words. tokens: compared. near_ties: those that were
    not the quiet server's first choice. largest_gap and largest_mean: between the figures of one
    token and of one reply that passed. controls: those found out, and those tried."""

    foreign: list[str] = field(default_factory=list)
    tokens: int = 0
    near_ties: int = 0
    largest_gap: float = 0.0
    largest_mean: float = 0.0
    controls: tuple[int, int] = (0, 0)


async def prove(
    install: LlamaInstall,
    replies: Sequence[Reply],
    marks: Collection[str],
    *,
    window: int,
    log: Path,
) -> Proof:
    """Ask for every reply again, one by one, on a server of their own."""
    proof = Proof()
    async with (
        LlamaServer(install, window=window, pinned=True, log=log, patience=180.0) as server,
        aiohttp.ClientSession(server.url, timeout=aiohttp.ClientTimeout(total=600)) as session,
    ):
        quiet = _Quiet(session)
        for reply in sorted(replies, key=lambda reply: (reply.mark, len(reply.messages))):
            wrong = _find_mark(reply, marks) or await _compare(quiet, reply, proof)
            if wrong:
                proof.foreign.append(f"{reply.mark}: {wrong}: {reply.text!r}")
        swapped = [_swap(reply, other) for reply, other in _strangers(replies)]
        found = [bool(await _compare(quiet, reply, Proof())) for reply in swapped]
        proof.controls = sum(found), len(found)
    return proof


def _strangers(replies: Sequence[Reply]) -> list[tuple[Reply, Reply]]:
    """Replies that say something, each beside a longer one of another conversation."""
    telling = [reply for reply in replies if len(reply.tokens) > 3]
    longer = [reply for reply in replies if len(reply.messages) > 1]
    pairs = [(one, two) for one, two in zip(telling, reversed(longer), strict=False)]
    return [pair for pair in pairs if pair[0].mark != pair[1].mark][:CONTROLS]


def _swap(reply: Reply, other: Reply) -> Reply:
    """As if this reply had been written over another conversation's history."""
    return replace(reply, messages=(*other.messages[:-1], reply.messages[-1]), prompt_tokens=0)


def _find_mark(reply: Reply, marks: Collection[str]) -> str | None:
    own = " ".join([reply.mark, *(message["content"] for message in reply.messages)])
    found = [mark for mark in marks if mark in reply.text and mark not in own]
    return f"names {found[0]}" if found else None


async def _compare(quiet: _Quiet, reply: Reply, proof: Proof) -> str | None:
    """What is wrong with a reply, None where nothing is: then its figures go into the proof."""
    prompt = await quiet.render(reply.messages)
    said: list[int] = []
    weighed: list[_Weighed] = []
    expected: list[dict[str, Any]] = []
    for place, token in enumerate(reply.tokens):
        if not token.bytes.isascii():
            break
        if not expected:
            answer = await quiet.go_on(prompt, said, len(reply.tokens) - place)
            expected = answer["completion_probabilities"]
            if place == 0 and reply.prompt_tokens not in (0, answer["tokens_evaluated"]):
                alone = answer["tokens_evaluated"]
                return f"its prompt had {reply.prompt_tokens} tokens, and would have {alone}"
        found = _weigh(token, expected.pop(0)["top_logprobs"])
        if isinstance(found, str):
            return f"token {place} {found}"
        weighed.append(found)
        said.append(token.id)
        if not found.is_first:
            expected = []
    return _sum_up(weighed, proof)


class _Weighed(NamedTuple):
    """A token that passed. gap: between its two figures; below: how far it stands below the quiet
    server's first choice."""

    gap: float
    below: float
    is_first: bool


def _weigh(token: Token, alternatives: Sequence[dict[str, Any]]) -> _Weighed | str:
    known = {bytes(one["bytes"]): one["logprob"] for one in alternatives}
    first = bytes(alternatives[0]["bytes"])
    if token.bytes not in known:
        return f"is {token.bytes!r}, and would be {first!r}"
    alone = known[token.bytes]
    weighed = _Weighed(abs(token.logprob - alone), known[first] - alone, token.bytes == first)
    if max(weighed.gap, weighed.below) > TOLERANCE:
        return f"{token.bytes!r} had {token.logprob:.2f}, and would have {alone:.2f}"
    return weighed


def _sum_up(weighed: Sequence[_Weighed], proof: Proof) -> str | None:
    mean = sum(one.gap for one in weighed) / max(1, len(weighed))
    if mean > MEAN_TOLERANCE:
        return f"its tokens differ by {mean:.2f} on the whole"
    proof.tokens += len(weighed)
    proof.near_ties += sum(not one.is_first for one in weighed)
    proof.largest_gap = max([proof.largest_gap, *(max(one.gap, one.below) for one in weighed)])
    proof.largest_mean = max(proof.largest_mean, mean)
    return None


class _Quiet:
    """A llama-server that nobody else uses."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def render(self, messages: Sequence[dict[str, str]]) -> str:
        """The prompt of these messages by the model's own template."""
        answer = await self._post("/apply-template", {"messages": list(messages)})
        prompt: str = answer["prompt"]
        return prompt

    async def go_on(self, prompt: str, said: Sequence[int], count: int) -> dict[str, Any]:
        """The next tokens behind a prompt and the beginning of its reply, with alternatives. said:
        by number, for the same letters may be cut into other tokens."""
        body = {
            "prompt": [prompt, *said] if said else prompt,
            "n_predict": count,
            "n_probs": _ALTERNATIVES,
            "temperature": 0,
            "ignore_eos": False,
        }
        return await self._post("/completion", body)

    async def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        async with self._session.post(path, json=body) as answer:
            if answer.status != 200:
                raise RuntimeError(f"{path}: {await answer.text()}")
            told: dict[str, Any] = await answer.json()
            return told
