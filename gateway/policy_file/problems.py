"""What is wrong with a policies file, said to the person who edits it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gateway.errors import ConfigurationError
from policies.schema import KeyPath


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing to change: line and column from 1, the path of the key, what and how.

    Neither message nor hint ever holds a secret or anything that came from the environment.
    """

    line: int
    column: int
    path: str
    message: str
    hint: str = ""

    def render(self, name: str) -> str:
        """One line of text, in the form that editors and terminals jump to."""
        path = f"{self.path}: " if self.path else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{name}:{self.line}:{self.column}: {path}{self.message}{hint}"


class PolicyFileError(ConfigurationError):
    """A policies file that cannot be used, with all its problems in the order of their lines."""

    def __init__(self, name: str, problems: Iterable[Problem]) -> None:
        self.name = name
        # What stands behind an anchor is wrong once, however many aliases lead to it.
        places = {
            (one.line, one.column, one.message): one for one in sorted(problems, reverse=True)
        }
        self.problems = tuple(sorted(places.values()))
        super().__init__("\n".join(problem.render(name) for problem in self.problems))


def spell_path(path: KeyPath) -> str:
    """A path as people write it: ``models.foldgate.tiers[0].backend``."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")
