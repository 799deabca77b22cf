"""Lookups of policies.yaml: other sources that are asked for notes beside the transcript."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr

from policies.schema.backends import is_loopback
from policies.schema.names import find_missing
from policies.schema.parts import Fault, Part, refuse
from policies.schema.policy import Policy
from policies.schema.quantities import Chars, LookupUrl, Seconds

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_OURS = frozenset({"content-length", "content-type", "host", "transfer-encoding", "connection"})


def _check_headers(headers: dict[str, SecretStr]) -> dict[str, SecretStr]:
    """Names and values as HTTP carries them. No message repeats a value."""
    for name, value in headers.items():
        if not _HEADER.fullmatch(name):
            refuse("header", "a header's name is made of ASCII letters, digits and hyphens")
        if name.lower() in _OURS:
            refuse("header", f"the header {name} is set by Foldgate itself", "take it out")
        if not re.fullmatch(r"[ -~]*", value.get_secret_value()):
            refuse(
                "header",
                f"the value of {name} holds a line break or a character outside ASCII, which no "
                "HTTP header carries",
                "look at what was copied into it or into its variable",
            )
    return headers


class Lookup(Part):
    """An HTTP address that is asked for notes: a CRM, a vector store.

    It is sent ``{"query", "conversation", "owner", "user"}`` and answers
    ``{"notes": [{"text", "who"?, "when"?}]}``, the best first.
    """

    url: LookupUrl
    headers: Annotated[dict[str, SecretStr], AfterValidator(_check_headers)] = Field(
        default_factory=dict
    )
    """Sent along, such as a token; one whose value is empty is left out."""
    timeout: Annotated[Seconds, Field(ge=0.01, le=60)] = 2.0
    """Seconds that a turn waits for it at most; then the turn goes on without."""
    budget: Annotated[Chars, Field(ge=100, le=100_000)] = 800
    """Characters of its notes beside one message at most, counted in the policy's recall.budget."""
    local: bool | None = None
    """Whether it is asked for private conversations; none: at loopback addresses only."""

    @property
    def is_local(self) -> bool:
        """Whether what is sent there stays on this machine."""
        return is_loopback(self.url) if self.local is None else self.local


def find_lookup_faults(
    policies: Mapping[str, Policy | None], lookups: Collection[str]
) -> Iterator[Fault]:
    """What is wrong with the lookups that policies name."""
    for name, policy in policies.items():
        named = policy.recall.lookups if policy else ()
        path = ("policies", name, "recall", "lookups")
        for index, lookup in enumerate(named):
            yield from find_missing((*path, index), "lookup", lookup, lookups, "lookups has")
        for lookup, count in Counter(named).items():
            if count > 1:
                yield Fault(path, f"the lookup {lookup} is named twice", "name it once")
        if policy is not None and named and policy.recall.budget == 0:
            text = "nothing that lookups find could be shown: recall.budget is 0"
            yield Fault(path, text, "raise recall.budget or name no lookups")
