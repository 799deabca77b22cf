"""The command as a whole: what it lists, and how it says that it was used wrongly."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gateway.cli import _COMMANDS, _HELP
from tests.gateway.cli.conftest import Run


def test_help_lists_every_command_and_imports_none(run: Run) -> None:
    shown = run("--help")
    assert shown.exit_code == 0
    assert set(_COMMANDS) == set(_HELP)
    for name in _COMMANDS:
        assert f"\n  {name} " in shown.stdout


def test_asking_for_help_loads_neither_server_nor_store() -> None:
    code = (
        "import sys; from gateway.cli import main; main(['--help'], standalone_mode=False);"
        "print([m for m in sys.modules if m.split('.')[0] in"
        " ('fastapi', 'sqlalchemy', 'litellm', 'tiktoken', 'uvicorn')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "arguments",
    [
        ("nothing",),
        ("serve", "--port", "x"),
        ("conversations", "list"),
        ("conversations", "list", "--database-url", "mysql://x"),
        ("conversations", "export", "conv_1", "--json"),
    ],
    ids=["command", "port", "no database", "other database", "json without a file"],
)
def test_wrong_use_ends_with_2_and_one_message(run: Run, arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()


def test_all_problems_of_a_policies_file_are_told(run: Run) -> None:
    with open("policies.yaml", "w") as file:
        file.write("version: 2\nbackends: {}\npolicies: {}\nmodels: {}\n")
    done = run("serve", "--port", "0")
    assert done.exit_code == 2
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("foldgate: policies.yaml:1:")
