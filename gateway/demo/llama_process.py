"""llama.cpp's own HTTP server in a process of its own, from the `xllamacpp` wheel.

The wheel holds llama.cpp's server compiled as a Python extension, so that a machine needs no
compiler and no binary of its own. This module gives it the command line of `llama-server`, as far
as the demonstration and the end-to-end tests use it, so that either can stand behind them:
`python -m gateway.demo.llama_process --model FILE --port N …`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """The flags of `llama-server` that are understood here; any other ends the process with 2."""
    parser = argparse.ArgumentParser(prog="llama-server", allow_abbrev=False)
    parser.add_argument("--model", required=True)
    parser.add_argument("--alias", required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--parallel", type=int, required=True)
    parser.add_argument("--ctx-size", type=int, required=True)
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--cache-ram", type=int, required=True)
    parser.add_argument("--kv-unified", action=argparse.BooleanOptionalAction, default=False)
    parser.add_argument("--context-shift", action=argparse.BooleanOptionalAction, default=False)
    parser.add_argument("--webui", action=argparse.BooleanOptionalAction, default=False)
    parser.add_argument("--jinja", action="store_true")
    parser.add_argument("--offline", action="store_true")
    return parser.parse_args(arguments)


def _parameters(xllamacpp: Any, chosen: argparse.Namespace) -> Any:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = chosen.model
    parameters.model_alias = {chosen.alias}
    parameters.hostnames = [chosen.host]
    parameters.port = chosen.port
    parameters.n_parallel = chosen.parallel
    parameters.n_ctx = chosen.ctx_size
    parameters.n_batch = chosen.batch_size
    parameters.kv_unified = chosen.kv_unified
    parameters.ctx_shift = chosen.context_shift
    parameters.cache_ram_mib = chosen.cache_ram
    parameters.use_jinja = chosen.jinja
    parameters.offline = chosen.offline
    parameters.ui = chosen.webui
    parameters.cpuparams.n_threads = chosen.threads
    parameters.cpuparams_batch.n_threads = chosen.threads
    return parameters


def main() -> None:
    """Serve until standard input ends, which is also what the death of the parent looks like.

    Errors: the library's RuntimeError when the model cannot be loaded or the port is taken; why
    stands before it in the library's own log on standard error.
    """
    import xllamacpp

    chosen = parse_arguments(sys.argv[1:])
    serving = xllamacpp.Server(_parameters(xllamacpp, chosen))
    sys.stdin.buffer.read()
    # The library stops its threads when the object goes; this name keeps it until here.
    del serving


if __name__ == "__main__":
    main()
