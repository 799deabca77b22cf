"""Which open threads a summarizer is told of: all, or those that its span is most likely about."""

from collections.abc import Sequence

from policies.likeness import letter_pairs

MOST_TOLD = 3_000
"""Characters of open threads beside a span: forty of them, a tenth of the largest span."""

_READ = 2_000
"""Characters that are compared at once: a whole span holds nearly every pair of letters."""


def choose_threads(
    threads: Sequence[tuple[int, str]], near: str, most_chars: int = MOST_TOLD
) -> tuple[tuple[int, str], ...]:
    """The threads (number, text) that fit, in their order: those whose words stand in `near` first,
    then the newest. A thread that is not told cannot be resolved, and so stays open."""
    if sum(len(text) + 6 for _, text in threads) <= most_chars:
        return tuple(threads)
    parts = [letter_pairs(near[at : at + _READ].casefold()) for at in range(0, len(near), _READ)]
    worth = {
        number: max((_share(text, part) for part in parts), default=0.0) for number, text in threads
    }
    chosen: set[int] = set()
    left = most_chars
    for number, text in sorted(
        threads, key=lambda thread: (worth[thread[0]], thread[0]), reverse=True
    ):
        if len(text) + 6 <= left:
            chosen.add(number)
            left -= len(text) + 6
    return tuple(thread for thread in threads if thread[0] in chosen)


def _share(text: str, part: set[str]) -> float:
    pairs = letter_pairs(text.casefold())
    return len(pairs & part) / max(1, len(pairs))
