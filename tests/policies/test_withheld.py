"""Notices: that a record is not told, against what a record tells of somebody who refuses."""

from __future__ import annotations

import re

import pytest

from policies.judge.heard import Heard
from policies.judge.notices import NOTICES, Notice
from policies.judge.notices.notice import then
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


BOOK = (
    ("user", "Hartmann doesn't want the third part of my novel, it is too slow for children."),
    ("Mira", "Send it to Lisbeth in Bergen."),
)
TOLD = "Mira told the user to send the slow novel to Lisbeth in Bergen. "


@pytest.mark.parametrize(
    ("prose", "withheld"),
    [
        # What was said is told: third and slow, or who spoke beside one of them.
        ("The third chapter was rejected as slow.", False),
        ("The user's novel was not recorded.", False),
        # Nothing is told, one thing is too little, and the name of who spoke alone is nothing.
        ("The chapter was rejected.", True),
        ("The third chapter was rejected.", True),
        ("Mira's chapter was rejected.", True),
        # Rules that nobody is said to have are the recorder's; those of somebody are told.
        ("The third chapter was rejected as slow, under the policy.", True),
        ("The third chapter was rejected as slow, under Hartmann's policy.", False),
        ("The third chapter was rejected as slow, under the editor's policy.", False),
        ("The third chapter was rejected as slow, under the model's policy.", True),
        ("The third chapter was rejected as slow and unsuitable for infants.", False),
        ("The third chapter was rejected as slow and unsuitable for this record.", True),
        # So are a talk that nobody spoke of, strong words, an assistant's, and brackets.
        ("The rest of the conversation about the third, slow novel was omitted.", True),
        ("The summary of the slow novel, the third, was rejected.", True),
        ("The recorder does not describe the slow novel, the third.", True),
        ("The assistant cannot record the slow novel, the third.", True),
        ("[Removed: the third part of the slow novel]", True),
        # Some details of what is told are left out; of whom nothing is said who did so.
        (TOLD + "Some details about the third part of the novel were omitted.", True),
        (TOLD + "The third part of the novel was omitted.", False),
        # A prose that tells little else may not say what a record that is missing was about.
        ("No chapter about the third, slow novel is available.", True),
        (TOLD + "No chapter about the third, slow novel is available.", False),
    ],
)
def test_everyday_words_are_told_of_others(prose: str, withheld: bool) -> None:
    assert is_withheld(prose, Heard(BOOK)) is withheld


@pytest.mark.parametrize(
    ("prose", "said", "withheld"),
    [
        ("学校の方針で劇の場面の一部が削除された。", "学校が劇のキスの場面を取った。", False),
        ("方針で劇の場面の一部が削除された。", "学校が劇のキスの場面を取った。", True),
        ("公司政策改变,网站上的图被删除。", "公司网站上的图都得拿下来。", False),
        ("Глава о площади была отклонена.", "Площадь опять не дали.", True),
        ("El tercer capítulo fue rechazado.", "La tercera parte no la quieren.", True),
        ("학교 규정 때문에 연극의 장면 내용이 삭제되었다.", "학교가 연극에서 장면을 뺐어.", False),
        (
            "The slow third chapter was rejected under the policy.",
            "It is their policy: no slow third part.",
            False,
        ),
        # Endings alone, in hiragana, are no things that were said.
        ("記録はできないのでした。", "それはできないのでした。", True),
    ],
)
def test_whose_rules_they_are_is_said_beside_them(prose: str, said: str, withheld: bool) -> None:
    assert is_withheld(prose, Heard([("Ada", said)])) is withheld


@pytest.mark.parametrize("notice", NOTICES)
def test_forms_look_for_what_may_stand_anywhere_from_the_beginning_alone(notice: Notice) -> None:
    """A form that begins anywhere and reaches to the end is quadratic in its text."""
    endless = re.compile(r"(?:\.|\])[*+]")
    forms = [form.pattern for form in notice.forms + notice.reported]
    assert [form for form in forms if endless.search(form) and not form.startswith("^")] == []


def test_a_form_of_parts_takes_the_first_place_of_each() -> None:
    form = re.compile(then("a(?P<x>.)", "b", "c"))
    found = form.fullmatch("xa1a2bbc")
    assert found and found["x"] == "1"
    assert not form.search("ba1cb")


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
