"""A request made ready for the store: set apart, digested, with what rules may look at."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.errors import BadRequest
from gateway.flows.identity import set_apart, without_thinking
from gateway.store import transcript
from gateway.wire.requests import ChatRequest, split_system
from policies.auxiliary import Auxiliary
from policies.messages import canonical_message


@dataclass(frozen=True, slots=True)
class Incoming:
    """A request made ready for the store.

    chain are its messages without system texts; system holds (number of chain messages before
    it, message). canonicals and chains run along chain. headers (names in lower case) and tags are
    what rules may look at. auxiliary: where the request is no turn, what it is.
    """

    request: ChatRequest
    owner: str
    user: str
    conversation: str | None
    idempotency_key: str | None
    retried: bool
    chain: Sequence[dict[str, Any]]
    system: Sequence[tuple[int, dict[str, Any]]]
    canonicals: Sequence[bytes]
    chains: Sequence[str]
    headers: Mapping[str, str] = field(default_factory=dict)
    tags: frozenset[str] = frozenset()
    auxiliary: Auxiliary | None = None


def prepare(
    request: ChatRequest,
    *,
    owner: str,
    user: str = "",
    conversation: str | None = None,
    idempotency_key: str | None = None,
    retried: bool = False,
    headers: Mapping[str, str] | None = None,
    tags: Collection[str] = (),
    auxiliary: Auxiliary | None = None,
) -> Incoming:
    """Digest a request (CPU only; a megabyte of history takes some milliseconds).

    Raises BadRequest for a message whose parts are nested too deeply to be compared.
    """
    chain, system = set_apart(*split_system(request.messages))
    try:
        canonicals = [canonical_message(without_thinking(message)) for message in chain]
    except RecursionError:
        raise BadRequest("A message is nested too deeply.", param="messages") from None
    return Incoming(
        request=request,
        owner=owner,
        user=user,
        conversation=conversation or request.conversation,
        idempotency_key=idempotency_key,
        retried=retried,
        chain=chain,
        system=system,
        canonicals=canonicals,
        chains=transcript.chain_digests(canonicals),
        headers=headers or {},
        tags=request.tags.union(tags),
        auxiliary=auxiliary,
    )
