"""A conversation's memory for people: a line each, behind the id by which commands and the API know
it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gateway.cli.lines import speakable
from gateway.cli.options import counted

Line = dict[str, Any]

_MOST = 200
"""Characters of a text."""


def tell_memory(memory: Line) -> Iterator[str]:
    """Chapters and gists, on whichever branch; of the ledger what stands on the newest one; what
    the views in force show of profile and documents; where it lives, its views, what waits."""
    for chapter in memory["chapters"]:
        what = f"chapter of {chapter['source_chars']:,} characters"
        yield f"{chapter['id']}  {what} ({_marks(chapter)}): {_text(chapter)}"
    for gist in memory["gists"]:
        yield f"{gist['id']}  gist of {gist['policy']} ({_marks(gist)}): {_text(gist)}"
    for part in ("facts", "claims", "threads", "quotes", "notes"):
        for entry in memory[part]:
            if entry["on_path"] and entry["state"] in ("valid", "open"):
                name = f" {entry['name']}" if "name" in entry else ""
                pinned = ", pinned" if entry["pinned"] else ""
                yield f"{entry['id']}  {entry['kind']}{name}{pinned}: {_text(entry)}"
    for fact in memory["profile"]:
        yield f"{fact['id']}  of its owner: {_text(fact)}"
    for document in memory["documents"]:
        name = speakable(document["name"])
        yield f"{document['id']}  document {name}: {document['chars']:,} characters"
    yield from _tell_place(memory)


def _tell_place(memory: Line) -> Iterator[str]:
    route = f", is sent to {memory['route']}" if memory["route"] else ""
    yield f"lives on {memory['backend'] or 'no backend yet'}{route}"
    if (move := memory["migration"]) is not None:
        yield (
            f"moves to {move['backend']} ({move['policy']}): {move['ready']} of {move['total']} "
            f"texts ready for {move['backlog_chars']:,} characters"
        )
    for view in memory["views"]:
        yield (
            f"view of {view['policy']}: memory {view['memory_chars']:,}, "
            f"verbatim {view['verbatim_chars']:,}, debt {view['debt_chars']:,} characters"
        )
    waiting = [job for job in memory["jobs"] if job["state"] != "done"]
    quarantined = counted(len(memory["quarantine"]), "output")
    yield f"{quarantined} in quarantine, {counted(len(waiting), 'job')} waiting"


def _marks(part: Line) -> str:
    """Who wrote it, and what became of it. elsewhere: on another branch than the newest."""
    found = [part["origin"]]
    found += ["pinned"] if part["pinned"] else []
    found += ["undone"] if part.get("retired") else []
    found += [] if part["on_path"] else ["elsewhere"]
    return ", ".join(found)


def _text(part: Line) -> str:
    return speakable(" ".join(part["text"].split()))[:_MOST] or "(emptied by its owner)"
