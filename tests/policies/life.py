"""A conversation played through the plans: the state that a store would keep, in a few lists."""

from dataclasses import dataclass, field, replace

from policies.folding import plan_debt, plan_fold
from policies.generations import plan_gist_stand_in, plan_major
from policies.ground import memory_chars
from policies.values import ChapterState, Debt, Fold, GistState, Limits, Mark, ViewState

LOCAL = Limits(
    start=48_000,
    ceiling=56_000,
    headroom=17_000,
    keep=16_000,
    split=32_000,
    length=1_100,
    stack=6_000,
    gist_length=1_500,
)
"""The local fold of the design's numbers."""


@dataclass(slots=True)
class Life:
    """One conversation under one policy; a chapter asked for is written ``wait`` turns later."""

    limits: Limits
    wait: int = 3
    fixed: int = 0
    written: int | None = None  # length of every chapter; None: the asked one
    marks: list[Mark] = field(default_factory=list)
    rows: list[ChapterState] = field(default_factory=list)
    due: dict[int, int] = field(default_factory=dict)  # row -> turn at which its text comes
    gist: GistState | None = None  # newest version
    gist_due: tuple[int, GistState] | None = None
    shown: tuple[GistState | None, int, int] = (None, 0, 0)  # gist, border, memory
    turn: int = 0
    folds: list[Fold] = field(default_factory=list)
    debts: list[Debt] = field(default_factory=list)
    majors: int = 0
    condensed: int = 0
    prompts: list[int] = field(default_factory=list)
    reread: int = 0

    def say(self, chars: int, opens: bool, bound: bool = False) -> None:
        self.marks.append(Mark(len(self.marks) + 1, chars, opens, bound))

    def state(self) -> ViewState:
        _, border, memory = self.shown
        covered = self.gist.covers_to if self.gist else 0
        return ViewState(
            border=border,
            memory=memory,
            tail=tuple(self.marks[border:]),
            coming=tuple(row for row in self.rows if row.first > border),
            stack=tuple(row for row in self.rows if covered < row.first and row.last <= border),
            gist=self.gist,
            fixed=self.fixed,
        )

    def take_turn(self, user: int, reply: int, wait: int | None = None) -> ViewState:
        """One turn: the message comes, the view may fold, the reply, the upkeep behind it.

        Returns the state that was sent.
        """
        self.turn += 1
        self._bring_texts()
        self.say(user, opens=True)
        common = self.prompts[-1] if self.prompts else 0
        before, plan = self.state().total, self._plan()
        while plan:
            common = min(common, self._apply(plan))
            after = self.state().total
            # As the gateway does: what was folded just now may have to be condensed at once.
            if not self.limits.ceiling <= after < before:
                break
            before, plan = after, self._plan()
        sent = self.state()
        self.prompts.append(sent.total)
        self.reread += sent.total - common
        self.say(reply, opens=False)
        self._upkeep(self.wait if wait is None else wait)
        return sent

    def _plan(self) -> Fold | None:
        plan = plan_fold(self.limits, self.state())
        while major := plan_gist_stand_in(self.limits, self.state(), plan):
            self.condensed += 1
            self.gist = GistState(major.covers_to, self.limits.gist_length)
            self.gist_due = None
            plan = plan_fold(self.limits, self.state())
        return plan

    def _bring_texts(self) -> None:
        length = self.limits.length if self.written is None else self.written
        for index, turn in list(self.due.items()):
            if turn <= self.turn:
                row = self.rows[index]
                self.rows[index] = replace(row, length=length, stand_in=False)
                del self.due[index]
        if self.gist_due and self.gist_due[0] <= self.turn:
            self.gist, self.gist_due = self.gist_due[1], None

    def _apply(self, plan: Fold) -> int:
        """Move the border; returns how much of the prompt before is still its beginning."""
        gist, border, _ = self.shown
        skipped = len([row for row in self.rows if row.last <= border])
        for index in plan.stand_ins:
            row = self.rows[skipped + index]
            self.rows[skipped + index] = replace(
                row, length=min(self.limits.length, row.source_chars), stand_in=True
            )
        for span in plan.new_spans:
            length = min(self.limits.length, span.chars)
            self.rows.append(ChapterState(span.first, span.last, span.chars, length, True))
        kept = [row.length or 0 for row in self.state().stack]
        same = self.gist == gist
        self.folds.append(plan)
        self.shown = (self.gist, plan.border, 0)
        lengths = [row.length or 0 for row in self.state().stack]
        size = self.gist.length if self.gist else 0
        self.shown = (self.gist, plan.border, memory_chars(size, lengths, self.fixed))
        return memory_chars(size, kept, self.fixed) if same else self.fixed

    def _upkeep(self, wait: int) -> None:
        debt = plan_debt(self.limits, self.state())
        if debt:
            self.debts.append(debt)
            for span in debt.spans:
                self.due[len(self.rows)] = self.turn + wait
                self.rows.append(ChapterState(span.first, span.last, span.chars, None))
        state = self.state()
        major = None if self.gist_due else plan_major(self.limits, state.gist, state.stack)
        if major:
            self.majors += 1
            version = GistState(major.covers_to, self.limits.gist_length)
            self.gist_due = (self.turn + wait, version)
