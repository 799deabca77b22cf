"""The rulings: which rules an output must pass, and in which order they speak."""

from collections.abc import Callable, Sequence

from policies.judge.attribution import is_misattributed
from policies.judge.continuation import is_continuation
from policies.judge.echo import is_echo
from policies.judge.ending import is_cut
from policies.judge.frame import Unwrapped, unwrap_frame
from policies.judge.grounding import is_ungrounded
from policies.judge.heard import Heard
from policies.judge.inventions import is_invented
from policies.judge.language import is_wrong_language
from policies.judge.leaks import leaks_frame
from policies.judge.loops import is_loop
from policies.judge.moralising import is_moralising
from policies.judge.reading import has_words
from policies.judge.refusal import is_refusal, is_safety_end
from policies.judge.sizes import is_degenerate, is_long
from policies.judge.thinking import shows_thinking
from policies.judge.verdict import Verdict, accept, reject
from policies.judge.withheld import is_withheld
from policies.values import Line

_MOST_CHARS = 200_000
"""Characters above which an output is not even read: fifty times the longest chapter asked for."""
Rule = tuple[str, Callable[[str], bool]]


def judge_summary(
    output: str,
    source: Sequence[Line],
    *,
    finish_reason: str | None,
    asked_chars: int,
    framed: bool = True,
) -> Verdict:
    """Judge the raw text of a summarizer against the span it was asked to tell.

    output: as the model sent it. source: the lines of the span, oldest first. finish_reason: the
    provider's own; only `stop` counts as complete. asked_chars: the length asked for, in
    characters. framed: the output must be the JSON frame; otherwise prose, or a frame to unwrap.
    Pure, linear in output and source, and without errors: every text has a verdict.
    """
    heard = Heard([("" if line.kind == "told" else line.speaker, line.text) for line in source])
    return _judge(
        output,
        finish_reason=finish_reason,
        framed=framed,
        rules=(
            *_shared_rules(heard, asked_chars),
            ("echo", lambda prose: is_echo(prose, heard)),
            ("misattributed", lambda prose: is_misattributed(prose, heard)),
        ),
    )


def judge_gist(
    output: str,
    source: Sequence[str],
    *,
    finish_reason: str | None,
    asked_chars: int,
    framed: bool = True,
) -> Verdict:
    """Judge a gist against the old gist and the chapters that it folds together.

    As judge_summary, but the source is already told: taking over its sentences is no echo.
    """
    heard = Heard([("", text) for text in source])
    return _judge(
        output,
        finish_reason=finish_reason,
        framed=framed,
        rules=_shared_rules(heard, asked_chars),
    )


def _shared_rules(heard: Heard, asked_chars: int) -> tuple[Rule, ...]:
    return (
        ("refusal", lambda prose: is_withheld(prose, heard)),
        ("wrong-language", lambda prose: is_wrong_language(prose, heard)),
        ("loop", is_loop),
        ("continuation", lambda prose: is_continuation(prose, heard)),
        ("degenerate", lambda prose: is_degenerate(prose, heard.weight, asked_chars)),
        ("long", lambda prose: is_long(prose, heard.weight, asked_chars)),
        ("frame-leak", lambda prose: leaks_frame(prose, heard)),
        ("ungrounded", lambda prose: _is_baseless(prose, heard)),
        ("truncated", is_cut),
    )


def _is_baseless(prose: str, heard: Heard) -> bool:
    return any(rule(prose, heard) for rule in (is_ungrounded, is_invented, is_moralising))


def _judge(
    output: str, *, finish_reason: str | None, framed: bool, rules: Sequence[Rule]
) -> Verdict:
    if is_safety_end(finish_reason):
        return reject("refusal")
    if finish_reason != "stop":
        return reject("truncated")
    if len(output) > _MOST_CHARS:
        return reject("long")
    unwrapped = unwrap_frame(output, framed=framed)
    prose = unwrapped.prose
    reasons = _read_reasons(unwrapped)
    if not has_words(prose):
        return reject(*reasons, "empty")
    reasons += [reason for reason, breaks in rules if breaks(prose)]
    return reject(*reasons) if reasons else accept(prose, unwrapped.beside)


def _read_reasons(unwrapped: Unwrapped) -> list[str]:
    """What the form alone tells, before the prose is held against its source."""
    reasons = []
    # In a frame that opened well only the prose counts: its tags are escaped or stripped.
    if shows_thinking(unwrapped.text if unwrapped.reason else unwrapped.prose):
        reasons.append("thinking")
    if is_refusal(unwrapped.prose):
        reasons.append("refusal")
    if unwrapped.reason:
        reasons.append(unwrapped.reason)
    return reasons
