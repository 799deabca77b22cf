"""A conversation's own documents: put, listed, taken away, and whether each view has room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from gateway.clock import iso
from gateway.errors import BadRequest, NotFound
from gateway.flows.backgrounds import Place, read_pin_room
from gateway.policy_file import tell_full_room
from gateway.prompts.memory import DocumentText
from gateway.store import documents
from gateway.store.documents import DocumentRow
from gateway.store.shown import pks_shown
from gateway.store.transcript import ConversationRow, node_by_pk
from policies.budget import first_ratio, limits_of
from policies.schema import Policy, PolicyFile
from policies.values import Limits

MOST_CHARS = 100_000
"""Characters of one document."""
MOST_TOTAL = 200_000
"""Characters of a conversation's documents together: a cloud view as a whole."""
MOST = 50
MOST_NAME = 200
"""Characters of a name, which stands in one line."""


def put(
    connection: Connection, conversation: ConversationRow, name: str, text: str, now_ms: int
) -> DocumentRow:
    """Put a text under a name, in place of what stood there; the next user message sees it.

    Raises BadRequest where there are too many, or too much, already.
    """
    total = documents.total_chars(connection, conversation.pk, besides=name) + len(text)
    if total > MOST_TOTAL:
        raise BadRequest(
            f"The documents of this conversation would have {total:,} characters together; "
            f"{MOST_TOTAL:,} are the most.",
            param="text",
        )
    names = {row.name for row in documents.list_documents(connection, conversation.pk)}
    if len(names | {name}) > MOST:
        raise BadRequest(f"A conversation has at most {MOST} documents.", param="name")
    row, _ = documents.put_document(connection, conversation.pk, name, text, now_ms)
    return row


def find(connection: Connection, conversation: ConversationRow, named: str) -> DocumentRow:
    """A document by its id or its name. Raises NotFound."""
    rows = documents.list_documents(connection, conversation.pk)
    for row in rows:
        if named in (row.id, row.name):
            return row
    raise NotFound("There is no document of this id or name in the conversation.")


def describe(
    connection: Connection,
    file: PolicyFile,
    conversation: ConversationRow,
    rows: Sequence[DocumentRow],
) -> dict[str, Any]:
    """Documents as they are told to people. shown: the view in force of some policy shows it.
    views: for each policy of the conversation's model the room it has for documents, in
    characters, the names of those that do not fit it and that it does not show, and why; and what
    is pinned (ids of the ledger) that documents leave no room for."""
    pks = [row.pk for row in rows]
    shown = pks_shown(connection, [conversation.pk], "documents", pks)
    return {
        "documents": [
            {
                "id": row.id,
                "name": row.name,
                "text": row.text,
                "chars": row.chars,
                "shown": row.pk in shown,
                "created_at": iso(row.created_ms),
            }
            for row in rows
        ],
        "views": [
            _describe_room(connection, policy, conversation)
            for policy in policies_of(file, conversation.model)
        ],
    }


def policies_of(file: PolicyFile, model: str) -> list[Policy]:
    """The policies of a model's tiers, each once; none for a model that the file has no more."""
    found = file.find_model(model)
    names = [] if found is None else [tier.policy for tier in found.tiers]
    return [file.policies[name] for name in dict.fromkeys(names)]


def _describe_room(
    connection: Connection, policy: Policy, conversation: ConversationRow
) -> dict[str, Any]:
    rows = documents.for_view(connection, conversation.pk, policy.name)
    limits = limits_of(policy, first_ratio("\n".join(row.text for row in rows)))
    left, out = limits.documents, []
    for row in rows:
        cost = DocumentText(row.name, row.text).cost
        if cost <= left:
            left -= cost
        else:
            out.append(row.name)
    return {
        "policy": policy.name,
        "room": limits.documents,
        "left_out": out,
        "reason": _tell_reason(limits, out),
        "pins_left_out": _pins_left_out(connection, policy, limits, conversation),
    }


def _pins_left_out(
    connection: Connection, policy: Policy, limits: Limits, conversation: ConversationRow
) -> list[str]:
    if conversation.head_pk is None:
        return []
    head = node_by_pk(connection, conversation.head_pk)
    place = Place(conversation.owner_pk, conversation.pk, policy, limits, head)
    return [row.id for row in read_pin_room(connection, place).left_out]


def _tell_reason(limits: Limits, out: Sequence[str]) -> str | None:
    if not out:
        return None
    if not limits.documents:
        return f"This policy's views show no document: {tell_full_room(limits)}."
    return (
        f"With its name and marks each of these is longer than what the documents before it leave "
        f"of {limits.documents:,} characters."
    )
