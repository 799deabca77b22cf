"""A lone message that tells the whole chat, beside the path: only what is new is stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from gateway.flows.align import Aligned, Fresh
from gateway.store import tails, transcript
from gateway.store.tails import TailNode
from gateway.store.transcript import Node
from gateway.wire.json_text import loads
from policies.joined import split_joined
from policies.messages import canonical_message, message_text

_NEWEST = 3
"""Messages among which there must be a reply that is told, before more of the path is read."""
_MOST = 2_000
"""Messages of a path that are compared."""


def align_joined(connection: Connection, message: dict[str, Any], head: Node) -> Aligned | None:
    """Where a message stands that repeats the path up to its newest reply and goes on, or up to a
    question; None where it is not such a one."""
    text = message.get("content")
    if message["role"] != "user" or not isinstance(text, str) or "\n" not in text:
        return None
    newest = _read(connection, tails.read_tail(connection, head.pk, max(0, head.depth - _NEWEST)))
    if not any(role == "assistant" and said.strip() in text for role, said in newest):
        return None
    nodes = tails.read_tail(connection, head.pk, max(0, head.depth - _MOST))
    found = split_joined(text, _read(connection, nodes))
    if found is None:
        return None
    parent = transcript.node_by_pk(connection, nodes[found.last].pk)
    depth = parent.depth + 1 if found.new else parent.depth
    new = {**message, "content": found.new}
    fresh = [Fresh(new, canonical_message(new))] if found.new else []
    return Aligned(parent, fresh, depths=[depth], notes=[], offset=depth - 1)


def _read(connection: Connection, nodes: Sequence[TailNode]) -> list[tuple[str, str]]:
    rows = tails.read_messages(connection, [node.pk for node in nodes])
    return [(node.role, message_text(loads(rows[node.pk].raw))) for node in nodes]
