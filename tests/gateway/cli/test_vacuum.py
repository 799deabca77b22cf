"""The database written anew."""

from __future__ import annotations

import json
import random
from pathlib import Path

from gateway.store.conversations import delete_conversation
from gateway.store.engine import Store
from tests.gateway.cli.conftest import Run
from tests.gateway.seeds import NOW, add_conversation


def test_no_page_holds_what_was_deleted(run: Run, tmp_path: Path) -> None:
    """Some 3,000 messages of 100 chats, stored in turns; 80 of them are deleted. What is left
    behind by SQLite alone varies with its version: it may be nothing."""
    draw = random.Random(7)
    path = tmp_path / "foldgate.db"
    store = Store(f"sqlite:///{path}")
    store.open()
    chats = []
    for chat in range(100):
        words = [
            f"«{chat:03d}» " + "слово 日本語 🎉 words " * draw.randint(1, 20) for _ in range(30)
        ]
        said = [{"role": "user", "content": text + str(at)} for at, text in enumerate(words)]
        chats.append(store.writing(add_conversation, said)[0])
    gone = draw.sample(range(100), 80)
    for chat in gone:
        store.writing(delete_conversation, chats[chat], elsewhere=(), now_ms=NOW)
    store.close()
    told = json.loads(run("vacuum", "--json").stdout)
    assert told["wiped"] and told["bytes_after"] < told["bytes_before"]
    held = b"".join(file.read_bytes() for file in tmp_path.glob("foldgate.db*"))
    assert [chat for chat in gone if f"«{chat:03d}»".encode() in held] == []
    assert all(f"«{chat:03d}»".encode() in held for chat in range(100) if chat not in gone)
    assert "bytes before" in run("vacuum").stdout
