"""A conversation written out: what stands beside its messages, by ids, nothing left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, update

from gateway.store import (
    documents,
    fold_rows,
    gist_rows,
    ledger,
    notes,
    profile_edits,
    profile_learning,
)
from gateway.store.export import export_lines
from gateway.store.fold_rows import Shown
from gateway.store.profile_learning import Told
from tests.gateway.house import House
from tests.gateway.seeds import NOW, add_conversation, add_memory, talk


def write_out(connection: Connection) -> dict[str, list[dict[str, Any]]]:
    """By type, the lines of a conversation that has everything once or twice."""
    chat, nodes = add_conversation(connection, talk(3))
    add_memory(connection, chat, nodes)
    own = profile_edits.add_fact(connection, chat.owner_pk, "私はアンナ。", "name", NOW)
    told = [Told("Likes tea.", "drink", nodes[0].pk)]
    profile_learning.learn(connection, chat.owner_pk, chat.pk, told, span=[nodes[0].pk], now_ms=NOW)
    row, _ = documents.put_document(connection, chat.pk, "rules", "静かに。", NOW)
    thread = ledger.add_entry(
        connection,
        chat.pk,
        kind="thread",
        text="Who?",
        chapter_pk=1,
        version_pk=1,
        source_pk=nodes[0].pk,
        last_pk=nodes[1].pk,
        last_depth=2,
        origin="model",
        now_ms=NOW,
    )
    at = (nodes[1].pk, 2)
    ledger.add_mark(
        connection, chat.pk, thread.pk, "closed", origin="model", now_ms=NOW, chapter_pk=1, at=at
    )
    shown = Shown(profile=(own.pk,), documents=(row.pk,), closed=(thread.pk,))
    fold = fold_rows.add_fold(
        connection,
        chat.pk,
        policy="local-fold",
        at=nodes[0],
        border=(0, 0, 0),
        kind="opening",
        gist_pk=None,
        memory=[],
        memory_chars=9,
        stand_ins=0,
        revision="r",
        now_ms=NOW,
        shown=shown,
    )
    notes.add(
        connection,
        chat.pk,
        "local-fold",
        fold.pk,
        nodes[2],
        kind=notes.LINES,
        body={"lines": ["ask?"]},
        chars=4,
        now_ms=NOW,
    )
    gist_rows.retire(connection, chat.pk, "local-fold", nodes[1].pk, NOW)
    kinds: dict[str, list[dict[str, Any]]] = {}
    for line in map(json.loads, export_lines(connection, chat)):
        kinds.setdefault(line.pop("type"), []).append(line)
    return kinds


def test_what_stands_beside_is_written_out_by_ids(tmp_path: Path) -> None:
    house = House(tmp_path)
    with house.store._writer.begin() as connection:
        kinds = write_out(connection)
    house.store.close()
    first, second, third = (message["id"] for message in kinds["message"][:3])
    (chapter, _) = kinds["chapter"]
    (entry,) = kinds["entry"]
    assert (entry["chapter"], entry["told_by"], entry["source"], entry["last"]) == (
        chapter["id"],
        [chapter["id"], 1],
        first,
        second,
    )
    assert (entry["kind"], entry["number"], entry["text"]) == ("thread", 1, "Who?")
    (mark,) = kinds["mark"]
    assert (mark["mark"], mark["entry"], mark["chapter"], mark["last"]) == (
        "closed",
        entry["id"],
        chapter["id"],
        second,
    )
    own, learned = kinds["memory"]
    assert (own["text"], own["learned_here"], own["source"]) == ("私はアンナ。", False, None)
    assert (learned["text"], learned["learned_here"]) == ("Likes tea.", True)
    (document,) = kinds["document"]
    assert (document["name"], document["text"], document["policy"]) == ("rules", "静かに。", None)
    opening = next(fold for fold in kinds["fold"] if fold["kind"] == "opening")
    assert (opening["border"], opening["shown"]) == (
        None,
        {"profile": [own["id"]], "documents": [document["id"]], "closed": [entry["id"]]},
    )
    (note,) = kinds["note"]
    assert (note["fold"], note["asked"], note["body"]["lines"]) == (
        opening["number"],
        third,
        ["ask?"],
    )
    assert kinds["gist"][0]["retired_at"] == "2023-11-14T22:13:20.000Z"


def test_what_is_gone_meanwhile_is_told_as_gone(tmp_path: Path) -> None:
    """A fold may name a fact that went with the conversation in which it was learned."""
    house = House(tmp_path)
    with house.store._writer.begin() as connection:
        chat, nodes = add_conversation(connection, talk(3))
        add_memory(connection, chat, nodes)
        connection.execute(update(fold_rows.folds).values(shown='{"profile": [99]}'))
        lines = [json.loads(line) for line in export_lines(connection, chat)]
    house.store.close()
    (fold,) = [line for line in lines if line["type"] == "fold"]
    assert fold["shown"] == {"profile": [None]}
