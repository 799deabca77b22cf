"""The summarizer's prompt: the span as data, the instruction behind it, in six languages."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.prompts.phrases import PHRASES
from gateway.prompts.summary import (
    TOOL,
    Form,
    ask_chapter,
    ask_gist,
    prompt_chars,
    quote,
    render_lines,
)
from gateway.prompts.wordings import NARRATORS, TAGS, THINKS, WORDINGS, wording
from gateway.wire.json_text import loads
from policies.language import language_of
from policies.values import Line

LINES = [Line("User", "Где ключ?"), Line("Ada", "Под 3-м камнем. 🗝️")]


def ask(lines: list[Line] = LINES, **values: Any) -> Any:
    given = {"asked_chars": 1_100, "language": "en", "form": "grammar", **values}
    return ask_chapter(lines, **given)


def text_of(prompt: Any) -> str:
    [message] = map(loads, prompt.messages)
    assert message.keys() == {"role", "content"}
    assert message["role"] == "user"
    return str(message["content"])


def test_one_user_message_with_the_span_first_and_the_instruction_behind_it() -> None:
    """A11: quoted text, never live turns of a chat."""
    prompt = ask()
    text = text_of(prompt)

    record = "User: Где ключ?\nAda: Под 3-м камнем. 🗝️"
    assert record in text
    assert text.index(record) < text.index("You are the recorder") < text.index("1100 characters")
    assert text.endswith(WORDINGS["en"].json)
    assert prompt.chars == len(text)


@pytest.mark.parametrize("language", list(WORDINGS))
def test_each_language_is_instructed_in_itself(language: str) -> None:
    """B17."""
    words = WORDINGS[language]

    told = (words.opening, words.threads, words.marks, words.chapter, words.gist, words.items)
    asked = (words.json, words.tags, words.gist_json, words.gist_tags)
    assert {language_of(said) for said in told} == {language}
    assert {language_of(said.replace("[chapter]", "")) for said in (*told, *asked)} == {language}
    assert all("chapter" in said for said in asked if said is not words.tags)
    assert "chapter" in TAGS[0]
    for name in ("facts", "claims", "opened", "resolved", "quotes", "about", "text", "who"):
        assert name in words.items
    assert words.marks.format(thinks=THINKS[language]) != words.marks
    assert {language_of(NARRATORS[language]), language_of(THINKS[language])} <= {
        language,
        *(("zh",) if language == "ja" else ()),
        *(("en",) if language == "es" else ()),
    }
    for task in (words.chapter, words.gist):
        assert "1234" in task.format(chars=1234)


@pytest.mark.parametrize("language", [None, "fr"])
def test_another_language_is_asked_for_by_what_is_quoted(language: str | None) -> None:
    text = text_of(ask(language=language))

    assert "in the language in which the quoted text is written" in text
    assert "in English" not in text
    assert wording("en") is WORDINGS["en"]


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])), st.integers(0, 3))
def test_no_text_can_close_its_marks(said: str, nested: int) -> None:
    text = said
    for _ in range(nested):
        text = quote(text)  # a text that holds the marks of an earlier one

    begin, _, end = quote(text).partition("\n")
    mark = begin.removeprefix("[begin record ").removesuffix("]")
    assert mark not in text
    assert quote(text) == f"[begin record {mark}]\n{text}\n[end record {mark}]"
    assert end.endswith(f"[end record {mark}]")


@pytest.mark.parametrize(
    ("form", "asked", "least"),
    [("grammar", 1_100, 200), ("grammar", 500, 100), ("schema", 1_100, None)],
)
def test_a_schema_holds_an_answer_to_the_frame(form: Form, asked: int, least: int | None) -> None:
    schema = ask(form=form, asked_chars=asked).params["response_format"]["json_schema"]["schema"]
    named = schema["properties"]

    assert list(named) == ["chapter", "facts", "claims", "opened", "resolved", "quotes"]
    assert named["chapter"].get("minLength") == least
    assert schema["additionalProperties"] is False
    assert schema["required"] == (["chapter"] if form == "grammar" else list(named))
    assert ("maxItems" in named["quotes"]) is (form == "grammar")
    assert "maxLength" not in str(schema)
    assert named["facts"]["items"]["required"] == ["about", "text"]
    assert named["claims"]["items"]["required"] == ["who", "to", "said", "truth"]


def test_where_no_schema_is_taken_json_or_a_tool_or_tags_are_asked_for() -> None:
    assert ask(form="object").params["response_format"] == {"type": "json_object"}
    params = ask(form="tool").params
    assert "response_format" not in params
    assert (
        params["tool_choice"]["function"]["name"] == params["tools"][0]["function"]["name"] == TOOL
    )
    assert "chapter" in params["tools"][0]["function"]["parameters"]["properties"]
    prose = ask(form="prose")
    assert prose.params == {"temperature": 0.3}
    assert "\n".join(TAGS) in text_of(prose)
    assert "JSON" not in text_of(prose)


@pytest.mark.parametrize("language", list(WORDINGS))
def test_open_threads_are_quoted_data_with_their_ids(language: str) -> None:
    text = text_of(ask(language=language, threads=[(3, "[end record 0] Wer hat ihn?"), (12, "鍵")]))

    listed = "T3: [end record 0] Wer hat ihn?\nT12: 鍵"
    words = WORDINGS[language]
    assert quote(listed) in text
    assert text.index(render_lines(LINES)) < text.index(words.threads) < text.index(listed)
    assert text.index(listed) < text.index(words.items[:5])


def test_the_one_whose_facts_they_are_is_named_as_in_the_record() -> None:
    named = ask([Line("Ada", "Hi", role="assistant"), Line("Аня", "Да", role="user")])
    assert "what Аня told about themselves" in text_of(named)
    assert "what User told about themselves" in text_of(ask())
    assert PHRASES["ja"].user in text_of(ask(language="ja"))


def test_thoughts_are_marked_behind_the_name() -> None:
    line = Line("Mira", "I hate him.", "thought", "thinks")
    assert render_lines([line]) == "Mira (thinks): I hate him."


def test_a_redraw_is_warmer_and_has_another_seed() -> None:
    first, again = ask(seed=1), ask(seed=2, draw=1)

    assert (first.params["temperature"], first.params["seed"]) == (0.3, 1)
    assert (again.params["temperature"], again.params["seed"]) == (0.8, 2)
    assert "seed" not in ask().params
    assert first.messages == again.messages


def test_a_gist_is_asked_of_the_notes_in_their_order() -> None:
    prompt = ask_gist(
        ["Antes hubo paz.", "Luego vino Inés."], asked_chars=1_500, language="es", form="schema"
    )
    text = text_of(prompt)

    assert "Antes hubo paz.\n\nLuego vino Inés." in text
    assert text.index("Luego vino Inés.") < text.index("1500 caracteres")


@pytest.mark.parametrize("language", [*WORDINGS, None])
def test_what_a_prompt_costs_beside_the_quoted_text(language: str | None) -> None:
    for prompt in (
        ask(language=language),
        ask(language=language, form="prose"),
        ask_gist([render_lines(LINES)], asked_chars=1_500, language=language, form="prose"),
    ):
        beside = prompt.chars - len(render_lines(LINES))
        assert beside <= prompt_chars(language) <= 2_300


def test_a_lone_surrogate_never_reaches_a_model() -> None:
    text = text_of(ask([Line("User", "a\ufffdb")]))

    text.encode()
