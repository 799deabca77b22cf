"""The one rendering of a span."""

from json import dumps
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.schema import ReplyFields
from policies.transcript import render_span
from policies.values import Line

NAMES = {"user": "Anna", "assistant": "海斗"}


def call(name: str, arguments: str, key: str = "t1") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": key, "function": function}]}


def result(content: Any, key: str = "t1", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": key, "content": content, **more}


@pytest.mark.parametrize(
    ("messages", "lines"),
    [
        ([], []),
        (
            [
                {"role": "user", "content": "おはよう。\r\n元気？ "},
                {"role": "assistant", "content": '*smiles* "Good morning!"'},
            ],
            [("Anna", "おはよう。\n元気？"), ("海斗", '*smiles* "Good morning!"')],
        ),
        # a name of its own, tidied to one line, goes before the role's; a role without any
        (
            [
                {"role": "user", "name": "Bea\n Lee", "content": "Hi"},
                {"role": "user", "name": " ", "content": "Hi"},
                {"role": "system", "content": "From now on French."},
                {"content": "?"},
            ],
            [("Bea Lee", "Hi"), ("Anna", "Hi"), ("system", "From now on French."), ("Anna", "?")],
        ),
        # a call and its result
        (
            [call("weather", '{"city": "Lima"}'), result("18 °C"), result("x", key="t9")],
            [
                ("海斗", '[calls weather({"city": "Lima"})]'),
                ("tool", "[result of weather: 18 °C]"),
                ("tool", "[result of a tool: x]"),
            ],
        ),
        ([result("x", key="", name="clock")], [("tool", "[result of clock: x]")]),
        (
            [{"role": "function", "name": "clock", "content": "noon"}],
            [("function", "[result of clock: noon]")],
        ),
        # E13: a call without its result, an empty turn, an image, a blank, an empty result
        (
            [
                call("f", ""),
                {"role": "user", "content": ""},
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]},
                {"role": "assistant", "content": " \n "},
                result(""),
            ],
            [("海斗", "[calls f()]"), ("Anna", "[image]")],
        ),
        # words beside a call; reasoning is left out
        (
            [{**call("f", "{}"), "content": "Let me look.", "reasoning_content": "Hm"}],
            [("海斗", "Let me look.\n[calls f({})]")],
        ),
    ],
)
def test_render_span(messages: list[dict[str, Any]], lines: list[tuple[str, str]]) -> None:
    """A14, E13: plain text, without anybody's reasoning."""
    assert render_span(messages, NAMES) == [Line(*line) for line in lines]


def test_a_reply_in_json_is_a_line_for_each_part() -> None:
    names = {**NAMES, "narrator": "地の文", "thinks": "心の声"}
    reply = {"narration": "雨。", "lines": [{"name": "ミラ", "text": "行くわ"}], "thought": "嘘よ"}
    message = {
        "role": "assistant",
        "content": dumps(reply),
        "tool_calls": call("f", "")["tool_calls"],
    }
    lines = render_span([{"role": "user", "content": dumps(reply)}, message], names)
    assert [(line.label, line.text, line.kind, line.role, line.at) for line in lines] == [
        ("Anna", dumps(reply), "said", "user", 0),
        ("地の文", "雨。", "told", "assistant", 1),
        ("ミラ", '"行くわ"', "said", "assistant", 1),
        ("海斗 (心の声)", "嘘よ", "thought", "assistant", 1),
        ("海斗", "[calls f()]", "said", "assistant", 1),
    ]
    [quoted] = render_span([{"role": "assistant", "content": '{"say": "「はい」"}'}], {})
    assert (quoted.label, quoted.text) == ("assistant", "「はい」")
    [told, thought] = render_span(
        [{"role": "assistant", "content": '{"scene": "Rain.", "thought": "No."}'}], {}
    )
    assert (told.label, thought.label) == ("narrator", "assistant (thinks)")


def test_the_field_names_are_the_policys() -> None:
    message = {"role": "assistant", "content": '{"台词": "走吧。"}'}
    assert render_span([message], {}, ReplyFields(speech=("台词",)))[0].text == '"走吧。"'
    assert render_span([message], {})[0].text == '{"台词": "走吧。"}'


def test_long_arguments_and_results_are_shortened() -> None:
    lines = render_span([call("f", "a" * 5_000), result("b" * 5_000 + "end")], NAMES)
    assert lines[0].text == f"[calls f({'a' * 300} …)]"
    begin, _, end = lines[1].text.partition(" … ")
    assert begin.startswith("[result of f: bbb") and end.endswith("bend]")
    assert 900 < len(lines[1].text) < 1_050


def test_a_users_long_message_is_whole() -> None:
    text = "log line 17\n" * 15_000
    assert render_span([{"role": "user", "content": text}], NAMES)[0].text == text.rstrip()


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["role", "content", "name", "tool_calls", "tool_call_id"]),
            st.none()
            | st.text(max_size=5)
            | st.sampled_from(["tool", "user", "t1", "\ud83d"])
            | st.lists(st.just({"id": "t1", "function": {"name": "f"}}), max_size=2),
        ),
        max_size=8,
    )
)
def test_every_line_says_something_that_can_be_sent(messages: list[dict[str, Any]]) -> None:
    lines = render_span(messages, {})
    assert len(lines) <= len(messages)
    for line in lines:
        assert line.text.strip()
        line.text.encode()
        line.speaker.encode()
