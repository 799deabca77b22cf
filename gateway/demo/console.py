"""What is told at the terminal while the demonstration runs: calm, aligned, as it happens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import shorten
from unicodedata import east_asian_width

from gateway.demo.player import WINDOWS, TurnSeen
from gateway.demo.script import FRIEND, PERSON
from gateway.demo.snapshot import Shown, Snapshot, Span, Text, Verdict

Say = Callable[[str], None]

_WIDTH = 96
_MARGIN = 11
_REASONS = {
    "continuation": "it goes on with the story",
    "degenerate": "too short for its source",
    "echo": "it repeats its source",
    "empty": "empty",
    "frame": "not in the JSON frame",
    "frame-leak": "it repeats its instructions",
    "long": "too long",
    "loop": "it goes in circles",
    "misattributed": "it mixes up who said what",
    "refusal": "it refuses",
    "thinking": "it thinks aloud",
    "truncated": "cut off before its end",
    "ungrounded": "not what its source says",
    "wrong-language": "in another language",
}

LEGEND = (
    "prompt  what llama-server was sent, by its own count; read: the part not in its cache\n"
    "said    the whole conversation so far; the prompt stays small however long that grows\n"
    "judge   this model is far too small to summarize: what it writes is judged and kept out,\n"
    "memory  and sentences of the source stand in for it, until a better text is accepted"
)


class Console:
    """A Watcher that says each thing in a line or two. window: tokens of a slot."""

    def __init__(self, say: Say, window: int) -> None:
        self._say = say
        self._window = window

    def turn_began(self, number: int, said: str) -> None:
        self._say("")
        self._line(f"turn {number}", f"{PERSON + ':':<7}{_head(said)}")

    def turn_ended(self, turn: TurnSeen) -> None:
        self._line("", f"{FRIEND + ':':<7}{_head(turn.reply)}")
        self._line("", describe_turn(turn, self._window))
        if turn.folded is not None:
            self._line("  fold", describe_fold(turn.folded))
        if turn.is_cut_by_window:
            self._line("  CUT", "the window ended this reply")

    def request_failed(self, what: str) -> None:
        self._line("  FAILED", what)

    def memory_changed(self, old: Snapshot, new: Snapshot) -> None:
        for verdict in new.verdicts[len(old.verdicts) :]:
            self._line("  judge", describe_verdict(verdict))
            self._line("", f"“{_head(verdict.text)}”")
        known = {(text.is_gist, text.pk) for text in old.texts}
        for text in new.texts:
            if (text.is_gist, text.pk) not in known:
                self._line("  memory", describe_text(text))

    def reading_began(self, waiting: Sequence[Span]) -> None:
        spans = " and ".join(map(str, waiting))
        self._line("  quiet", f"{PERSON} reads. The model is asked for a chapter of {spans}")

    def reading_ended(self, seconds: float, waiting: Sequence[Span]) -> None:
        goes_on = "and goes on without it" if waiting else "and goes on"
        self._line("  quiet", f"{PERSON} has read for {seconds:.0f} s {goes_on}")

    def _line(self, label: str, text: str) -> None:
        self._say(f"{label:<{_MARGIN}}{text}".rstrip())


def describe_turn(turn: TurnSeen, window: int) -> str:
    """One turn's figures, in columns."""
    return (
        f"prompt {turn.prompt_tokens:>5,} of {window:,}   read {turn.reread_tokens:>5,}   "
        f"first token {turn.first_token_seconds:>4.1f} s   view {turn.view:<8}   "
        f"said {turn.conversation_tokens:>6,} of {WINDOWS * window:,}"
    )


def describe_fold(fold: Shown) -> str:
    """What the model is shown of the past from now on."""
    chapters = [text for text in fold.texts if not text.is_gist]
    parts = [f"a gist of {text.span}" for text in fold.texts if text.is_gist]
    parts.append(_plural(len(chapters), "chapter"))
    made_up = sum(text.origin == "stand-in" for text in fold.texts)
    parts.append(f"{_plural(made_up, 'stand-in')} among them" if made_up else "no stand-in")
    cut = "HARD CUT: " if fold.kind == "cut" else ""
    told = ", ".join(parts)
    return f"{cut}messages 1–{fold.border} are now told in {fold.memory_chars:,} characters: {told}"


def describe_text(text: Text) -> str:
    """A text that entered memory, and who made it."""
    kind = "gist" if text.is_gist else "chapter"
    if text.origin == "model":
        return f"the model's {kind} of {text.span} was accepted: “{_head(text.text, 40)}”"
    of = "chapters" if text.is_gist else "span"
    return (
        f"a stand-in for the {kind} of {text.span} is ready: {len(text.text)} characters, "
        f"sentences of its {of}"
    )


def describe_verdict(verdict: Verdict) -> str:
    """Why an output may not enter memory."""
    what = f"chapter of {verdict.span}" if verdict.span else "gist"
    reasons = ", ".join(_REASONS.get(reason, reason) for reason in verdict.reasons)
    return f"the model's {what} is out: {reasons}"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _head(text: str, room: int = _WIDTH - _MARGIN - 9) -> str:
    """The beginning of a text in one line of so many columns; wide letters take two."""
    line = shorten(text, 10_000)
    columns = 0
    for at, letter in enumerate(line):
        columns += 2 if east_asian_width(letter) in "WF" else 1
        if columns > room:
            return f"{line[:at].rstrip()}…"
    return line
