"""A policies file, read strictly: as a whole or not at all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from gateway.policy_file.characters import find_forbidden
from gateway.policy_file.documents import PolicyDocument, read_documents
from gateway.policy_file.problems import PolicyFileError, Problem
from gateway.policy_file.tree import TreeError, build_tree
from gateway.policy_file.values import Values, read_values
from gateway.policy_file.wording import KINDS, find_misplaced, word_fault, word_problems
from policies.schema import FROM_FILE, Backend, Model, Part, Policy, PolicyFile, find_faults

MAX_BYTES = 1024 * 1024
"""The shipped file has about 10 thousand."""
END_MARK = "..."

_CONTEXT = {FROM_FILE: True}
_Part = TypeVar("_Part", bound=Part)


@dataclass(frozen=True, slots=True)
class LoadedPolicies:
    """One valid revision of the file.

    ``revision`` is a digest of what the file means: comments, layout, anchors and defaults that
    are written out leave it as it is. Of a secret it holds only whether it is set, so whoever
    reloads compares ``file``, which differs also where a key was changed.
    ``documents`` are the texts that policies name, by policy; the revision tells them too.
    ``ended`` says whether the text closes with YAML's end mark ``...``: a text that once had it
    and lost it was cut off.
    """

    file: PolicyFile
    revision: str
    text: str = field(repr=False)
    path: Path | None = None
    ended: bool = False
    documents: Mapping[str, Sequence[PolicyDocument]] = field(default_factory=dict)


def load_policies(path: Path, environ: Mapping[str, str]) -> LoadedPolicies:
    """Read, expand and validate the file at ``path``; PolicyFileError tells all its problems."""
    name = str(path)
    try:
        with path.open("rb") as source:
            raw = source.read(MAX_BYTES + 1)
    except OSError as error:
        hint = "name the file with --policies or FOLDGATE_POLICIES"
        problem = Problem(1, 1, "", f"the file cannot be read: {error.strerror}", hint)
        raise PolicyFileError(name, [problem]) from None
    if len(raw) > MAX_BYTES:
        problem = Problem(1, 1, "", f"the file is larger than {MAX_BYTES:,} bytes", "")
        raise PolicyFileError(name, [problem])
    return parse_policies(_decode(raw, name), name=name, environ=environ, path=path)


def parse_policies(
    text: str, *, name: str, environ: Mapping[str, str], path: Path | None = None
) -> LoadedPolicies:
    """Expand and validate the text of a file that messages call ``name``.

    Documents are named from the folder of ``path``, without it from the current one.
    """
    plain = text.removeprefix("\ufeff")
    if forbidden := list(find_forbidden(plain)):
        raise PolicyFileError(name, forbidden)
    try:
        root = build_tree(plain)
    except TreeError as error:
        raise PolicyFileError(name, [error.problem]) from None
    if root is None:
        raise PolicyFileError(name, [_shapeless(plain, "")])
    values = read_values(root, plain, environ)
    if root.kind != "mapping":
        raise PolicyFileError(name, values.problems or [_shapeless(plain, root.kind)])
    file = _validate(values, name)
    documents, problems = read_documents(file, values, Path() if path is None else path.parent)
    if problems:
        raise PolicyFileError(name, problems)
    ended = plain.rstrip().endswith("\n" + END_MARK)
    return LoadedPolicies(file, _digest(file, documents), text, path, ended, documents)


def _decode(raw: bytes, name: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode()
        line = before.count("\n") + 1
        column = len(before) - before.rfind("\n")
        message = f"the byte 0x{raw[error.start]:02x} is not UTF-8"
        problem = Problem(line, column, "", message, "save the file in UTF-8")
        raise PolicyFileError(name, [problem]) from None


def _shapeless(text: str, kind: str) -> Problem:
    hint = "the keys version, backends, policies and models are needed"
    what = {"list": "is a list", "scalar": "is plain text"}.get(kind, "holds only comments")
    if not text.strip():
        what = "is empty"
    return Problem(1, 1, "", f"the file {what}, where a mapping is needed", hint)


def _validate(values: Values, name: str) -> PolicyFile:
    problems = [*values.problems, *find_misplaced(values)]
    try:
        file = PolicyFile.model_validate(values.root, context=_CONTEXT)
    except ValidationError as error:
        problems += word_problems(error, values)
        problems += _find_faults(values)
        raise PolicyFileError(name, problems) from None
    if problems:
        raise PolicyFileError(name, problems)
    return file


def _find_faults(values: Values) -> list[Problem]:
    """What is wrong between the parts, as far as the parts can be known."""
    backends: dict[str, Backend | None] = {}
    policies: dict[str, Policy | None] = {}
    models: dict[str, Model | None] = {}
    lookups: list[str] = []
    unsure = {str(path[1]) for path in values.broken if path[:1] == ("policies",) and path[1:]}
    for path in (path for path in values.keys if len(path) == 2):
        section, name = str(path[0]), str(path[1])
        part = values.root.get(section, {}).get(name)
        if section == "backends":
            kind = KINDS.get(str(part.get("kind"))) if isinstance(part, dict) else None
            backends[name] = _salvage(kind, part)[0] if kind else None
        elif section == "policies":
            policies[name], whole = _salvage(Policy, part)
            unsure |= set() if whole else {name}
        elif section == "lookups":
            lookups.append(name)
        elif section == "models":
            models[name] = _salvage(Model, part)[0]
    return [
        word_fault(fault.path, fault.message, fault.hint, values)
        for fault in find_faults(backends, policies, models, unsure, lookups=lookups)
    ]


def _salvage(model: type[_Part], part: object) -> tuple[_Part | None, bool]:
    """A part, without its invalid keys if it has some and can do without them; and whether it
    is whole."""
    try:
        return model.model_validate(part, context=_CONTEXT), True
    except ValidationError as error:
        for item in error.errors(include_url=False, include_input=False):
            part = _without(part, item["loc"])
    try:
        return model.model_validate(part, context=_CONTEXT), False
    except ValidationError:
        return None, False


def _without(part: object, loc: tuple[int | str, ...]) -> object:
    if not isinstance(part, dict) or not loc:
        return part
    if len(loc) == 1 or not isinstance(part.get(loc[0]), dict):
        return {key: value for key, value in part.items() if key != loc[0]}
    return {**part, loc[0]: _without(part[loc[0]], loc[1:])}


def _digest(file: PolicyFile, documents: Mapping[str, Sequence[PolicyDocument]]) -> str:
    meaning = json.dumps(file.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)
    if documents:
        told = {name: [(one.name, one.text) for one in of] for name, of in documents.items()}
        meaning += json.dumps(told, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(meaning.encode()).hexdigest()[:16]
