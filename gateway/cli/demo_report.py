"""What a demonstration came to: the figures of a replay, measured on what llama-server was sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gateway.demo.player import TurnSeen
from gateway.demo.snapshot import Snapshot
from gateway.replay.measure import PromptMeter, Totals, TurnRecord, count_lost
from gateway.wire.json_text import dump_bytes


def measure(
    turns: Sequence[TurnSeen], snapshot: Snapshot, window: int
) -> tuple[dict[str, Any], list[TurnRecord]]:
    """The JSON of `foldgate demo --json`, and one record a turn for the picture.

    The keys of a replay, counted the same way: characters of the prompts that reached
    llama-server; a message is lost where it stands neither in such a prompt nor in the span of a
    chapter or gist whose text does. And beside them:

    window_tokens: of one slot, as llama-server says. max_prompt_tokens: the longest prompt, by its
    count. finish_length: replies that the window cut; a reply that reached the `max_tokens` its
    person asked for is what was asked for, and is not counted. refused: requests that were answered
    with an error. judged_out: texts that the judge kept out of memory, as in `rejected`.
    """
    totals, records, meter = Totals(), list[TurnRecord](), PromptMeter()
    for turn in turns:
        record = _record(turn, meter)
        records.append(record)
        totals.add(record)
        totals.lost_messages += record.lost
    if turns:
        told = [*turns[-1].transcript, turns[-1].reply]
        totals.messages = len(told)
        totals.floor_chars = sum(map(len, told))
    chapters = [text for text in snapshot.texts if not text.is_gist]
    totals.chapters = len({text.span for text in chapters})
    totals.stand_ins = sum(text.origin == "stand-in" for text in chapters)
    totals.majors = len(snapshot.texts) - len(chapters)
    totals.rejected = len(snapshot.verdicts)
    figures = totals.as_json() | {
        "window_tokens": window,
        "max_prompt_tokens": max((turn.prompt_tokens for turn in turns), default=0),
        "finish_length": sum(turn.is_cut_by_window for turn in turns),
        "refused": sum(turn.refused for turn in turns),
        "judged_out": len(snapshot.verdicts),
    }
    return figures, records


def _record(turn: TurnSeen, meter: PromptMeter) -> TurnRecord:
    prompt = [dump_bytes(message) for message in turn.prompt]
    goes_on = meter.begins_with_last(prompt)
    prompt_chars, reread = meter.measure(prompt)
    covered = [(span.first, span.last) for span in turn.covered]
    return TurnRecord(
        number=turn.number,
        prompt_chars=prompt_chars,
        reread_chars=reread,
        view=turn.view,
        folded=turn.folded is not None,
        lost=count_lost(turn.transcript, turn.tail, covered),
        moved=not (turn.folded is not None or goes_on),
    )


def is_sound(figures: dict[str, Any]) -> bool:
    """Whether no message was lost, no prompt was above the window and no reply cut by it."""
    fits = figures["max_prompt_tokens"] <= figures["window_tokens"]
    return bool(fits and not figures["lost_messages"] and not figures["finish_length"])


def write_table(figures: dict[str, Any], tokens: int, seconds: float) -> str:
    """The figures in words, for people. tokens: the whole conversation; seconds: it took."""
    value = figures.__getitem__
    windows = tokens / value("window_tokens")
    rows = [
        ("conversation", f"{value('messages')} messages in {value('turns')} turns"),
        ("", f"{tokens:,} tokens, {windows:.1f} times the window; {seconds:.0f} s"),
        ("longest prompt", f"{value('max_prompt_tokens'):,} of {value('window_tokens'):,} tokens"),
        ("lost messages", f"{value('lost_messages')}"),
        ("cut by the window", f"{value('finish_length')} replies, {value('refused')} refused"),
        ("folds", f"{value('folds')}, of them hard cuts: {value('hard_cuts')}"),
        ("chapters", f"{value('chapters')}, and {value('majors')} gists over older ones"),
        ("judged out", f"{value('judged_out')} texts of the model"),
        ("stand-ins", f"{value('stand_ins')} chapters, made without a model"),
        ("prompt characters", f"{value('prompt_chars_mean'):,.0f} in the mean"),
        ("", f"{value('prompt_chars_max'):,} at most"),
        ("read again", f"{value('reread_chars'):,} characters"),
        ("", f"{value('reread_chars') / max(1, value('floor_chars')):.2f} times what was said"),
        ("reused", f"{value('reuse'):.1%} of all prompt characters"),
        ("cold turns", f"{value('cold_turns')} that read more than 5,000 characters"),
    ]
    return "\n".join(f"  {name:<20}{text}" for name, text in rows)
