"""The judge's verdicts: what comes in, which reason goes out."""

from __future__ import annotations

import json

import pytest

from policies.judge import Verdict, is_refusal, judge_gist
from tests.policies.judge_spans import GOOD, SPAN, judge

LONGER = "Finn brought the lockpicks and asked what happens if he is late. The watch passes often."


def test_a_good_chapter_is_accepted_as_it_was_written() -> None:
    assert judge(GOOD) == Verdict(True, (), GOOD)


@pytest.mark.parametrize(
    ("finish_reason", "reason"),
    [
        ("length", "truncated"),
        ("error", "truncated"),
        ("network_error", "truncated"),
        ("abort", "truncated"),
        ("repetition_truncation", "truncated"),
        ("insufficient_system_resource", "truncated"),
        ("tool_calls", "truncated"),
        ("STOP", "truncated"),
        ("", "truncated"),
        (None, "truncated"),
        ("content_filter", "refusal"),
        ("contentFilter", "refusal"),
        ("SAFETY", "refusal"),
        ("IMAGE_SAFETY", "refusal"),
        ("BLOCKLIST", "refusal"),
        ("PROHIBITED_CONTENT", "refusal"),
        ("SPII", "refusal"),
        ("RECITATION", "refusal"),
        ("refusal", "refusal"),
    ],
)
def test_only_a_native_stop_is_complete(finish_reason: str | None, reason: str) -> None:
    """B01, B04: a list of what is whole, not of what is broken."""
    assert judge(GOOD, finish_reason=finish_reason) == Verdict(False, (reason,), "")


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (json.dumps({"chapter": GOOD}), GOOD),
        (json.dumps({"chapter": f"  {GOOD}\n", "quotes": [], "claims": [{"who": "Finn"}]}), GOOD),
        ("```json\n" + json.dumps({"chapter": GOOD}) + "\n```", GOOD),
        ("<think>Hm, who whistles?</think>" + json.dumps({"chapter": GOOD}), GOOD),
        (json.dumps({"chapter": f"<think>Short.</think>{GOOD}"}), GOOD),
        (f"Who whistles? Finn.</think>\n{json.dumps({'chapter': GOOD})}", GOOD),
    ],
)
def test_the_frame_is_taken_off(output: str, text: str) -> None:
    assert judge(output, framed=True) == Verdict(True, (), text)


@pytest.mark.parametrize(
    ("output", "reasons"),
    [
        (GOOD, ("frame",)),
        (json.dumps({"gist": GOOD}), ("frame",)),
        (json.dumps([GOOD]), ("frame",)),
        (json.dumps({"chapter": 7}), ("frame", "empty")),
        ('{"chapter": "Mara and Finn planned to fetch the necklace from the', ("truncated",)),
        ("{Mara waits with the boat under the stone bridge until 3.}", ("frame",)),
        ("[" * 100_000, ("frame", "empty")),
        ("I'm sorry, but I can't help with that.", ("refusal", "frame")),
        ("", ("empty",)),
        ('{"chapter": ""}', ("empty",)),
        ('{"chapter": " \\n\\u200b"}', ("empty",)),
    ],
)
def test_what_is_outside_the_frame_is_no_chapter(output: str, reasons: tuple[str, ...]) -> None:
    """A11, A18: an answer without the frame, and a frame without text."""
    verdict = judge(output, framed=True)
    assert (verdict.accepted, verdict.text) == (False, "")
    assert verdict.reasons[: len(reasons)] == reasons


@pytest.mark.parametrize(
    "output",
    [
        json.dumps({"chapter": GOOD}),
        json.dumps({"Summary": GOOD, "threads": []}),
        json.dumps({"story_so_far_text": GOOD, "n": 1}),
        json.dumps([GOOD]),
        GOOD,
    ],
)
def test_without_a_frame_prose_is_prose_and_json_is_unwrapped(output: str) -> None:
    assert judge(output) == Verdict(True, (), GOOD)


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (" \n\u200b", "empty"),
        ('{"gist": "I\'m unable to summarise this content.", "chapters": []}', "refusal"),
        ('{"name": "summarize", "arguments": {}}', "thinking"),
        (
            "<tool_call>look_up<arg_key>what</arg_key><arg_value>tides</arg_value></tool_call>",
            "thinking",
        ),
        ("<think>The user wants a recap. Let me see", "thinking"),
        ("<think>The user wants a recap. Let me see</think>", "empty"),
        ("Okay, the user wants a chapter about Mara and Finn and the necklace.", "thinking"),
        ("[nothing is left to record]", "degenerate"),
        ("Mara has a boat. Finn has the lockpicks and a whis", "truncated"),
        ("Mara waits with the boat until 3. The second window is the one with the", "truncated"),
        (f"{GOOD} {GOOD}", "loop"),
        (
            "Marta traf Finn an der Brücke, und sie warteten auf das Boot, das mit dem Wind kam.",
            "wrong-language",
        ),
        (
            "The longest river of France is the Loire. Is there anything more I can look up?",
            "continuation",
        ),
        (
            "Mara and Finn met Lord Ashcombe in Geneva and paid him 870 francs for the boat.",
            "ungrounded",
        ),
        (
            "The archivist keeps this in long-term memory: Mara waits with the boat until 3.",
            "frame-leak",
        ),
        (" ".join(text for _, text in SPAN[:3]), "echo"),
        (
            "The watch passes. "
            + "Mara and Finn spoke of window, desk and necklace in many ways. " * 90,
            "long",
        ),
    ],
)
def test_every_reason_has_its_output(output: str, reason: str) -> None:
    """A10, A11, A12, B17: each way to miss a summary has its name."""
    verdict = judge(output)
    assert not verdict.accepted
    assert reason in verdict.reasons


