import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.policy_file.variables import expand


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${KEY}", "geheim"),
        ("a-${KEY}-b", "a-geheim-b"),
        ("${KEY:-other}", "geheim"),
        ("${NONE:-other}", "other"),
        ("${NONE:-}", ""),
        ("${EMPTY:-other}", "other"),
        ("$$5", "$5"),
        ("$${KEY}", "${KEY}"),
        ("${TRAP}", "${KEY}$$"),
        ("鍵${KEY}🔑", "鍵geheim🔑"),
        ("plain", "plain"),
    ],
)
def test_variables_are_inserted_once_and_never_read_again(text, expected):
    environ = {"KEY": "geheim", "EMPTY": "", "TRAP": "${KEY}$$"}
    found = expand(text, environ)
    assert (found.text, found.problems) == (expected, ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${NONE}", "the environment variable NONE is not set"),
        ("${EMPTY}", "the environment variable EMPTY is set but empty"),
        ("$KEY", "a $ that begins no variable"),
        ("${KEY", "a $ that begins no variable"),
        ("${KEY-x}", "a $ that begins no variable"),
        ("${1KEY}", "a $ that begins no variable"),
        ("${NONE:-${KEY}}", "a $ that begins no variable"),
        ("pa$word", "a $ that begins no variable"),
    ],
)
def test_what_cannot_be_inserted_is_told_without_any_value(text, message):
    found = expand(text, {"KEY": "geheim", "EMPTY": ""})
    assert message in [said for said, _ in found.problems]
    assert "geheim" not in repr(found.problems)


@given(st.text())
def test_whatever_a_variable_holds_arrives_as_it_is(value):
    found = expand("<${KEY:-}>", {"KEY": value})
    assert found.text == f"<{value}>"


@given(st.text())
def test_doubled_dollars_give_every_text_back(text):
    assert expand(text.replace("$", "$$"), {}).text == text
