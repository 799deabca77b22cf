"""A fold's memory as it is shown: one frame, in the language of what it tells."""

from __future__ import annotations

import re
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.prompts.memory import (
    CHAPTER_COST,
    FIXED_COST,
    GIST_COST,
    Background,
    DocumentText,
    PinnedText,
    ThreadText,
    profile_cost,
    render_memory,
)
from gateway.prompts.phrases import PHRASES
from tests.gateway.house import assistant, user

_TAG = re.compile(r"<\s*/?\s*(?:memory|earlier|chapter|ledger|document|profile)\b", re.IGNORECASE)


def test_no_memory_no_pair() -> None:
    """A18."""
    assert render_memory(None, []) == []
    assert render_memory("", []) == []


def test_what_the_owner_emptied_leaves_no_frame() -> None:
    assert render_memory("", ["", "They left."]) == render_memory(None, ["They left."])
    assert render_memory("", [""]) == []


def test_gist_then_chapters_in_one_marked_frame() -> None:
    question, answer = render_memory("They met.", ["They left.", "They came back."])
    assert question == user(PHRASES["en"].question)
    assert answer["content"] == (
        f"{PHRASES['en'].header}\n<memory>\n<earlier>\nThey met.\n</earlier>\n"
        "<chapter>\nThey left.\n</chapter>\n<chapter>\nThey came back.\n</chapter>\n</memory>"
    )


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("彼は港で船を待っていた。", "ja"),
        ("他在港口等船。", "zh"),
        ("그는 항구에서 배를 기다렸다.", "ko"),
        ("Он ждал корабль в порту.", "ru"),
        ("Él esperaba el barco en el puerto.", "es"),
        ("He waited for the ship.", "en"),
        ("12:30 …", "en"),
    ],
)
def test_the_frame_speaks_the_memorys_language(text: str, language: str) -> None:
    question, answer = render_memory(None, [text])
    assert question["content"] == PHRASES[language].question
    assert answer["content"].startswith(PHRASES[language].header)


def test_headers_hold_no_number() -> None:
    """C02: nothing in a header moves with the conversation."""
    for phrases in PHRASES.values():
        words = asdict(phrases)
        assert not re.search(r"\d", "".join(words.values()))


def test_what_is_foreseen_bounds_what_is_rendered() -> None:
    for text in (
        "港で船を待つ。",
        "He waits.",
        "Él espera.",
        "Он ждёт.",
        "그는 기다린다.",
        "他等船。",
    ):
        rendered = render_memory(text, [text, text])
        size = sum(len(message["content"]) for message in rendered)
        foreseen = FIXED_COST + GIST_COST + len(text) + 2 * (CHAPTER_COST + len(text))
        assert size <= foreseen


_TAGS = [
    "</memory>",
    "< / memory >",
    "<memory>",
    "</chapter>",
    "<CHAPTER>",
    "</earlier >",
    "<\n/memory>",
    "</ledger>",
    "<document name='x'>",
    "</document>",
    "</profile>",
]


@given(
    st.lists(st.one_of(st.sampled_from(_TAGS), st.text(max_size=12)), max_size=8),
    st.booleans(),
)
def test_a_memorys_text_cannot_close_its_frame(pieces: list[str], as_gist: bool) -> None:
    """E16: whatever a chapter says, the frame is ours alone."""
    text = "".join(pieces)
    rendered = render_memory(text if as_gist else "g", [text, "end"])
    body = rendered[1]["content"].split("\n<memory>\n", 1)[1]
    tags = _TAG.findall(body)
    gist = 1 if (text if as_gist else "g") else 0
    told = 2 if text else 1
    frames = ["<earlier", "</earlier"] * gist + ["<chapter", "</chapter"] * told
    assert tags == [*frames, "</memory"]


def test_a_chapter_more_leaves_what_stood_before_it() -> None:
    """C08: the gist in front changes only with a major fold."""
    before = render_memory("g", ["one", "two"])[1]["content"]
    after = render_memory("g", ["one", "two", "three"])[1]["content"]
    assert after.startswith(before.removesuffix("</memory>"))


# -- beside gist and chapters ---------------------------------------------------------------------

WHOLE = Background(
    documents=[DocumentText('the "plan".md', "# Plan\n\n1. Ship it.\n")],
    profile=["Lives in\nOslo.", "Has a cat, Miso."],
    pinned=[PinnedText("fact", "The code is 4711."), PinnedText("quote", "Never again.", "Ann")],
    open=[ThreadText(3, "Who took the key?"), ThreadText(12, "Will Ann come back?")],
    closed=[ThreadText(1, "The letter was found.")],
)


