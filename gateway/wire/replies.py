"""A reply put together from its pieces, streamed or whole.

The pieces are decoded `chat.completion.chunk` objects; this is the hot path of every stream, so
they stay plain dictionaries. What is kept is what the model said; the form that is stored differs
in one thing only: thinking that leaked into the content stands under reasoning.
"""

from collections.abc import Sequence
from typing import Any

from gateway.wire.choices import ChoiceBuilder


class ReplyBuilder:
    """Collects one answer. `feed` takes chunks in order; the properties read what came so far.

    `finish_reason` is the first one that came; `usage`, `timings` and `model` the last ones.
    """

    __slots__ = ("_choices", "_first", "_top", "model", "timings", "usage")

    def __init__(self) -> None:
        self._first = ChoiceBuilder()
        self._choices = {0: self._first}
        self._top: dict[str, Any] | None = None
        self.usage: dict[str, Any] | None = None
        self.timings: dict[str, Any] | None = None
        self.model: str | None = None

    @classmethod
    def from_completion(cls, parsed: dict[str, Any]) -> "ReplyBuilder":
        """The builder of a whole answer (`chat.completion`)."""
        builder = cls()
        builder._feed_top(parsed)
        for choice in parsed.get("choices") or ():
            builder._choice(choice).feed(choice, "message")
        return builder

    def feed(self, chunk: dict[str, Any]) -> None:
        """Take one chunk. Null in place of a list or an object counts as empty."""
        choices = chunk.get("choices")
        if choices:
            for choice in choices:
                self._choice(choice).feed(choice, "delta")
        if self._top is None or "usage" in chunk or "timings" in chunk:
            self._feed_top(chunk)

    def feed_texts(self, texts: Sequence[str]) -> None:
        """Take pieces of the first choice's text that came in chunks of their own with nothing else
        in them, behind a first chunk that `feed` took."""
        self._first.feed_texts(texts)

    def _choice(self, choice: dict[str, Any]) -> ChoiceBuilder:
        index = choice.get("index")
        if not index:
            return self._first
        return self._choices.setdefault(index, ChoiceBuilder())

    def _feed_top(self, parsed: dict[str, Any]) -> None:
        if (usage := parsed.get("usage")) and isinstance(usage, dict):
            self.usage = usage
        if (timings := parsed.get("timings")) and isinstance(timings, dict):
            self.timings = timings
        if self._top is None:
            self._top = parsed
            model = parsed.get("model")
            self.model = model if model and isinstance(model, str) else None

    def message(self, index: int = 0) -> dict[str, Any]:
        """The assistant message of a choice as it is to be stored."""
        return self._choices[index].message()

    def completion(self) -> dict[str, Any]:
        """The pieces as one whole answer (`chat.completion`), as the upstream would have sent it:
        thinking that leaked into the content is left there."""
        top = {key: value for key, value in (self._top or {}).items() if key != "choices"}
        whole: dict[str, Any] = {**top, "object": "chat.completion"}
        whole["choices"] = [
            {"index": index, **self._choices[index].close()} for index in self.indexes
        ]
        figures = {"usage": self.usage, "timings": self.timings}
        return whole | {key: value for key, value in figures.items() if value is not None}

    @property
    def indexes(self) -> tuple[int, ...]:
        """The choices that came (more than 0 where n > 1 was asked for)."""
        return tuple(sorted(self._choices))

    @property
    def alternatives(self) -> list[tuple[dict[str, Any], str | None]]:
        """The other choices that say something, where n > 1 was asked for: (message, finish_reason)
        of each."""
        others = (self._choices[index] for index in self.indexes if index)
        return [(each.message(), each.finish_reason) for each in others if not each.is_empty]

    @property
    def text(self) -> str:
        """What the person sees of choice 0, without thinking."""
        return self._first.read()[0]

    @property
    def reasoning(self) -> str:
        """The thinking of choice 0, whichever way it came."""
        return self._first.read()[1]

    @property
    def finish_reason(self) -> str | None:
        return self._first.finish_reason

    @property
    def is_empty(self) -> bool:
        """No visible text, no tool call, no reasoning, no refusal: nothing in choice 0."""
        return self._first.is_empty

    @property
    def broken_tools(self) -> bool:
        """Whether a tool call of choice 0 cannot be executed: its arguments are not JSON, or were
        cut off by length before they began."""
        return self._first.broken_tools

    @property
    def prompt_tokens(self) -> int | None:
        """Tokens of the prompt, cached ones included; None if never said."""
        if (count := _count(self.usage, "prompt_tokens")) is not None:
            return count
        if (fresh := _count(self.timings, "prompt_n")) is not None:
            return fresh + (_count(self.timings, "cache_n") or 0)
        return None

    @property
    def completion_tokens(self) -> int | None:
        """Tokens of the reply, reasoning included as the upstream counts it."""
        if (count := _count(self.usage, "completion_tokens")) is not None:
            return count
        return _count(self.timings, "predicted_n")

    @property
    def cached_tokens(self) -> int | None:
        """Prompt tokens that the upstream did not read again; None if never said."""
        details = (self.usage or {}).get("prompt_tokens_details")
        for count in (
            _count(details if isinstance(details, dict) else None, "cached_tokens"),
            _count(self.usage, "prompt_cache_hit_tokens"),
            _count(self.timings, "cache_n"),
        ):
            if count is not None:
                return count
        return None


MOST_TOKENS = 2**31 - 1
"""A larger count is no count: no window comes near it."""


def _count(figures: dict[str, Any] | None, name: str) -> int | None:
    """A count of tokens that can be one; an upstream may write anything there."""
    count = (figures or {}).get(name)
    return count if type(count) is int and 0 <= count <= MOST_TOKENS else None
