"""Notices: that a record is not told, against what a record tells of somebody who refuses."""

from __future__ import annotations

import pytest

from policies.judge.heard import Heard
from policies.judge.withheld import is_withheld, pieces

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


@pytest.mark.parametrize(
    ("chars", "parts"), [(0, 1), (600, 1), (601, 2), (900, 2), (901, 3), (200_000, 666)]
)
def test_an_endless_sentence_is_read_in_parts(chars: int, parts: int) -> None:
    """Linear: each character stands in two parts of 600 at most; none is left out."""
    text = "".join(chr(0x4E00 + at % 5_000) for at in range(chars))
    found = pieces(text)
    assert len(found) == parts
    assert max(map(len, found)) <= 600
    assert "".join([part[:300] for part in found[:-1]] + found[-1:]) == text


def test_a_notice_far_into_an_endless_sentence_is_found() -> None:
    prose = "Ada counts crowns, " * 400 + "and the rest was omitted due to policy"
    assert is_withheld(prose, Heard(PLAY))


@pytest.mark.parametrize("notice", ["{}\n{}", "{1}\n{0}"])
def test_of_what_is_longer_than_any_chapter_both_ends_are_read(notice: str) -> None:
    told = "Ada counts her crowns and Finn waits.\n" * 1_000
    assert not is_withheld(told, Heard(PLAY))
    assert is_withheld(notice.format(told, "The rest was omitted due to policy."), Heard(PLAY))
