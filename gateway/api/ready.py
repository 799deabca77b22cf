"""Taking what is ready without waiting, and telling it before anything is waited for."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


async def batch(items: AsyncGenerator[T], flush: Callable[[], Awaitable[None]]) -> AsyncIterator[T]:
    """The items in order; `flush` is awaited each time that the next one has to be waited for.

    So whoever collects what it is given, and sends it in `flush`, sends together what came
    together and holds back nothing. An error of `flush` is told to the items, as if it had come
    while they were waited for.
    """
    while True:
        try:
            item = await _Next(items, flush)
        except StopAsyncIteration:
            return
        yield item


class _Next(Generic[T]):
    """The next item, as an awaitable that sees whether it is there at once."""

    __slots__ = ("_flush", "_items")

    def __init__(self, items: AsyncGenerator[T], flush: Callable[[], Awaitable[None]]) -> None:
        self._items = items
        self._flush = flush

    def __await__(self) -> Generator[Any, Any, T]:
        step: Any = self._items.__anext__().__await__()
        try:
            waited_for = next(step)
            try:
                yield from self._flush().__await__()
            except BaseException as error:
                waited_for = step.throw(error)
        except StopIteration as ready:
            item: T = ready.value
            return item
        item = yield from _Resumed(step, waited_for)
        return item


class _Resumed:
    """A step that has begun, gone on with: first what it waits for, then the step itself."""

    __slots__ = ("_step", "_waited_for")

    def __init__(self, step: Any, waited_for: Any) -> None:
        self._step = step
        self._waited_for = waited_for

    def __iter__(self) -> _Resumed:
        return self

    def __next__(self) -> Any:
        waited_for, self._waited_for = self._waited_for, None
        return next(self._step) if waited_for is None else waited_for

    def send(self, value: Any) -> Any:
        return self._step.send(value)

    def throw(self, error: BaseException) -> Any:
        return self._step.throw(error)

    def close(self) -> None:
        self._step.close()
