"""/api/conversations/{id}/memory/…: the owner's hand over chapters, gists and the ledger.

Each change is a version, can be undone, and enters views at the next fold; `{"now": true}` asks for
one at the next user message. Every answer is the part as `GET …/memory` shows it then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from sqlalchemy import Connection
from starlette.responses import Response

from gateway.api.bodies import check_text, read_flag, read_number, read_object, read_text
from gateway.api.conversations import first_policy, json_response
from gateway.api.deps import (
    check_in_scope,
    context_of,
    find_in_scope,
    read_now,
    resolve_scope,
)
from gateway.errors import BadRequest, Conflict
from gateway.flows import ledger_edits, memory_edits, pins, scrub, scrub_material
from gateway.flows.hand import Hand
from gateway.flows.ledger_edits import FIELDS
from gateway.flows.scrub_material import Material
from gateway.store.ledger_report import read_entries
from gateway.store.memory_report import find_one, read_memory
from gateway.store.transcript import ConversationRow, node_by_pk
from gateway.wire.json_text import dump_bytes
from policies.ledger.values import MOST_CHARS, MOST_QUOTE
from policies.schema import PolicyFile

router = APIRouter(prefix="/api/conversations/{id}/memory")

T = TypeVar("T")
Line = dict[str, Any]
Change = Callable[[Connection, Hand], T]
Tell = Callable[[Connection, ConversationRow, T], Line]
"""What came of a change, as it is told: of what the change returned."""

MOST_NAME = 100
"""Characters of what a fact is about, and of a speaker's name."""


async def change_memory(
    request: Request, id: str, change: Change[T], tell: Tell[T], *, now: bool
) -> Response:
    """Make one change in one transaction. What came of it is read after the commit: the one writer
    waits for no report. `pin_room` stands beside a part that is pinned."""
    scope, context = resolve_scope(request), context_of(request)
    now_ms, file = context.clock.now_ms(), context.policies.file

    def write(connection: Connection) -> tuple[int, T]:
        conversation = find_in_scope(connection, scope, id)
        return conversation.pk, change(connection, Hand(conversation, now_ms, now))

    def read(connection: Connection) -> bytes:
        conversation = find_in_scope(connection, scope, id)
        line = tell(connection, conversation, changed)
        if line.get("pinned"):
            line["pin_room"] = pins.describe_room(connection, file, conversation, None)
        return dump_bytes(line)

    conversation_pk, changed = await context.store.write(write)
    context.views.forget_memories()
    context.prefills.memory_grew(conversation_pk)
    return json_response(await context.store.read(read))


async def read_body(request: Request, id: str, *fields: str) -> Line:
    """The body's fields; another's conversation is a 404 whatever it says."""
    await check_in_scope(request, resolve_scope(request), id)
    return read_object(await request.body(), fields)


async def _read_edit(
    request: Request, id: str, most_of: Callable[[PolicyFile, str], int]
) -> tuple[str, bool]:
    """(the owner's words, of as many characters as views of the conversation's model have room for,
    whether they are wanted at once)."""
    told = await read_body(request, id, "text", "now")
    context, scope = context_of(request), resolve_scope(request)
    conversation = await context.store.read(find_in_scope, scope, id)
    most = most_of(context.policies.file, conversation.model)
    return read_text(told, "text", most=most).strip(), read_now(request, told)


def tell_part(part: str, id: str) -> Tell[Line | None]:
    """A chapter or gist as the memory shows it now, and what its change says beside it."""

    def tell(connection: Connection, conversation: ConversationRow, beside: Line | None) -> Line:
        memory = read_memory(connection, conversation, default_policy=None)
        line = find_one(memory[part], id)
        return {"id": id, **(line or {}), **(beside or {})}

    return tell


# --- chapters ------------------------------------------------------------------------------------


@router.patch("/chapters/{part}")
async def edit_chapter(request: Request, id: str, part: str) -> Response:
    """`{"text", "now"?}`."""
    text, now = await _read_edit(request, id, memory_edits.most_of_chapter)

    def change(connection: Connection, hand: Hand) -> None:
        memory_edits.edit_chapter(connection, hand, part, text)

    return await change_memory(request, id, change, tell_part("chapters", part), now=now)


