"""The files that policies name as documents, read together with the policies file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gateway.policy_file.problems import Problem, spell_path
from gateway.policy_file.values import Values
from policies.budget import first_ratio, limits_of
from policies.schema import KeyPath, Policy, PolicyFile

MOST_BYTES = 1024 * 1024
"""What a file may have to be read at all; the view sets a far narrower bound."""
_FRAME = 40
"""What stands around a text in a view, in characters, besides its name."""


@dataclass(frozen=True, slots=True)
class PolicyDocument:
    """A file that a policy names, as it was read. name: of the file, without its folders."""

    name: str
    text: str


class _Unfit(Exception):
    """A document that cannot be used; the message says why, the hint what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def read_documents(
    file: PolicyFile, values: Values, folder: Path
) -> tuple[dict[str, tuple[PolicyDocument, ...]], list[Problem]]:
    """The documents of each policy that names any, and what is wrong with those that are named.

    Names are taken from the folder of the policies file. What a policy names must fit its view as
    a whole: beside gist, chapters, profile and ledger and with the least verbatim.
    """
    found: dict[str, tuple[PolicyDocument, ...]] = {}
    problems: list[Problem] = []
    for name, policy in file.policies.items():
        if policy.documents:
            reader = _Reader(values, ("policies", name, "documents"), folder)
            found[name] = tuple(reader.read(policy))
            problems += reader.problems
    return found, problems


class _Reader:
    def __init__(self, values: Values, path: KeyPath, folder: Path) -> None:
        self._values = values
        self._path = path
        self._folder = folder
        self.problems: list[Problem] = []

    def read(self, policy: Policy) -> Iterator[PolicyDocument]:
        texts: dict[str, str] = {}
        for index, named in enumerate(policy.documents):
            try:
                place = self._folder / named
                if place.name in texts:
                    raise _Unfit("another document of this policy has the same file name")
                texts[place.name] = _read(place)
                yield PolicyDocument(place.name, texts[place.name])
            except _Unfit as error:
                self._add((*self._path, index), str(error), error.hint)
        size = sum(len(name) + len(text) + _FRAME for name, text in texts.items())
        room = limits_of(policy, first_ratio("\n".join(texts.values()))).documents
        if size > room:
            message = (
                f"the documents have {size:,} characters together, and {room:,} is what the "
                "view leaves beside gist, chapters, profile, ledger and the least verbatim"
            )
            self._add(self._path, message, "shorten them, lower keep or raise start")

    def _add(self, path: KeyPath, message: str, hint: str) -> None:
        node = self._values.nodes.get(path)
        line, column = (1, 1) if node is None else (node.line, node.column)
        self.problems.append(Problem(line, column, spell_path(path), message, hint))


def _read(place: Path) -> str:
    try:
        with place.open("rb") as source:
            raw = source.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or "its name is none"
        hint = "write its name as seen from the policies file, or its full path"
        raise _Unfit(f"the document cannot be read: {said}", hint) from None
    if len(raw) > MOST_BYTES:
        raise _Unfit(f"the document is larger than {MOST_BYTES:,} bytes")
    try:
        text = raw.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        byte = raw[error.start]
        raise _Unfit(
            f"the document's byte {error.start:,}, 0x{byte:02x}, is not UTF-8",
            "save the file in UTF-8",
        ) from None
    if "\x00" in text:
        raise _Unfit("the document holds a NUL character: it is no text")
    if not text.strip():
        raise _Unfit("the document is empty")
    return text
