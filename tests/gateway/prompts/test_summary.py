"""The summarizer's prompt: the span as data, the instruction behind it, in six languages."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.prompts.summary import (
    Form,
    ask_chapter,
    ask_gist,
    prompt_chars,
    quote,
    render_lines,
)
from gateway.prompts.wordings import WORDINGS, wording
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
    assert text.endswith(WORDINGS["en"].frame)
    assert prompt.chars == len(text)


@pytest.mark.parametrize("language", list(WORDINGS))
def test_each_language_is_instructed_in_itself(language: str) -> None:
    """B17."""
    words = WORDINGS[language]

    assert [language_of(said) for said in (words.chapter, words.gist)] == [language] * 2
    assert "chapter" in words.frame
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
    ("form", "asked", "response_format"),
    [
        ("grammar", 1_100, {"type": "string", "minLength": 200}),
        ("grammar", 500, {"type": "string", "minLength": 100}),
        ("schema", 1_100, {"type": "string"}),
        ("object", 1_100, None),
        ("prose", 1_100, None),
    ],
)
def test_how_the_frame_is_demanded(
    form: Form, asked: int, response_format: dict[str, Any] | None
) -> None:
    params = ask(form=form, asked_chars=asked).params

    if form == "prose":
        assert "response_format" not in params
    elif form == "object":
        assert params["response_format"] == {"type": "json_object"}
    else:
        schema = params["response_format"]["json_schema"]["schema"]
        assert schema["properties"] == {"chapter": response_format}
        assert (schema["required"], schema["additionalProperties"]) == (["chapter"], False)


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
        ask_gist([render_lines(LINES)], asked_chars=1_500, language=language, form="prose"),
    ):
        beside = prompt.chars - len(render_lines(LINES))
        assert beside <= prompt_chars(language) <= 1_200


def test_a_lone_surrogate_never_reaches_a_model() -> None:
    text = text_of(ask([Line("User", "a\ufffdb")]))

    text.encode()
