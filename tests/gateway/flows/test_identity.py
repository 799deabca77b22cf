"""What messages are known by, and which of them are nobody's."""

from __future__ import annotations

import pytest

from gateway.flows.identity import set_apart, without_thinking
from tests.gateway.house import Say, assistant, system, user

FILLER = user("[Start a new chat]")
NUDGE = user("[Continue your last message without repeating its original content.]")
HI, HELLO = user("hi"), assistant("Hello!")


@pytest.mark.parametrize(
    ("sent", "known"),
    [
        (assistant("<think>Hm.</think>42"), assistant("42")),
        (assistant("Hm.</think>\n42", name="Bob"), assistant("42", name="Bob")),
        (assistant("I think so."), assistant("I think so.")),
        (assistant("no thought"), assistant("no thought")),
        (assistant(None), assistant(None)),
        (user("<think>x</think>y"), user("<think>x</think>y")),
    ],
)
def test_leaked_thinking_is_no_part_of_a_reply(sent: Say, known: Say) -> None:
    assert without_thinking(sent) == known


@pytest.mark.parametrize(
    ("chain", "system_texts", "left", "apart"),
    [
        ([HI, HELLO, NUDGE], [], [HI, HELLO], [(2, NUDGE)]),
        ([FILLER, HELLO, HI], [], [HELLO, HI], [(0, FILLER)]),
        (
            [FILLER, HELLO, HI],
            [(0, system("A")), (1, system("B")), (3, system("C"))],
            [HELLO, HI],
            [(0, system("A")), (0, FILLER), (0, system("B")), (2, system("C"))],
        ),
        ([FILLER], [], [FILLER], []),
        ([FILLER, HI], [], [FILLER, HI], []),
        ([HI, NUDGE], [], [HI, NUDGE], []),
        ([HI, HELLO, user([{"type": "text", "text": NUDGE["content"]}])], [], 3, []),
    ],
)
def test_fillers_and_nudges_are_set_apart(
    chain: list[Say],
    system_texts: list[tuple[int, Say]],
    left: list[Say] | int,
    apart: list[tuple[int, Say]],
) -> None:
    before = list(chain)
    found = set_apart(list(chain), list(system_texts))
    assert found == (before if left == 3 else left, apart)
