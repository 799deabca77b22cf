"""What stands in deploy/ is linted, and says nothing that the program does not understand."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from gateway.cli import main
from gateway.demo.llama import LlamaInstall, LlamaServer
from gateway.policy_file.loading import load_policies
from gateway.settings import read_settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
SECRETS = {
    "FOLDGATE_KEYS": "ann=k1,bob=k2",
    "FOLDGATE_ADMIN_KEY": "k3",
    "LLAMA_API_KEY": "k4",
    "LLAMA_MODEL": "glm.gguf",
    "DEEPSEEK_API_KEY": "",
}


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def instructions(name: str) -> list[str]:
    """The arguments of every instruction `name` of the Dockerfile's last stage."""
    text = re.sub(r"\\\n", " ", (DEPLOY / "Dockerfile").read_text())
    last = text[text.rindex("\nFROM ") :]
    return [line.removeprefix(name).strip() for line in last.splitlines() if line.startswith(name)]


def image_environment() -> dict[str, str]:
    words = [word for line in instructions("ENV") for word in shlex.split(line)]
    return dict(word.split("=", 1) for word in words)


def interpolate(value: str) -> str:
    """Compose's `${NAME}`, `${NAME:-default}` and `${NAME:?message}`."""

    def replace(match: re.Match[str]) -> str:
        name, sign, rest = match.groups()
        given = SECRETS.get(name, "")
        if sign == ":?" or sign is None:
            assert name in SECRETS, f"{name} is not among those that README.md asks for"
        return given or (rest if sign == ":-" else "")

    return re.sub(r"\$\{(\w+)(?:(:[-?])([^}]*))?\}", replace, value)


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert isinstance(loaded, dict)
    return loaded


def serve_context(words: list[str]) -> click.Context:
    """`foldgate serve …` as click understands it; an unknown flag raises."""
    assert words[:2] == ["foldgate", "serve"]
    assert isinstance(main, click.Group)
    command = main.get_command(click.Context(main), "serve")
    assert command is not None
    return command.make_context("serve", words[2:])


def test_the_dockerfile_passes_its_linter() -> None:
    linter = shutil.which("hadolint", path=Path(sys.executable).parent)
    assert linter, "hadolint comes with make setup on Linux x86-64"
    done = run(linter, "deploy/Dockerfile")
    assert (done.returncode, done.stdout) == (0, "")


def test_the_yaml_passes_its_linter() -> None:
    files = sorted(str(path.relative_to(ROOT)) for path in DEPLOY.glob("*.yaml"))
    done = run(sys.executable, "-m", "yamllint", "--strict", "-c", "deploy/.yamllint", *files)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_runs_a_command_that_exists() -> None:
    (command,) = instructions("CMD")
    context = serve_context(json.loads(command))
    assert (context.params["host"], context.params["port"]) == ("0.0.0.0", 8400)
    assert instructions("EXPOSE") == ["8400"]
    (check,) = instructions("HEALTHCHECK")
    assert "http://127.0.0.1:8400/readyz" in check


def test_the_image_copies_only_what_its_context_holds() -> None:
    kept = {
        line.removeprefix("!")
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    text = (DEPLOY / "Dockerfile").read_text()
    copied = {
        word
        for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.MULTILINE)
        for word in line.split()[:-1]
    }
    assert copied == kept
    assert all((ROOT / name).exists() for name in kept)


def test_the_image_does_not_run_as_root() -> None:
    assert instructions("USER") == ["10001"]


def test_the_environment_of_the_image_is_read() -> None:
    settings = read_settings({**image_environment(), **SECRETS}, host="0.0.0.0")
    assert settings.database_url == "sqlite:////data/foldgate.db"
    assert settings.policies == Path("/etc/foldgate/policies.yaml")
    assert set(settings.keys.values()) == {"ann", "bob"}


def test_the_gateway_of_compose_listens_on_loopback_with_keys(compose: dict[str, Any]) -> None:
    gateway = compose["services"]["gateway"]
    assert gateway["ports"] == ["127.0.0.1:8400:8400"]
    environ = {name: interpolate(value) for name, value in gateway["environment"].items()}
    settings = read_settings({**image_environment(), **environ}, host="0.0.0.0")
    assert set(settings.keys) == {"k1", "k2"}
    assert settings.admin_key == "k3"
    assert settings.log == "json"


