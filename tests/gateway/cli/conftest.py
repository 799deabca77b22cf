"""The command over a database with two owners' conversations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gateway.cli import main
from gateway.store.engine import Store
from gateway.store.transcript import ConversationRow, Node
from tests.gateway.seeds import NOW, POLICIES, add_conversation, add_memory, extend, talk

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("jobs", "list")`, in an empty folder, without anybody's environment."""
    monkeypatch.chdir(tmp_path)
    for name in ("FOLDGATE_POLICIES", "FOLDGATE_DATABASE_URL", "FOLDGATE_KEYS"):
        monkeypatch.delenv(name, raising=False)

    def run_command(*arguments: str, input: str | None = None) -> Result:
        return CliRunner().invoke(main, list(arguments), input=input, catch_exceptions=False)

    return run_command


@dataclass
class Seeded:
    """`mine` has a memory and a second branch; `hers` belongs to anna."""

    path: Path
    mine: ConversationRow
    nodes: list[Node]
    other: Node
    hers: ConversationRow


@pytest.fixture
def seeded(tmp_path: Path, run: Run) -> Seeded:
    (tmp_path / "policies.yaml").write_text(POLICIES)
    path = tmp_path / "foldgate.db"
    store = Store(f"sqlite:///{path}")
    store.open()
    said = [*talk(3), {"role": "user", "content": "half \ud83d, 全部, 👍"}]
    mine, nodes = store.writing(add_conversation, said, alias="chat-1")
    store.writing(add_memory, mine, nodes)
    other = store.writing(extend, mine, nodes[4], [{"role": "assistant", "content": "or so"}])
    store.writing(extend, mine, nodes[5], [said[-1]], NOW + 1)
    hers, _ = store.writing(add_conversation, talk(1), owner="anna", user="u1")
    store.close()
    return Seeded(path, mine, nodes, other[0], hers)