@router.delete("/chapters/{part}")
async def delete_chapter(request: Request, id: str, part: str) -> Response:
    """What it tells leaves the memory, with what models told beside it; its span stays folded.

    `memories`: what left the profile with it. `still_told_by`: the gists that cover it; what they
    tell of it they tell until they are edited or undone.
    """
    told = await read_body(request, id, "now")

    def change(connection: Connection, hand: Hand) -> Line:
        memories = memory_edits.edit_chapter(connection, hand, part, "")
        still = memory_edits.gists_telling(connection, hand, part)
        return {"deleted": True, "memories": memories, "still_told_by": still}

    tell = tell_part("chapters", part)
    return await change_memory(request, id, change, tell, now=read_now(request, told))


@router.post("/chapters/{part}/undo")
async def undo_chapter(request: Request, id: str, part: str) -> Response:
    """`{"version"?, "now"?}`: the text before the newest change, or that of a version."""
    told = await read_body(request, id, "version", "now")
    version = read_number(told, "version")

    def change(connection: Connection, hand: Hand) -> None:
        memory_edits.undo_chapter(connection, hand, part, version)

    tell = tell_part("chapters", part)
    return await change_memory(request, id, change, tell, now=read_now(request, told))


@router.post("/chapters/{part}/resummarize")
async def resummarize(request: Request, id: str, part: str) -> Response:
    """Ask for the chapter again. Answers with the chapter as it is and the id of the `job`."""
    await read_body(request, id)
    context = context_of(request)

    def change(connection: Connection, hand: Hand) -> Line:
        policy = _policy_of(context.policies.file, connection, hand)
        return {"job": memory_edits.resummarize(connection, hand, part, policy)}

    answer = await change_memory(request, id, change, tell_part("chapters", part), now=False)
    context.ring(context.clock.now_ms())
    return answer


def _policy_of(file: PolicyFile, connection: Connection, hand: Hand) -> str:
    """The policy of the conversation's newest turn, or of its model."""
    policy = memory_edits.last_policy(connection, hand.conversation)
    if policy not in file.policies:
        policy = first_policy(file, hand.conversation.model)
    if policy is None:
        raise Conflict(f"The model {hand.conversation.model} is not in policies.yaml any more.")
    return policy


# --- gists ---------------------------------------------------------------------------------------


@router.patch("/gists/{part}")
async def edit_gist(request: Request, id: str, part: str) -> Response:
    """`{"text", "now"?}`."""
    text, now = await _read_edit(request, id, memory_edits.most_of_gist)

    def change(connection: Connection, hand: Hand) -> None:
        memory_edits.edit_gist(connection, hand, part, text)

    return await change_memory(request, id, change, tell_part("gists", part), now=now)


@router.delete("/gists/{part}")
async def delete_gist(request: Request, id: str, part: str) -> Response:
    """What it tells leaves the memory; what it covers stays folded."""
    told = await read_body(request, id, "now")

    def change(connection: Connection, hand: Hand) -> Line:
        memory_edits.edit_gist(connection, hand, part, "")
        return {"deleted": True}

    tell = tell_part("gists", part)
    return await change_memory(request, id, change, tell, now=read_now(request, told))


@router.post("/gists/{part}/undo")
async def undo_gist(request: Request, id: str, part: str) -> Response:
    """`{"version"?, "major"?, "now"?}`: the text before the newest edit, or that of a version;
    `major`: the folding of its chapters itself is undone."""
    told = await read_body(request, id, "version", "major", "now")
    version, major = read_number(told, "version"), read_flag(told, "major")

    def change(connection: Connection, hand: Hand) -> None:
        memory_edits.undo_gist(connection, hand, part, version, major=major)

    tell = tell_part("gists", part)
    return await change_memory(request, id, change, tell, now=read_now(request, told))


# --- the ledger ----------------------------------------------------------------------------------


@router.patch("/entries/{part}")
async def edit_entry(request: Request, id: str, part: str) -> Response:
    """`{"text"?, "about"?, "who"?, "to"?, "truth"?, "now"?}`, as far as the entry has them."""
    names = ("about", "who", "to", "truth")
    told = await read_body(request, id, "text", *names, "now")

    def change(connection: Connection, hand: Hand) -> int:
        row = ledger_edits.find_entry(connection, hand.conversation, part)
        changes = _read_changes(told, row.kind)
        return ledger_edits.edit_entry(connection, hand, part, changes).pk

    return await change_memory(request, id, change, _tell_entry, now=read_now(request, told))