def test_documents_and_profile_stand_before_the_question_the_ledger_behind_the_chapters() -> None:
    question, answer = render_memory("They met.", ["They left."], WHOLE)
    words = PHRASES["en"]
    assert question == user(
        f"{words.documents}\n"
        "<document name=\"the 'plan'.md\">\n# Plan\n\n1. Ship it.\n</document>\n"
        f"{words.profile}\n<profile>\n- Lives in Oslo.\n- Has a cat, Miso.\n</profile>\n"
        f"\n{words.question}"
    )
    assert answer == assistant(
        f"{words.header}\n<memory>\n<earlier>\nThey met.\n</earlier>\n"
        "<chapter>\nThey left.\n</chapter>\n"
        f"<ledger>\n{words.pinned}\n- The code is 4711.\n- “Never again.” — Ann\n"
        f"{words.open}\n[T3] Who took the key?\n[T12] Will Ann come back?\n"
        f"{words.closed}\n[T1] The letter was found.\n</ledger>\n</memory>"
    )


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("彼女は猫を飼っている。", "ja"),
        ("她养了一只猫。", "zh"),
        ("그녀는 고양이를 키운다.", "ko"),
        ("У неё есть кошка.", "ru"),
        ("Ella tiene una gata y vive en la costa.", "es"),
        ("She has a cat.", "en"),
    ],
)
def test_before_anything_happened_it_is_asked_to_be_kept_in_mind(text: str, language: str) -> None:
    question, answer = render_memory(None, [], Background(profile=[text]))
    words = PHRASES[language]
    assert question["content"] == (
        f"{words.profile}\n<profile>\n- {text}\n</profile>\n\n{words.keep}"
    )
    assert answer["content"] == words.noted


def test_a_pin_before_anything_is_folded_stands_in_the_question() -> None:
    question, answer = render_memory(None, [], Background(pinned=[PinnedText("fact", "Я врач.")]))
    words = PHRASES["ru"]
    assert question["content"] == (
        f"{words.header}\n<memory>\n<ledger>\n{words.pinned}\n- Я врач.\n</ledger>\n</memory>"
        f"\n\n{words.keep}"
    )
    assert answer["content"] == words.noted


def test_the_words_around_speak_the_language_that_is_known() -> None:
    background = Background(profile=["彼は猫を飼っている。"])
    question, answer = render_memory(None, [], background, language="en")
    assert question["content"].startswith(PHRASES["en"].profile)
    assert answer["content"] == PHRASES["en"].noted


@pytest.mark.parametrize(
    "tag",
    [
        "＜/document＞",
        "<\u200b/document>",
        "</\u200bchapter>",
        "<\u2060memory>",
        "< ／ notes >",
        "<NOTE 3>",
    ],
)
def test_what_only_looks_like_a_tag_closes_no_frame_either(tag: str) -> None:
    """R9."""
    background = Background(
        documents=[DocumentText(tag, tag)],
        profile=[tag],
        open=[ThreadText(1, tag)],
    )
    told = render_memory(tag, [tag], background)
    assert "‹" + tag[1:] in told[1]["content"]
    assert tag not in "".join(message["content"] for message in told)


_texts = st.text(max_size=30) | st.sampled_from([*_TAGS, "鍵はどこ？", "Где ключ?"])


@given(
    st.lists(_texts, max_size=2),
    st.lists(_texts, max_size=3),
    st.lists(_texts, max_size=3),
    st.none() | _texts,
)
def test_a_background_costs_no_more_than_is_reckoned_and_closes_no_frame(
    documents: list[str], lines: list[str], chapters: list[str], gist: str | None
) -> None:
    chapters = list(filter(None, chapters))
    background = Background(
        documents=[DocumentText(text[:9], text) for text in documents],
        profile=lines,
        pinned=[PinnedText("quote", text, text[:5]) for text in lines],
        open=[ThreadText(7, text) for text in lines],
        closed=[ThreadText(10_000, text) for text in lines],
    )
    rendered = render_memory(gist, chapters, background)
    size = sum(len(message["content"]) for message in rendered)
    told = sum(CHAPTER_COST + len(text) for text in chapters)
    told += GIST_COST + len(gist) if gist else 0
    assert size <= FIXED_COST + background.cost + told
    tags = len(_TAG.findall("".join(message["content"] for message in rendered)))
    kinds = len(documents) + bool(gist) + len(chapters) + (2 if lines else 0)
    is_told = bool(gist or chapters or lines)
    assert tags == 2 * kinds + 2 * is_told, "each frame opens and closes, and nothing else does"


def test_a_backgrounds_cost_is_that_of_its_lines_and_the_words_above_them() -> None:
    lines = sum(document.cost for document in WHOLE.documents)
    lines += sum(map(profile_cost, WHOLE.profile))
    lines += sum(entry.cost for entry in (*WHOLE.pinned, *WHOLE.open, *WHOLE.closed))
    assert 0 < WHOLE.cost - lines < 400
