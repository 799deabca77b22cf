"""Measure, and print one JSON object as the last line. Progress goes to standard error.

Everything is measured in one run and in alternating rounds, so that whatever else the machine does
hits the upstream, the relay and the gateway alike. Figures are medians over the rounds.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from statistics import median
from time import perf_counter

import uvloop

from bench.load import Load, NextRequest, run_load
from bench.servers import Gateway, gateway, running
from bench.talk import history, name_conversation, newest, post, say, turns
from bench.upstream import REPLY

ROUNDS = 7
ALONE = 300
"""Requests of one round at one connection."""
CONNECTIONS = 16
ROUND_SECONDS = 1.5
"""Of a round with all connections busy."""
STARTS = 3
LONG, SHORT = 5_000, 50
COMPARED = 10
"""Turns of a round in the long conversation, and in the short one."""
RESENDS = 12

Figures = dict[str, float]


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="foldgate-bench-") as folder, ExitStack() as stack:
        upstream = stack.enter_context(running("bench.upstream"))
        relay = stack.enter_context(running("bench.relay", f"http://127.0.0.1:{upstream}"))
        figures: Figures = {}
        with _telling("starts"):
            ready_s = _measure_starts(Path(folder), upstream)
        place = Path(folder) / "measured"
        place.mkdir()
        served = stack.enter_context(gateway(place, upstream))
        figures |= uvloop.run(_measure(upstream, relay, served))
        figures |= {"ready_s": ready_s, "rss_mb": served.rss_mb}
    rounded = {name: round(value, 3) for name, value in figures.items()}
    sys.stdout.write(json.dumps(rounded) + "\n")


def _measure_starts(folder: Path, upstream: int) -> float:
    """Seconds from a start on no database yet to the first 200 of /readyz."""
    seconds = []
    for number in range(STARTS):
        place = folder / f"start-{number}"
        place.mkdir()
        with gateway(place, upstream) as started:
            seconds.append(started.ready_s)
    return median(seconds)


async def _measure(upstream: int, relay: int, served: Gateway) -> Figures:
    figures: Figures = {}
    with _telling("one connection"):
        figures |= await _measure_alone(upstream, relay, served.port)
    with _telling("requests"):
        figures["relay_rps"], figures["rps"] = await _measure_rates(relay, served.port)
    with _telling("streams"):
        figures["relay_streams_per_s"], figures["streams_per_s"] = await _measure_rates(
            relay, served.port, stream=True
        )
    with _telling("a long conversation"):
        figures["long_vs_short"] = await _compare_lengths(served.port)
    with _telling("a history sent again"):
        figures["resend_5000_ms"] = await _measure_resends(served.port)
    return figures


async def _measure_alone(upstream: int, relay: int, served: int) -> Figures:
    """Latencies at one connection; added is the gateway's beyond the upstream's own."""
    seconds: dict[int, list[float]] = {upstream: [], relay: [], served: []}
    for number in range(ROUNDS + 1):
        for port, all_seconds in seconds.items():
            load = await run_load(port, [_some(ALONE)])
            if number:  # the first round warms up
                all_seconds.append(load.p50_ms)
    upstream_ms, relay_ms, served_ms = (median(rounds) for rounds in seconds.values())
    return {
        "upstream_p50_ms": upstream_ms,
        "relay_p50_ms": relay_ms,
        "p50_ms": served_ms,
        "added_p50_ms": served_ms - upstream_ms,
    }


def _some(count: int) -> NextRequest:
    requests = islice(turns(), count)
    return lambda: next(requests, None)


async def _measure_rates(relay: int, served: int, *, stream: bool = False) -> tuple[float, float]:
    """Answers a second with all connections busy, of the relay and of the gateway."""
    rates: dict[int, list[float]] = {relay: [], served: []}
    for number in range(ROUNDS + 1):
        for port, all_rates in rates.items():
            load = await _busy(port, stream)
            if number:
                all_rates.append(load.rate)
    return median(rates[relay]), median(rates[served])


async def _busy(port: int, stream: bool) -> Load:
    limit = perf_counter() + ROUND_SECONDS
    return await run_load(port, [_until(limit, stream) for _ in range(CONNECTIONS)])


def _until(limit: float, stream: bool) -> NextRequest:
    requests = turns(stream=stream)
    return lambda: next(requests) if perf_counter() < limit else None


async def _compare_lengths(port: int) -> float:
    """The median turn in a conversation of LONG messages over that in one of SHORT."""
    long = name_conversation()
    await _ask(port, [post(history(LONG - 1), long)])
    taken: dict[str, list[float]] = {"long": [], "short": []}
    for _ in range(3 * ROUNDS):
        short = name_conversation()
        await _ask(port, [post(history(SHORT - 1), short)])
        for kind, conversation in (("long", long), ("short", short)):
            load = await _ask(port, [newest(conversation) for _ in range(COMPARED + 1)])
            taken[kind] += load.seconds[1:]
    return median(taken["long"]) / median(taken["short"])


async def _measure_resends(port: int) -> float:
    """A client that sends all it knows: LONG messages that are stored, and a new one."""
    conversation = name_conversation()
    known = history(LONG - 1)
    await _ask(port, [post(known, conversation)])
    taken = []
    for _ in range(RESENDS + 2):
        known = [*known, {"role": "assistant", "content": REPLY}, say()]
        load = await _ask(port, [post(known, conversation)])
        taken.append(load.p50_ms)
    return median(taken[2:])


async def _ask(port: int, requests: list[bytes]) -> Load:
    waiting = iter(requests)
    return await run_load(port, [lambda: next(waiting, None)])


@contextmanager
def _telling(what: str) -> Iterator[None]:
    began = perf_counter()
    yield
    sys.stderr.write(f"{what}: {perf_counter() - began:.1f} s\n")


if __name__ == "__main__":
    main()
