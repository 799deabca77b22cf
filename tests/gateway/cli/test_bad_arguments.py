"""Every argument and option of every command, given what nobody means: an error in a line."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from gateway.cli import main
from gateway.cli.arguments import LONGEST_DAYS, parse_moment
from gateway.cli.lines import one_line, speakable
from tests.gateway.cli.conftest import Run, Seeded

NASTY = {
    "no UTF-8": "a\udcff",
    "half a letter": "\udced\udca0\udc80",  # as a command line brings the bytes ED A0 80
    "long": "x" * 10_000,
    "negative": "-1",
    "emoji": "😀",
    "right to left": "\u202eשלום",
    "lines": "a\nb",
    "huge": "99999999999999d",
}
FILES = {"bytes.txt": b'\xff\xfe{"a": \xed\xa0\x80}', "deep.txt": b"[" * 100_000, "none.txt": b""}
REQUIRED = {
    "file": "policies.yaml",
    "files": "policies.yaml",
    "folder": ".",
    "id": "nobody",
    "ids": "nobody",
    "name": "nobody",
    "text": "a fact",
    "to": "to.db",
}
# What a command may do with a good name is not for this walk: these start servers.
SERVERS = {"demo", "serve"}

Path_ = tuple[str, ...]


def commands(command: click.Command, path: Path_ = ()) -> Iterator[tuple[Path_, click.Command]]:
    """Every command that does something, and the words it is asked for by."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, (*path, name))
        if not command.invoke_without_command:
            return
    yield path, command


COMMANDS = dict(commands(main))


def lines_of(command: click.Command, tried: click.Parameter, value: str) -> list[str]:
    """The arguments of a call in which only this one is not as it should be."""
    found: list[str] = []
    for parameter in command.params:
        if parameter is tried or parameter.required:
            given = value if parameter is tried else REQUIRED[str(parameter.name)]
            is_option = isinstance(parameter, click.Option)
            found += [parameter.opts[0], given] if is_option else [given]
    return found


def check_told(done: Result, arguments: list[str]) -> None:
    """Ended by itself; where not well, then with one line that says why."""
    assert done.exception is None or isinstance(done.exception, SystemExit), arguments
    assert done.exit_code in (0, 1, 2), arguments
    assert "Traceback" not in done.output
    if done.exit_code == 2:
        told = [one for one in done.stderr.splitlines() if not one.startswith(("Usage:", "Try "))]
        assert len([one for one in told if one]) == 1, (arguments, done.stderr)
    assert all(len(line) < 1_200 for line in done.stderr.splitlines()), arguments


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_no_argument_ends_in_a_traceback(
    path: Path_, run: Run, seeded: Seeded, tmp_path: Path
) -> None:
    command = COMMANDS[path]
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
    for parameter in command.params:
        if getattr(parameter, "is_flag", False):
            continue
        values = [*NASTY.values(), *FILES]
        if path[0] in SERVERS:
            refused = {"out": [], "host": ["a\udcff", "x" * 10_000]}
            values = refused.get(str(parameter.name), values)
        for value in values:
            arguments = [*path, *lines_of(command, parameter, value)]
            done = CliRunner().invoke(main, arguments)
            check_told(done, [ascii(one)[:40] for one in arguments])


@pytest.mark.parametrize(
    "arguments",
    [
        ("jobs", "show"),
        ("jobs", "cancel"),
        ("jobs", "retry"),
        ("conversations", "show"),
        ("conversations", "export"),
        ("conversations", "delete", "--yes"),
        ("memories", "delete", "--yes"),
        ("scrub",),
        ("policies", "explain", "--conversation"),
        ("eval", "audit", "--conversation"),
    ],
    ids=" ".join,
)
def test_what_nobody_is_called_is_not_found(
    arguments: tuple[str, ...], run: Run, seeded: Seeded
) -> None:
    for id in ("a\udcff", "\ud800", "x" * 10_000, "😀", "שלום"):
        done = run(*arguments, id)
        assert (done.exit_code, done.stdout) == (1, "")
        (line,) = [one for one in done.stderr.splitlines() if not one.startswith("without the pol")]
        assert line.startswith("foldgate: ") and " no " in line
        assert line == speakable(line)


def test_an_owner_is_written_in_letters(run: Run, seeded: Seeded) -> None:
    done = run("memories", "add", "a fact", "--owner", "a\udcff")
    assert done.exit_code == 2
    assert done.stderr.endswith("Error: Invalid value for '--owner': 'a\ufffd' is not UTF-8.\n")


def test_a_backup_is_kept_for_a_hundred_years_at_most(run: Run, seeded: Seeded) -> None:
    for long in ("99999999999999d", f"{LONGEST_DAYS + 1}d", "876001h"):  # 36,500 * 24 = 876,000
        done = run("backup", "--expires", long)
        assert done.exit_code == 2
        assert done.stderr.endswith(f"'{long}' is too long; 36500d (100 years) is the most.\n")
    assert run("backup", "--expires", f"{LONGEST_DAYS}d").exit_code == 0


def test_what_happened_since_is_a_day_of_the_calendar(run: Run, seeded: Seeded) -> None:
    for moment in ("9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"):
        done = run("stats", "--since", moment)
        assert done.exit_code == 2
        assert "neither a duration such as 7d nor a date and time" in done.stderr
    assert parse_moment("1970-01-02") == 86_400_000
    assert parse_moment("1969-12-31") == 0


def test_stored_half_letters_are_shown(run: Run, seeded: Seeded) -> None:
    with closing(sqlite3.connect(seeded.path)) as connection:
        connection.execute("UPDATE jobs SET error = 'half \x1b[31m'")
        connection.commit()
    shown = run("conversations", "show", "chat-1")
    assert "half \ufffd, 全部, 👍" in shown.stdout
    assert "half \ufffd[31m" in run("jobs", "list").stdout
    assert "half \\\\ud83d" in run("conversations", "export", "chat-1").stdout


@pytest.mark.parametrize("charset", ["ascii", "latin-1", "utf-8"])
def test_any_terminal_can_be_written_to(charset: str, run: Run, seeded: Seeded) -> None:
    for arguments in (
        ("conversations", "show", "chat-1"),
        ("conversations", "show", "chat-1", "--json"),
        ("conversations", "export", "chat-1"),
        ("doctor", "--policies", "a\udcff"),
    ):
        done = CliRunner(charset=charset).invoke(main, arguments)
        assert done.exception is None or isinstance(done.exception, SystemExit)


def test_a_folder_that_cannot_be_read_is_told(run: Run, seeded: Seeded) -> None:
    done = run("memories", "export", "--out", "x" * 300)
    assert (done.exit_code, done.stderr) == (1, f"foldgate: {'x' * 300}: File name too long\n")


def test_an_answer_that_is_no_text_is_no(run: Run, seeded: Seeded) -> None:
    done = CliRunner().invoke(main, ["conversations", "delete", "chat-1"], input=b"\xff\n")
    assert done.exit_code == 1
    assert run("conversations", "show", "chat-1").exit_code == 0


def test_one_line_shows_both_ends() -> None:
    assert one_line("a\nb\tc\x1b") == "a b c\ufffd"
    assert one_line("a" * 999 + "z") == "a" * 999 + "z"
    assert one_line("a" * 1_000 + "z") == "a" * 700 + " … " + "a" * 299 + "z"