def _read_changes(told: Line, kind: str) -> dict[str, str | None]:
    changes: dict[str, str | None] = {}
    for name, value in told.items():
        if name == "now":
            continue
        if name != "text" and name not in FIELDS[kind]:
            raise BadRequest(f"A {kind} has no `{name}`.", param=name)
        if value is None and name != "text":
            changes[name] = None
            continue
        most = MOST_QUOTE if kind == "quote" else MOST_CHARS
        text = check_text(value, name, most=most if name in ("text", "truth") else MOST_NAME)
        changes[name] = " ".join(text.split())
    if not changes:
        raise BadRequest("`text` or another field must say what is to change.", param="text")
    return changes


@router.delete("/entries/{part}")
async def delete_entry(request: Request, id: str, part: str) -> Response:
    """A fact leaves the profile too, as far as the same message taught it: `memories`."""
    told = await read_body(request, id, "now")

    def change(connection: Connection, hand: Hand) -> tuple[int, list[str]]:
        memories = ledger_edits.delete_entry(connection, hand, part)
        return ledger_edits.find_entry(connection, hand.conversation, part).pk, memories

    def tell(
        connection: Connection, conversation: ConversationRow, gone: tuple[int, list[str]]
    ) -> Line:
        line = _tell_entry(connection, conversation, gone[0])
        return {**line, "deleted": True, "memories": gone[1]}

    return await change_memory(request, id, change, tell, now=read_now(request, told))


@router.post("/entries/{part}/{act}")
async def act_on_entry(request: Request, id: str, part: str, act: str) -> Response:
    """pin, unpin, close, reopen, or undo the newest of these and of edits and deletions."""
    told = await read_body(request, id, "now")
    known = (*ledger_edits.ACTS, "undo")
    file = context_of(request).policies.file

    def change(connection: Connection, hand: Hand) -> int:
        row = ledger_edits.find_entry(connection, hand.conversation, part)
        if act not in known:
            raise BadRequest(f"An entry can be asked for: {', '.join(known)}.")
        if act == "undo":
            row = ledger_edits.undo_entry(connection, hand, part)
        elif act == "pin":
            pins.pin_entry(connection, hand, file, part)
        else:
            ledger_edits.act(connection, hand, part, act)
        return row.pk

    return await change_memory(request, id, change, _tell_entry, now=read_now(request, told))


def _tell_entry(connection: Connection, conversation: ConversationRow, pk: int) -> Line:
    head_pk = conversation.head_pk
    head = None if head_pk is None else node_by_pk(connection, head_pk)
    return read_entries(connection, conversation, head, [pk])[0]


# --- all of it -----------------------------------------------------------------------------------


@router.post("/scrub")
async def scrub_memory(request: Request, id: str) -> Response:
    """`{"dry_run"?, "now"?}`: today's judge over what is stored; what is bad is quarantined and
    gives way to stand-ins. Answers with what was looked at and what was bad."""
    told = await read_body(request, id, "dry_run", "now")
    dry_run, now = read_flag(told, "dry_run"), read_now(request, told)
    scope, context = resolve_scope(request), context_of(request)
    file = context.policies.file

    def load(connection: Connection) -> Material:
        return scrub_material.load(connection, find_in_scope(connection, scope, id), file)

    def apply(connection: Connection) -> list[scrub.Finding]:
        hand = Hand(find_in_scope(connection, scope, id), context.clock.now_ms(), now)
        return scrub.apply(connection, hand, file, findings)

    material = await context.store.read(load)
    findings = await asyncio.to_thread(scrub.judge, material)
    if findings and not dry_run:
        findings = await context.store.write(apply)
        context.views.forget_memories()
        context.ring(context.clock.now_ms())
        context.prefills.memory_grew(material.conversation.pk)
    report = scrub.Report(dry_run)
    report.add(material, findings)
    return json_response(dump_bytes(report.as_json()))
