"""A server is started and reaped whatever happens; what kept it from starting is told."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import textwrap
from pathlib import Path

import pytest

from gateway.demo.llama import (
    LlamaFailed,
    LlamaInstall,
    LlamaServer,
    _ending,
    _environment,
    default_cache,
    fetch_llama,
)
from gateway.demo.llama_process import parse_arguments
from gateway.demo.model import LlamaUnavailable


def running(program: str, tmp_path: Path) -> LlamaInstall:
    """An install whose server is a small program of the test's."""
    script = tmp_path / "server.py"
    script.write_text(textwrap.dedent(program))
    return LlamaInstall((sys.executable, str(script)), tmp_path / "none.gguf", "none")


HEALTHY = """
    import http.server, sys

    class Health(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()

    port = int(sys.argv[sys.argv.index("--port") + 1])
    http.server.HTTPServer(("127.0.0.1", port), Health).serve_forever()
"""


async def test_it_serves_within_its_context_and_is_reaped_after_it(tmp_path: Path) -> None:
    server = LlamaServer(running(HEALTHY, tmp_path), window=512)
    async with server:
        assert server.process is not None
        assert server.process.poll() is None
        assert server.url.startswith("http://127.0.0.1:")
    assert server.process.returncode == -signal.SIGTERM


async def test_it_is_reaped_when_its_user_fails(tmp_path: Path) -> None:
    server = LlamaServer(running(HEALTHY, tmp_path), window=512)
    with pytest.raises(ZeroDivisionError):
        async with server:
            raise ZeroDivisionError
    assert server.process is not None
    assert server.process.returncode == -signal.SIGTERM


async def test_it_is_reaped_when_the_start_is_cancelled(tmp_path: Path) -> None:
    silent = "import time\ntime.sleep(600)"
    server = LlamaServer(running(silent, tmp_path), window=512)
    starting = asyncio.create_task(server.start())
    while server.process is None:
        await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert server.process.returncode == -signal.SIGTERM


async def test_one_that_is_never_ready_is_reaped_and_named(tmp_path: Path) -> None:
    log = tmp_path / "log"
    silent = "import time\ntime.sleep(600)"
    server = LlamaServer(running(silent, tmp_path), window=512, log=log, patience=0.2)
    with pytest.raises(LlamaFailed, match=r"was not ready within 0\.2 s"):
        await server.start()
    assert server.process is not None
    assert server.process.returncode == -signal.SIGTERM


async def test_one_that_ends_early_tells_its_last_words(tmp_path: Path) -> None:
    words = 'print("first"); print("no model here"); raise SystemExit(3)'
    server = LlamaServer(running(words, tmp_path), window=512, log=tmp_path / "log")
    with pytest.raises(LlamaFailed, match=r"ended with exit code 3(?s:.*)no model here"):
        await server.start()
    assert server.log_tail(1) == "no model here"


async def test_a_file_that_is_no_model_ends_the_real_server(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    model = tmp_path / "broken.gguf"
    model.write_bytes(b"GGUF but not for long")
    install = LlamaInstall((sys.executable, "-m", "gateway.demo.llama_process"), model, "broken")
    # Its very last line is lost where it ends before its logger has written it.
    with pytest.raises(LlamaFailed, match=r"ended with exit code 1(?s:.*)failed to load model"):
        await LlamaServer(install, window=512).start()


async def test_stopping_twice_is_stopping_once(tmp_path: Path) -> None:
    async with LlamaServer(running(HEALTHY, tmp_path), window=512) as server:
        await server.stop()
    await server.stop()


async def test_a_second_start_is_refused(tmp_path: Path) -> None:
    async with LlamaServer(running(HEALTHY, tmp_path), window=512) as server:
        with pytest.raises(RuntimeError, match="started already"):
            await server.start()


@pytest.mark.parametrize(
    ("slots", "window", "pinned", "context", "cache"),
    [
        (1, 2048, False, 2048, 1024),  # 1 × 2,048
        (4, 2048, True, 8192, 0),  # 4 × 2,048; pinned slots keep nothing in RAM
    ],
)
async def test_the_whole_command_line_is_understood(
    tmp_path: Path, slots: int, window: int, pinned: bool, context: int, cache: int
) -> None:
    echo = "import sys\nprint(*sys.argv[1:], sep='\\n')\nraise SystemExit(0)"
    log = tmp_path / "log"
    server = LlamaServer(
        running(echo, tmp_path), window=window, slots=slots, pinned=pinned, log=log
    )
    with pytest.raises(LlamaFailed):
        await server.start()
    chosen = parse_arguments(log.read_text().splitlines())
    assert (chosen.parallel, chosen.ctx_size, chosen.cache_ram) == (slots, context, cache)
    assert chosen.batch_size == 512
    assert (chosen.host, chosen.model) == ("127.0.0.1", str(tmp_path / "none.gguf"))
    assert not (chosen.kv_unified or chosen.context_shift or chosen.webui)
    assert chosen.offline
    assert chosen.jinja


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "ended with exit code 0"),
        (1, "ended with exit code 1"),
        (-9, "died of SIGKILL"),
        (-4, "died of SIGILL: its build uses instructions that this processor lacks"),
    ],
)
def test_endings_have_names(code: int, words: str) -> None:
    assert _ending(code) == words


def test_settings_of_another_server_stay_outside() -> None:
    environ = {"LLAMA_ARG_HOST": "0.0.0.0", "LLAMA_API_KEY": "k", "HF_TOKEN": "t", "PATH": "/bin"}
    assert _environment(environ) == {"PATH": "/bin", "OMP_WAIT_POLICY": "passive"}


def test_a_wait_policy_of_ones_own_is_kept() -> None:
    assert _environment({"OMP_WAIT_POLICY": "active"}) == {"OMP_WAIT_POLICY": "active"}


@pytest.mark.parametrize(
    ("environ", "cache"),
    [
        ({}, ".cache/foldgate"),
        ({"FOLDGATE_CACHE": ""}, ".cache/foldgate"),
        ({"FOLDGATE_CACHE": "/var/cache/x"}, "/var/cache/x"),
    ],
)
def test_where_files_are_kept(environ: dict[str, str], cache: str) -> None:
    assert default_cache(environ) == Path(cache)


def test_a_server_of_ones_own_must_be_executable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = tmp_path / "llama-server"
    plain.write_text("#!/bin/sh\n")
    monkeypatch.setenv("FOLDGATE_LLAMA_SERVER", os.fspath(plain))
    with pytest.raises(LlamaUnavailable, match="names no executable"):
        fetch_llama(tmp_path, lambda _: None)
