"""The memory of tails: bounded, kept after commits only, forgotten with a conversation."""

from __future__ import annotations

import pytest

from gateway.flows.views import CachedTail, ViewCache
from gateway.prompts.view import Tail, TailMessage
from gateway.store import attempts
from tests.gateway.house import House, assistant, user


def tail(chars: int) -> Tail:
    made = Tail()
    made.add(TailMessage(1, "user", '{"role":"user","content":"' + "x" * chars + '"}', None))
    return made


def cached(chars: int, head: int = 1) -> CachedTail:
    return CachedTail(0, head, head, tail(chars))


def key(conversation: int) -> tuple[int, str, str | None]:
    return (conversation, "small", None)


def test_what_was_used_longest_ago_goes_first() -> None:
    cache = ViewCache(limit_bytes=25_000)  # two tails of about 10,000 bytes, not three
    for conversation in (1, 2):
        cache.keep_tail(key(conversation), cached(10_000))
    assert cache.tail(key(1)) is not None
    cache.keep_tail(key(3), cached(10_000))
    assert [cache.tail(key(at)) is not None for at in (1, 2, 3)] == [True, False, True]


def test_a_newer_tail_takes_the_place_of_the_older() -> None:
    cache = ViewCache(limit_bytes=10_000)
    for at in range(1, 200):
        cache.keep_tail(key(1), cached(100, head=at))
    found = cache.tail(key(1))
    assert found is not None and found.head_pk == 199
    cache.keep_tail(key(2), cached(100))
    assert cache.tail(key(1)) is not None, "its size was counted once"


def test_one_tail_larger_than_the_limit_is_kept_alone() -> None:
    cache = ViewCache(limit_bytes=10)
    cache.keep_tail(key(1), cached(100))
    cache.keep_tail(key(2), cached(100))
    assert (cache.tail(key(1)), cache.tail(key(2)) is not None) == (None, True)


@pytest.mark.parametrize("letter", ["x", "я", "京", "😀"])
def test_memories_are_weighed_in_bytes_beside_the_tails(letter: str) -> None:
    """1, 2, 2 and 4 bytes a character: of ten memories of 10,000 characters as many stay as fit."""
    cache = ViewCache(limit_bytes=61_000)
    cache.keep_tail(key(1), cached(10_000))
    for fold in range(10):
        cache.keep_memory(fold, [user(letter * 10_000), assistant("")])
    kept = [fold for fold in range(10) if cache.memory(fold) is not None]
    room = {"x": 5, "я": 2, "京": 2, "😀": 1}[letter]
    assert kept == list(range(10 - room, 10))
    assert cache.tail(key(1)) is None, "it was used longest ago"
    cache.forget_memories()
    for conversation in range(2, 7):  # 5 × 10,000 < 61,000: nothing else weighs any more
        cache.keep_tail(key(conversation), cached(10_000))
    assert all(cache.tail(key(conversation)) is not None for conversation in range(2, 7))


def test_a_memory_that_is_shown_stays_before_one_that_is_not() -> None:
    cache = ViewCache(limit_bytes=25_000)
    for fold in (1, 2):
        cache.keep_memory(fold, [user("x" * 10_000)])
    assert cache.memory(1) is not None
    cache.keep_memory(3, [user("x" * 10_000)])
    assert [cache.memory(fold) is not None for fold in (1, 2, 3)] == [True, False, True]


def test_memories_are_forgotten_without_the_tails() -> None:
    cache = ViewCache()
    cache.keep_tail(key(1), cached(100))
    cache.keep_memory(7, [user("secret")])
    cache.forget_memories()
    assert (cache.memory(7), cache.tail(key(1)) is not None) == (None, True)


def test_a_conversation_is_forgotten_under_every_policy() -> None:
    cache = ViewCache(limit_bytes=50_000)
    for name, reasoning_of in (("small", None), ("wide", None), ("small", "deepseek")):
        cache.keep_tail((1, name, reasoning_of), cached(10_000))
    cache.keep_tail(key(2), cached(10_000))
    cache.keep_memory(7, [user("secret")])
    cache.forget(1)
    assert cache.tail((1, "small", None)) is None
    assert cache.tail((1, "wide", None)) is None
    assert cache.tail((1, "small", "deepseek")) is None
    assert cache.tail(key(2)) is not None
    assert cache.memory(7) is None
    for conversation in range(3, 6):  # the room is free again: 4 × 10,000 < 50,000
        cache.keep_tail(key(conversation), cached(10_000))
    assert cache.tail(key(2)) is not None


async def test_nothing_is_remembered_of_what_was_not_committed(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row number that a failed transaction gave out is given out again: to another message."""
    await house.say("one", id="c")
    with monkeypatch.context() as patch:

        def fail(*_: object, **__: object) -> int:
            raise OSError("the disk is full")

        patch.setattr(attempts, "begin_attempt", fail)
        with pytest.raises(OSError, match="full"):
            await house.say("lost", id="c")
    said = await house.say("two", id="c")
    assert [m["content"] for m in said.prompt] == ["one", "Reply 1.", "two"]
