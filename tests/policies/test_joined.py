"""One message for everything: what of it is new, and when that cannot be told."""

from __future__ import annotations

import pytest

from policies.joined import Joined, split_joined

OPENING = ("user", "You are Bob.\n\nAnn: 塔はどこ?")
TOLD = [OPENING, ("assistant", " 丘の向こう。\n\nRest first. "), ("user", "Ann: Why?")]
TOLD.append(("assistant", "Bob: It is late."))
WIRE = "You are Bob.\n\nAnn: 塔はどこ?\n\nBob: 丘の向こう。\n\nRest first.\n\nAnn: Why?"
LATE = f"{WIRE}\n\nBob: It is late."


@pytest.mark.parametrize(
    ("text", "told", "found"),
    [
        (f"{LATE}\n\nAnn: Good night.", TOLD, Joined(3, "Ann: Good night.")),
        (f"{LATE}\nAnn: Good\n\nnight.\n", TOLD, Joined(3, "Ann: Good\n\nnight.")),
        # the newest reply is asked for again
        (WIRE, TOLD, Joined(2, "")),
        # a turn that failed has no reply
        (f"{WIRE}\n\nAnn: Hm?", TOLD[:3], Joined(2, "Ann: Hm?")),
        # the path holds a turn that was stored joined: its newest such message is the beginning
        (
            "Ann: a\n\nBob: x\n\nAnn: b\n\nBob: y\n\nAnn: c",
            [
                ("user", "Ann: a"),
                ("assistant", "X"),
                ("user", "Ann: a\n\nBob: x\n\nAnn: b"),
                ("assistant", "y"),
            ],
            Joined(3, "Ann: c"),
        ),
        # a person's own words
        ("Good night.", TOLD, None),
        (OPENING[1], TOLD, None),
        (f"{LATE}\n\nand so on", TOLD, None),
        (LATE, TOLD, None),
        (f"{LATE} Ann: Good night.", TOLD, None),
        # another reply, or none where one stands, or no name
        (LATE.replace("丘", "山") + "\n\nAnn: Good night.", TOLD, None),
        (LATE.replace("Bob: 丘", "丘") + "\n\nAnn: Good night.", TOLD, None),
        (f"{OPENING[1]} 丘の向こう。", TOLD, None),
        (f"{OPENING[1]}\n\nAnn: Hm?", [OPENING], None),
        (f"{OPENING[1]}\n\nBob: \n\nAnn: Hm?", [OPENING, ("assistant", " ")], None),
        (f"{OPENING[1]}\n\nAnn: Hm?", [OPENING, ("user", "Hm?")], None),
        ("Ann: Hm?", [("user", " "), ("assistant", "Hm?")], None),
        ("Ann: Hm?", [], None),
    ],
)
def test_what_is_new(text: str, told: list[tuple[str, str]], found: Joined | None) -> None:
    assert split_joined(text, told) == found
