"""Notices: that a record is not told, against what a record tells of somebody who refuses."""

from __future__ import annotations

import pytest

from policies.judge.heard import Heard
from policies.judge.withheld import is_withheld

CHAT = (
    ("User", "Write my sister a letter that says five years."),
    ("Assistant", "I'm sorry, but I can't write a letter with false dates."),
)
PLAY = (
    ("Ada", "Finn, I cannot pay. I only have 25 crowns."),
    ("Finn", "I won't take you aboard then."),
)


@pytest.mark.parametrize(
    ("prose", "span", "withheld"),
    [
        # What an assistant of the source refused is told; nobody else's refusal excuses one.
        ("The assistant declined to write the letter, citing its guidelines.", CHAT, False),
        ("The assistant declined to write of Ada and Finn, citing its guidelines.", PLAY, True),
        ("The assistant could not summarize the letter.", CHAT, False),
        ("The assistant could not summarize Ada's talk with Finn.", PLAY, True),
        # Now, of a record, it is the recorder's own refusal all the same.
        ("The assistant is unable to provide a chronicle of the letter.", CHAT, True),
        # Who is in the source may keep a record.
        ("The chronicler refuses to open the gate.", PLAY, True),
        ("The chronicler refuses to open the gate.", (("Chronicler", "No."),), False),
        ("The chronicler refuses to open the gate.", (("Ada", "The chronicler hides!"),), False),
        # A source that asks for something shorter speaks of summaries.
        ("A summary was not provided.", PLAY, True),
        ("A summary was not provided.", (("User", "tl;dr?"), ("Ada", "Later.")), False),
        # Leaving out, breaking off and rules that the source knows are told.
        ("Some parts were omitted here.", PLAY, True),
        ("Some parts were omitted here.", (("Ada", "Leave out the debts; omit them."),), False),
        ("I have to stop here.", PLAY, True),
        ("I have to stop here.", (("Ada", "I have to stop here."),), False),
        ("The content was removed under the policy.", PLAY, True),
        (
            "The content was removed under the policy.",
            (("Ada", "Removed? It's their policy."),),
            False,
        ),
        # Quotations are another's words; what follows a colon stands alone.
        ('Ada read aloud: "The rest was omitted due to policy."', PLAY, False),
        ("Here is the chapter: nothing could be paid.", PLAY, False),
        # Nobody tells of himself as of a language model.
        ("As an AI language model, I have no memories. Ada has 25 crowns.", CHAT, True),
        ("摘要无法提供。", PLAY, True),
        # One sentence in the first person, after others that are not, in words nobody said.
        ("Ada has 25 crowns. I can't go on with this.", PLAY, True),
        ("Ada has 25 crowns. I can't go on with this.", (("Ada", "I can't."),), False),
        ("I can't pay. I only have 25 crowns. Finn will not wait.", PLAY, False),
        ("Ada has 25 crowns. Finn and I couldn't agree more.", PLAY, False),
        ('Ada has 25 crowns. I told "Finn" that I couldn\'t.', PLAY, False),
    ],
)
def test_whose_words_a_refusal_is_in(
    prose: str, span: tuple[tuple[str, str], ...], withheld: bool
) -> None:
    assert is_withheld(prose, Heard(span)) is withheld
