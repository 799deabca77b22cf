"""Asking summarizers for a text until one is fit to be remembered, or none is.

One round: each summarizer in its order, the first draw, a redraw where the answer was judged out,
then the next. Nothing is stored here and nothing is thrown: a round ends with a text or with the
failures of everybody who was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gateway.backends.base import Backend
from gateway.backends.faults import FaultKind
from gateway.flows.assignments import Piece, Told
from gateway.flows.drawing import LEAST_ASKED, Desk, Drawing, Room
from gateway.flows.rounds import Counts, Draft, Failure, Offload, Round
from gateway.flows.summary_forms import SummaryForms
from gateway.meters import Meters
from policies.budget import first_ratio
from policies.ledger.values import join_entries

MARGIN_TOKENS = 64
"""What a chat template adds to one message, and a little more."""

LEAST_CHARS = 300
"""A window that leaves less room than this for the quoted text is too small to record anything."""

OVERFLOWS = 3
"""How often a span is cut smaller after the window turned out smaller than reckoned."""

_LEAST_KNOWN = 0.4
_LEAST_UNKNOWN = 0.3
"""Shares of the estimated tokens of a prompt below which the backend cannot have read all of it:
of this conversation's own figures, and of a cautious guess (tokenizers differ by a factor of two on
one script). A prompt that was cut from the front is a small fraction."""


class Recorder:
    """Runs rounds. clock tells seconds that never go back."""

    def __init__(
        self, counts: Counts, offload: Offload, meters: Meters, clock: Callable[[], float]
    ) -> None:
        self._counts = counts
        self._offload = offload
        self._desk = Desk(counts, offload, meters, clock, SummaryForms())

    async def write(self, round_: Round) -> Draft | list[Failure]:
        """The text, or the failures of everybody asked, in order.

        A content that two providers refused is offered to no third one.
        """
        failures: list[Failure] = []
        for backend in round_.order:
            outcome = await self._write_with(backend, round_)
            if isinstance(outcome, Told):
                self._counts.accepted += 1
                took_ms = round(sum(round_.calls) * 1000)
                return Draft(outcome.text, backend.name, took_ms, outcome.entries, outcome.moved)
            failures.append(outcome)
            if sum(failure.kind == FaultKind.REFUSED for failure in failures) > 1:
                break
        return failures

    async def _write_with(self, backend: Backend, round_: Round) -> Told | Failure:
        room = await self._measure(backend, round_)
        limit = room.limit
        if limit is not None and limit < LEAST_CHARS:
            said = f"the window of {backend.name} is too small to record anything"
            return Failure(backend.name, "window", said, "outage")
        for _ in range(OVERFLOWS):
            try:
                pieces = await self._offload(round_.work.cut, limit)
            except ValueError as error:
                return Failure(backend.name, "window", f"{backend.name}: {error}", "outage")
            outcome = await self._write_pieces(backend, round_, room, pieces)
            if isinstance(outcome, Told) or outcome.kind != FaultKind.OVERFLOW:
                return outcome
            limit = max(len(piece.text) for piece in pieces) // 2
            if limit < LEAST_CHARS:
                break
        return outcome

    async def _measure(self, backend: Backend, round_: Round) -> Room:
        """The room of this backend, by its window and what is known of characters per token."""
        work, most = round_.work, round_.rules.max_output
        learned = round_.ratios.get(backend.name)
        guessed: float = await self._offload(first_ratio, work.text)
        density = _LEAST_UNKNOWN / guessed
        if learned is not None:
            density = _LEAST_KNOWN / max(learned, guessed)
        ratio = learned or guessed
        window = await backend.window()
        if window is None:
            return Room(None, most, most, density)
        output = min(most, max(window // 4, 256))
        fixed = MARGIN_TOKENS + int(work.overhead / ratio)
        limit = int((window - output - fixed) * ratio)
        return Room(limit, output, min(most, window // 2), density)

    async def _write_pieces(
        self, backend: Backend, round_: Round, room: Room, pieces: Sequence[Piece]
    ) -> Told | Failure:
        told: list[Told] = []
        share = max(LEAST_ASKED, round_.work.length // max(1, len(pieces)))
        for index, piece in enumerate(pieces):
            asked = min(share, max(LEAST_ASKED, len(piece.text) // 2))
            form = self._desk.forms.of(backend)
            drawing = Drawing(self._desk, backend, round_, room, piece, index, asked, form)
            outcome = await drawing.run()
            if isinstance(outcome, Failure):
                return outcome
            told.append(outcome)
        text = "\n\n".join(each.text for each in told)
        moved = tuple(sentence for each in told for sentence in each.moved)
        return Told(text, join_entries([each.entries for each in told]), moved)
