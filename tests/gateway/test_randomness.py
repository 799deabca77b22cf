from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from gateway import randomness
from gateway.randomness import random_hex


@pytest.mark.parametrize("length", [1, 10, 12, 64])
def test_a_name_has_two_digits_a_byte(length: int) -> None:
    assert re.fullmatch(f"[0-9a-f]{{{2 * length}}}", random_hex(length))


def test_no_name_comes_twice_whoever_asks() -> None:
    with ThreadPoolExecutor(4) as threads:
        names = list(threads.map(lambda _: random_hex(12), range(4_000)))
    assert len(set(names)) == 4_000


def test_every_byte_is_given_once(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[bytes] = []

    def draw(count: int) -> bytes:
        drawn.append(bytes((len(drawn) * 7 + at) % 256 for at in range(count)))
        return drawn[-1]

    monkeypatch.setattr(os, "urandom", draw)
    monkeypatch.setattr(randomness, "_pool", bytearray())
    taken = [bytes.fromhex(random_hex(16)) for _ in range(4_096 // 16)]
    assert b"".join(reversed(taken)) == drawn[0]
    random_hex(1)
    assert len(drawn) == 2


def test_a_forked_child_draws_its_own() -> None:
    random_hex(1)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, random_hex(16).encode())
        os._exit(0)
    os.waitpid(child, 0)
    told = os.read(reader, 64).decode()
    os.close(reader)
    os.close(writer)
    assert len(told) == 32
    assert told != random_hex(16)
