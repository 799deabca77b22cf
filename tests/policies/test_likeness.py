"""The same words in another manner, and other words."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.likeness import (
    Form,
    Peeled,
    _drop_blocks,
    _tidy,
    count_squashed,
    find_wrapping,
    is_alike,
    peel,
    share_words,
    unwrap,
)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("Line one\n\n\n  Line two  ", "Line one\r\n\n\n  Line two \n"),
        ("“Hi,” she said.", '"Hi," she said.'),
        ("She waves. Hi.", "*She waves.* Hi."),
        ("42", "<think>Let me see.\nYes.</think>42"),
        ("Text", "<status>HP 10</status>\nText"),
        ("bold words", "<b>bold</b> words"),
        ("a b", "a <!-- note --> b"),
        ("Bob: hello there", "hello there"),
        ("鮑勃：你好", "你好"),
        ("hello there", "Bob: hello there"),
        ("Bob: 42", "<think>Hm.</think>42"),
        ("look at this", "look at this [image]"),
        ("각 é", "각 é"),
    ],
)
def test_alike(sent: str, kept: str) -> None:
    assert is_alike(Form(sent), Form(kept))


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("I live in Lima.", "I live in Oslo."),
        ("Ann: yes", "Bob: yes"),
        ("Use <b>blue</b> paint", "Use <b>red</b> paint"),
        ("The first half.", "The first half. The second half."),
        ("", ""),
        ("***", "..."),
        ("**", ""),
    ],
)
def test_other_words(sent: str, kept: str) -> None:
    assert not is_alike(Form(sent), Form(kept))


@given(st.text())
def test_whatever_is_left_of_a_text_is_like_itself(text: str) -> None:
    form = Form(text)
    assert is_alike(form, Form(text)) == bool(form.base)


@pytest.mark.parametrize(
    ("whole", "parts", "count"),
    [
        ("a\n\nb", ["a", "b"], 2),
        ("a\n\nb\n\nc", ["x", "b", "c"], 0),
        ("Once there was a king.", ["Once there was", "a king."], 2),
        ("Hello world", ["Hello wor", "ld"], 2),
        ("Bob: hi\n\nCarl: hello", ["hi", "hello"], 2),
        ("hi\nthere 42", ["hi", "<think>x</think>there 42"], 2),
        ("b", ["a", "b"], 0),
        ("a\n\nb", ["", "b"], 0),
        ("a\n\nb and more", ["a", "b"], 0),
        ("c a b", ["a", "b"], 0),
    ],
)
def test_squashed_turns(whole: str, parts: list[str], count: int) -> None:
    assert count_squashed(Form(whole), map(Form, reversed(parts))) == count


@pytest.mark.parametrize(
    ("text", "notes", "peeled"),
    [
        ("[note]\n\nhi", ["[note]"], Peeled("[note]\n\n", "hi", "")),
        ("hi\n[note]\n", ["[note]"], Peeled("", "hi", "\n[note]\n")),
        ("[one]\n[two]\nhi", ["[two]", "[one]"], Peeled("[one]\n[two]\n", "hi", "")),
        ("hi [note]", ["[note]"], Peeled("", "hi [note]", "")),
        ("[note] hi", ["[note]"], Peeled("", "[note] hi", "")),
        ("[note]", ["[note]"], Peeled("", "[note]", "")),
        ("ok\nhi", ["ok"], Peeled("", "ok\nhi", "")),
        ("hi", [], Peeled("", "hi", "")),
    ],
)
def test_notes_are_peeled_off(text: str, notes: list[str], peeled: Peeled) -> None:
    found = peel(text, notes)
    assert found == peeled
    assert found.before + found.text + found.after == text
    assert found.is_bare == (found.text == text)


@pytest.mark.parametrize(
    ("whole", "inner", "wrapping"),
    [
        ("Context: a, b\n\nhi", "hi", ("Context: a, b\n\n", "")),
        ("hi\n\n[note]", "hi", ("", "\n\n[note]")),
        ("<context>a</context>hi<end>", "hi", ("<context>a</context>", "<end>")),
        ("Question: hi", "hi", ("Question: ", "")),
        ("質問：元気？", "元気？", ("質問：", "")),
        ("oh hi", "hi", None),
        ("hi there", "hi", None),
        ("hi", "hi", None),
        ("hi\n", "hi", None),
        ("something", "", None),
        ("something", "else", None),
    ],
)
def test_what_stood_around_a_message(
    whole: str, inner: str, wrapping: tuple[str, str] | None
) -> None:
    found = find_wrapping(whole, inner)
    assert (found and (found.before, found.after)) == wrapping


BELOW = Peeled("", "", "\n\nAnswer from: x")
NO_QUESTION = "Use these papers:\nand tell me"
RETRIEVED = Peeled("Use these papers:\nPaper 1.\n\nQuestion:\n", "", "")


@pytest.mark.parametrize(
    ("text", "wrapping", "peeled"),
    [
        (
            "Use these papers:\nPaper 2 and 3.\n\nQuestion:\nhow?",
            RETRIEVED,
            Peeled("Use these papers:\nPaper 2 and 3.\n\nQuestion:\n", "how?", ""),
        ),
        ("how?", RETRIEVED, Peeled("", "how?", "")),
        (NO_QUESTION, RETRIEVED, Peeled("", NO_QUESTION, "")),
        ("how?\n\nAnswer from: x", BELOW, Peeled("", "how?", BELOW.after)),
        ("Answer from: x", BELOW, Peeled("", "Answer from: x", "")),
        (
            "Use these papers:\nQuestion:\n",
            RETRIEVED,
            Peeled("", "Use these papers:\nQuestion:\n", ""),
        ),
    ],
)  # fmt: skip
def test_what_stands_around_the_newest_message(text: str, wrapping: Peeled, peeled: Peeled) -> None:
    assert unwrap(text, wrapping) == peeled


@pytest.mark.parametrize(
    ("one", "other", "least", "most"),
    [
        ("one", "ONE", 1.0, 1.0),
        ("[Lore of turn 3: x]", "[Lore of turn 4: x]", 0.6, 1.0),
        ("[Start]", "yes, let us walk on", 0.0, 0.15),
        ("", "", 0.0, 0.0),
    ],
)
def test_common_words(one: str, other: str, least: float, most: float) -> None:
    assert least <= share_words(one, other) <= most


def pattern_of_blocks(text: str) -> str:
    """What is meant, in one pattern; its time grows with the square of open tags."""
    blocks = r"<([A-Za-z][\w-]{0,30})(?:\s[^<>]*)?>.*?</\1\s*>|<!--.*?-->"
    return re.sub(blocks, "", text, flags=re.DOTALL)


PIECES = [
    "<b>",
    "</b>",
    "<br>",
    "<b x='1'>",
    "</b >",
    "<!--",
    "-->",
    "<",
    ">",
    "-",
    "a",
    "雨",
    "\n",
]


@given(st.lists(st.sampled_from(PIECES), max_size=24).map("".join))
def test_blocks_go_as_the_pattern_says(text: str) -> None:
    marked = f"<i>{text}"
    assert _tidy(pattern_of_blocks(marked)) in {*Form(marked).stripped, ""}
    assert _drop_blocks(marked) == pattern_of_blocks(marked)


def test_tags_that_nobody_closes_are_each_looked_at_once() -> None:
    """A pattern took minutes for a page of <br>, and the whole program waited."""
    page = "a line<br>\n<li>an item\n" * 50_000
    assert _drop_blocks(page) == page
    assert Form(page + "<think>no</think>").stripped[1].endswith("an item")
