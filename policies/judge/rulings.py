"""The rulings: which rules an output must pass, and in which order they speak."""

from collections.abc import Sequence

from policies.judge.frame import unwrap_frame
from policies.judge.reading import has_words
from policies.judge.refusal import is_refusal, is_safety_end
from policies.judge.thinking import shows_thinking, strip_thinking
from policies.judge.verdict import Verdict, accept, reject
from policies.values import Line


def judge_summary(
    output: str,
    source: Sequence[Line],
    *,
    finish_reason: str | None,
    asked_chars: int,
    framed: bool = True,
) -> Verdict:
    """Judge the raw text of a summarizer against the span it was asked to tell."""
    return _judge(output, finish_reason=finish_reason, framed=framed, key="chapter")


def judge_gist(
    output: str,
    source: Sequence[str],
    *,
    finish_reason: str | None,
    asked_chars: int,
    framed: bool = True,
) -> Verdict:
    """Judge a gist against the old gist and the chapters that it folds together."""
    return _judge(output, finish_reason=finish_reason, framed=framed, key="chapter")


def _judge(output: str, *, finish_reason: str | None, framed: bool, key: str) -> Verdict:
    if is_safety_end(finish_reason):
        return reject("refusal")
    if finish_reason != "stop":
        return reject("truncated")
    stripped = strip_thinking(output)
    unwrapped = unwrap_frame(stripped, framed=framed, key=key)
    prose = strip_thinking(unwrapped.prose)
    if not has_words(prose):
        return reject("empty")
    reasons = []
    if shows_thinking(prose) or shows_thinking(stripped):
        reasons.append("thinking")
    if is_refusal(prose):
        reasons.append("refusal")
    if unwrapped.reason:
        reasons.append(unwrapped.reason)
    return reject(*reasons) if reasons else accept(prose)
