"""Conversations put into a store the way a turn does it, for the tests that read them back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, insert

from gateway.store import chapter_rows, fold_rows, gist_rows, quarantine, token_ratios, transcript
from gateway.store.attempts import begin_attempt, finish_attempt
from gateway.store.conversations import jobs
from gateway.store.transcript import ConversationRow, NewMessage, Node
from gateway.wire.json_text import dumps
from policies.messages import canonical_message, message_chars, message_text
from policies.values import Span

NOW = 1_700_000_000_000

POLICIES = """
version: 1
backends:
  rehearsal: {kind: scripted}
  local-glm: {kind: llama_cpp, url: "http://127.0.0.1:1", window: 65536 tokens}
policies:
  local-fold: {}
models:
  foldgate:
    tiers: [{backend: local-glm, policy: local-fold}]
  vendor/tiny:
    tiers: [{backend: rehearsal, policy: local-fold}]
"""


def new_message(message: dict[str, Any], **extra: Any) -> NewMessage:
    return NewMessage(
        role=message["role"],
        raw=dumps(message),
        canonical=canonical_message(message),
        text=message_text(message),
        chars=message_chars(message, 3_000),
        opens=message["role"] == "user",
        **extra,
    )


def add_conversation(
    connection: Connection,
    messages: Sequence[dict[str, Any]],
    *,
    owner: str = "local",
    user: str = "",
    alias: str | None = None,
    now_ms: int = NOW,
) -> tuple[ConversationRow, list[Node]]:
    owner_pk = transcript.ensure_owner(connection, owner, user, now_ms)
    made = transcript.create_conversation(
        connection, owner_pk, alias=alias, model="foldgate", now_ms=now_ms
    )
    nodes = extend(connection, made, None, messages, now_ms)
    found = transcript.conversation_by_pk(connection, owner_pk, made.pk)
    assert found is not None
    return found, nodes


def extend(
    connection: Connection,
    conversation: ConversationRow,
    parent: Node | None,
    messages: Sequence[dict[str, Any]],
    now_ms: int = NOW,
) -> list[Node]:
    produced = {"produced": True, "backend": "local-glm", "finish_reason": "stop"}
    new = [new_message(m, **(produced if m["role"] == "assistant" else {})) for m in messages]
    nodes = transcript.append_messages(connection, conversation, parent, new, now_ms)
    transcript.touch_conversation(
        connection, conversation.pk, head_pk=nodes[-1].pk, model="foldgate", now_ms=now_ms
    )
    return nodes


def talk(turns: int) -> list[dict[str, Any]]:
    """So many turns, each a question and an answer of ten characters."""
    return [
        {"role": role, "content": f"{word} {number:05d}"}
        for number in range(turns)
        for role, word in (("user", "ask?"), ("assistant", "tell"))
    ]


def add_memory(
    connection: Connection,
    conversation: ConversationRow,
    nodes: Sequence[Node],
    *,
    text: str = "They met.",
) -> None:
    """Messages 1–2 as a chapter that a fold shows from message 5 on, 3–4 as debt; one attempt,
    one output in quarantine, one job."""
    pk = conversation.pk
    chapter, _ = chapter_rows.add_chapter(
        connection,
        pk,
        Span(1, 2, nodes[1].cum_chars),
        first_pk=nodes[0].pk,
        last_pk=nodes[1].pk,
        now_ms=NOW,
    )
    version = chapter_rows.add_version(
        connection,
        pk,
        chapter,
        text=text,
        origin="model",
        backend="local-glm",
        prompt="1",
        now_ms=NOW,
    )
    gist = gist_rows.add_gist(
        connection,
        pk,
        policy="local-fold",
        last_pk=nodes[1].pk,
        last_depth=2,
        sources=[version],
        text=f"gist: {text}",
        origin="model",
        backend="local-glm",
        prompt="1",
        now_ms=NOW,
    )
    debt, _ = chapter_rows.add_chapter(
        connection,
        pk,
        Span(3, 4, nodes[3].cum_chars - nodes[1].cum_chars),
        first_pk=nodes[2].pk,
        last_pk=nodes[3].pk,
        now_ms=NOW,
    )
    fold = fold_rows.add_fold(
        connection,
        pk,
        policy="local-fold",
        at=nodes[4],
        border=(nodes[1].pk, 2, nodes[1].cum_chars),
        kind="fold",
        gist_pk=gist,
        memory=[version],
        memory_chars=321,
        stand_ins=0,
        revision="r1",
        now_ms=NOW,
    )
    quarantine.add_quarantined(
        connection,
        pk,
        chapter_pk=debt,
        kind="chapter",
        backend="local-glm",
        reasons=["refusal"],
        text=f"I cannot help with {text}",
        finish_reason="stop",
        now_ms=NOW,
    )
    connection.execute(
        insert(jobs).values(
            key=f"chapter:{debt}",
            kind="chapter",
            conversation_pk=pk,
            state="queued",
            run_at_ms=NOW + 30_000,
            attempts=1,
            backend="local-glm",
            policy="local-fold",
            payload="{}",
            error_kind="refusal",
            created_ms=NOW,
            updated_ms=NOW,
        )
    )
    attempt = begin_attempt(
        connection,
        conversation_pk=pk,
        asked_pk=nodes[4].pk,
        system_pk=transcript.ensure_system_text(
            connection, pk, dumps([[0, {"role": "system", "content": text}]]), NOW
        ),
        fold_pk=fold.pk,
        backend="local-glm",
        policy="local-fold",
        model="foldgate",
        boot="boot_1",
        view_kind="folded",
        state="running",
        started_ms=NOW,
    )
    finish_attempt(
        connection,
        attempt,
        state="done",
        reply_pk=nodes[5].pk,
        finish_reason="stop",
        error=None,
        prompt_tokens=10,
        cached_tokens=None,
        completion_tokens=2,
        now_ms=NOW + 5,
    )
    token_ratios.save_token_ratio(connection, pk, "local-glm", 3.5)
