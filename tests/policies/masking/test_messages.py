"""Which fields of a message are hidden, and which lead from one message to another."""

from __future__ import annotations

from typing import Any

from policies.masking.kinds import KINDS
from policies.masking.messages import mask_message, mask_params
from policies.masking.placeholders import Masks

MAIL = "a@example.com"


def masks() -> Masks:
    return Masks("conv_1", KINDS)


SHOWN = masks().mask(MAIL)


def masked(message: dict[str, Any]) -> Any:
    return mask_message(masks(), message)


def test_texts_in_every_form() -> None:
    image = {"type": "image_url", "image_url": {"url": f"https://x.example/{MAIL}"}}
    assert masked({"role": "user", "content": f"I am {MAIL}"})["content"] == f"I am {SHOWN}"
    parts = [{"type": "text", "text": MAIL}, image]
    assert masked({"role": "user", "content": parts})["content"] == [
        {"type": "text", "text": SHOWN},
        image,
    ]
    nested = [{"type": "tool_result", "content": [{"type": "text", "text": MAIL}, image]}]
    assert masked({"role": "tool", "tool_call_id": MAIL, "content": nested}) == {
        "role": "tool",
        "tool_call_id": MAIL,
        "content": [{"type": "tool_result", "content": [{"type": "text", "text": SHOWN}, image]}],
    }


def test_calls_and_their_results() -> None:
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "f", "arguments": f'{{"a":"{MAIL}"}}'},
    }
    shown = masked({"role": "assistant", "content": None, "tool_calls": [call]})
    assert shown["tool_calls"][0]["function"] == {"name": "f", "arguments": f'{{"a":"{SHOWN}"}}'}
    result = {"role": "tool", "tool_call_id": "c1", "content": f'{{"m": "{MAIL}"}}'}
    assert masked(result) == {**result, "content": f'{{"m":"{SHOWN}"}}'}
    told = {"role": "tool", "tool_call_id": "c1", "content": f"found {MAIL}", "note": MAIL}
    assert masked(told) == {**told, "content": f"found {SHOWN}", "note": SHOWN}


def test_what_hides_nothing_is_the_same_object() -> None:
    for message in (
        {"role": "user", "content": "hi", "n": 1},
        {"role": "tool", "content": "[1, 2]", "tool_call_id": "x"},
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
    ):
        assert masked(message) is message


def test_the_name_of_who_speaks_is_hidden_and_that_of_a_tool_is_not() -> None:
    said = {"role": "user", "name": MAIL, "content": "hi"}
    assert masked(said) == {**said, "name": SHOWN}
    plain = {"role": "user", "name": "bob", "content": "hi"}
    assert masked(plain) is plain
    told = {"role": "tool", "name": MAIL, "content": "hi"}
    assert masked(told) is told


def test_descriptions_of_tools_are_hidden_and_names_are_not() -> None:
    tool = {"name": "mail", "description": f"for {MAIL}", "parameters": {"enum": [MAIL]}}
    params = {"tools": [{"type": "function", "function": tool}], "safety_identifier": MAIL}
    shown = mask_params(masks(), params)
    assert shown["tools"][0]["function"] == {
        "name": "mail",
        "description": f"for {SHOWN}",
        "parameters": {"enum": [SHOWN]},
    }
    assert shown["safety_identifier"] == MAIL