def test_a_long_refusal_is_one() -> None:
    """A01: length alone tells nothing of an output."""
    text = (
        "I have read what you sent with attention. On reflection, an account of it is something I"
        " would rather not write. "
        + "Such an account ought to be fair to everybody in it, which I cannot promise to be here. "
        * 27
        + "If a list of topics helps, say so."
    )
    assert len(text) > 2_300
    assert is_refusal(text)
    assert "refusal" in judge(text).reasons


@pytest.mark.parametrize(
    "spelling",
    [
        "I can't help with that.",
        "I can\u2019t help with that.",
        "I can\u02bct help with that.",
        "I can\uff07t help with that.",
        "I can not help with that.",
        "I\u200b can't help with that.",
        "I\u00a0can't\u00a0help with that.",
        "I CAN'T HELP WITH THAT.",
        "\uff29 \uff43\uff41\uff4e\uff07\uff54 \uff48\uff45\uff4c\uff50 with that.",
        "I cant help with that.",
        "Lo siento, no me esta\u0301 permitido.",
    ],
)
def test_spellings_of_one_refusal_are_one(spelling: str) -> None:
    """A05: marks, blanks and widths that look alike are alike."""
    assert is_refusal(spelling)


def test_labels_before_a_refusal_do_not_hide_it() -> None:
    assert is_refusal("Summary: Chapter 3: Answer: Note: I can't help with that.")
    assert is_refusal("**Summary**\n\nI can't help with that.")
    assert not is_refusal("Summary: Chapter 3: Answer: Note: Mara left.")
    assert not is_refusal("Summary:")


def test_what_is_stored_keeps_its_spelling() -> None:
    """A05: alike for the rule, and stored as it was written."""
    curly = GOOD.replace("'", "\u2019") + " \u201cI will whistle twice,\u201d he said.\u00a0\u2026"
    assert judge(curly).text == curly


@pytest.mark.parametrize(
    "told",
    [
        "User is upset that the bank's bot answered \"I'm sorry, I can't help with"
        ' that" four times'
        "; wants a complaint letter, formal tone, deadline Friday.",
        "\"I'm sorry, I can't help with that,\" the bot answered four times.",
        '"I cannot write that," Tom said, and nobody asked him twice.',
        "She could not forgive herself.",
        "As an AI engineer, she builds retrieval systems.",
        "Refused: 3. Accepted: 41. Skipped: 0.",
        "",
        " \n",
        "…",
    ],
)
def test_a_quoted_or_told_refusal_is_none(told: str) -> None:
    """A20: a talk about refusals may be told."""
    assert not is_refusal(told)


def test_a_chapter_about_a_refusal_enters_memory() -> None:
    """A20: the whole judge, where the talk itself was about a bot that declines."""
    talk = [
        ("user", 'The hotel bot wrote "Sorry, I can\'t help with this" to me five times.'),
        ("assistant", "That is tiresome. Shall I draft a complaint?"),
        ("user", "Yes, firm but polite, and it must be out by Monday."),
    ]
    told = (
        "The user was annoyed that the hotel's bot had written \"Sorry, I can't help with this\""
        " five times, and wants a firm but polite complaint by Monday."
    )
    assert judge(told, talk) == Verdict(True, (), told)


def test_a_quotation_beside_the_speaker_himself_is_his_refusal() -> None:
    assert is_refusal('I can\'t write about "the window" here.')


def test_an_output_of_monstrous_length_is_not_read() -> None:
    assert judge("a" * 200_001) == Verdict(False, ("long",), "")


def _gist(output: str, *, framed: bool = False, source: tuple[str, ...] = ()) -> Verdict:
    chapters = source or (
        "Mara and Finn planned to fetch the necklace from the jeweller's desk. Finn will whistle.",
        "Finn took the necklace at 2 o'clock, and Mara rowed him to Lubeck before the watch woke.",
    )
    return judge_gist(output, chapters, finish_reason="stop", asked_chars=1_500, framed=framed)


def test_a_gist_may_keep_sentences_of_its_chapters() -> None:
    kept = (
        "Mara and Finn planned to fetch the necklace from the jeweller's desk. Finn took it at 2."
    )
    assert _gist(kept) == Verdict(True, (), kept)
    assert _gist(json.dumps({"chapter": kept}), framed=True) == Verdict(True, (), kept)


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("I'm sorry, but I can't fold these chapters.", "refusal"),
        ("Lady Ashcombe bought the necklace in Geneva for 870 francs.", "ungrounded"),
        ("Finn took it at 2 o'clock, and Mara rowed him to", "truncated"),
        ("马拉和芬恩偷走了珠宝商的项链，乘船去了吕贝克，没有人醒来。", "wrong-language"),
    ],
)
def test_a_gist_is_judged_like_a_chapter(output: str, reason: str) -> None:
    assert reason in _gist(output).reasons


def test_a_span_of_32_000_characters_is_judged_too() -> None:
    span = [(speaker, f"{text} {n}") for n in range(180) for speaker, text in SPAN[:3]]
    assert sum(len(text) for _, text in span) > 32_000
    verdict = judge(f"{GOOD} {LONGER}", [*span, *SPAN])
    assert verdict.reasons == ()