def test_compose_mounts_policies_that_load(compose: dict[str, Any]) -> None:
    gateway = compose["services"]["gateway"]
    assert "./policies.yaml:/etc/foldgate/policies.yaml:ro" in gateway["volumes"]
    environ = {name: interpolate(value) for name, value in gateway["environment"].items()}
    loaded = load_policies(DEPLOY / "policies.yaml", environ)
    local = loaded.file.backends["local"]
    assert str(getattr(local, "url", "")).rstrip("/") == "http://llama:8080"
    assert "llama" in compose["services"]


def test_every_volume_and_network_is_declared(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        assert set(service["networks"]) <= set(compose["networks"])
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            assert source.startswith("./") or source in compose["volumes"]
    assert compose["services"]["llama"]["networks"] == ["inside"]
    assert compose["networks"]["inside"] == {"internal": True}


def test_llama_server_is_started_with_the_flags_that_the_end_to_end_tests_use(
    compose: dict[str, Any],
) -> None:
    command = [interpolate(str(word)) for word in compose["services"]["llama"]["command"]]
    install = LlamaInstall(("llama-server",), Path("/models/glm.gguf"), "local")
    tested = LlamaServer(install, window=65536, slots=2)._arguments(8080)
    flags = {word for word in command if word.startswith("--")}
    assert flags <= {word for word in tested if word.startswith("--")}

    def value(words: list[str], flag: str) -> str:
        return words[words.index(flag) + 1]

    for flag in ("--model", "--alias", "--port", "--parallel", "--ctx-size"):
        assert value(command, flag) == value(tested, flag)
    for switch in ("--no-kv-unified", "--no-context-shift", "--offline"):
        assert switch in command


def unit() -> dict[str, str]:
    pairs = re.findall(r"^(\w+)=(.*)$", (DEPLOY / "foldgate.service").read_text(), re.MULTILINE)
    return dict(pairs)


def test_the_unit_runs_a_command_that_exists() -> None:
    words = shlex.split(unit()["ExecStart"])
    assert words[0] == "/opt/foldgate/.venv/bin/foldgate"
    context = serve_context(["foldgate", *words[1:]])
    assert context.params["host"] == "127.0.0.1"
    folder = f"/var/lib/{unit()['StateDirectory']}"
    assert context.params["database_url"] == f"sqlite:///{folder}/foldgate.db"
    assert unit()["WorkingDirectory"] == folder


def test_the_unit_passes_its_linter(tmp_path: Path) -> None:
    linter = shutil.which("systemd-analyze")
    if linter is None:
        pytest.skip("systemd-analyze is not on this machine")
    text = (DEPLOY / "foldgate.service").read_text()
    copy = tmp_path / "foldgate.service"
    # The linter wants the command to be there; it is where README.md puts it.
    copy.write_text(text.replace("/opt/foldgate/.venv/bin/foldgate", sys.executable))
    done = run(linter, "verify", os.fspath(copy))
    assert (done.returncode, done.stderr) == (0, "")


def pins(path: Path) -> dict[str, str]:
    found = re.findall(r"^([\w.-]+)==(\S+)", path.read_text(), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in found}


def test_the_image_holds_the_versions_that_were_tested() -> None:
    shipped, tested = pins(DEPLOY / "requirements.txt"), pins(ROOT / "constraints.txt")
    assert shipped.items() <= tested.items()


def test_what_the_program_needs_is_pinned_with_hashes() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    shipped = pins(DEPLOY / "requirements.txt")
    for text in project["dependencies"]:
        needed = Requirement(text)
        assert needed.specifier.contains(shipped[canonicalize_name(needed.name)])
    for path in (DEPLOY / "requirements.txt", ROOT / "constraints.txt"):
        entries = re.split(r"^(?=[\w.-]+==)", path.read_text(), flags=re.MULTILINE)[1:]
        assert all("--hash=sha256:" in entry for entry in entries)
