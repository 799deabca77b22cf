import pytest

from gateway.policy_file.characters import find_forbidden, find_invisible, find_look_alike


@pytest.mark.parametrize(
    ("text", "line", "column", "name"),
    [
        ("fold:\n\tstart: 1\n", 2, 1, "TAB (U+0009)"),
        ("a: 1\t# c\n", 1, 5, "TAB (U+0009)"),
        ("a: 1\r\nb:\t2\r\n", 2, 3, "TAB (U+0009)"),
        ("a: \x00\n", 1, 4, "NUL (U+0000)"),
        ("# see\u2028b: 1\n", 1, 6, "LINE SEPARATOR (U+2028)"),
        ("# \u202ered\n", 1, 3, "RIGHT-TO-LEFT OVERRIDE (U+202E)"),
        ("a: \ud800\n", 1, 4, "control character (U+D800)"),
        ("a: 1\x85b: 2", 1, 5, "control character (U+0085)"),
    ],
)
def test_what_no_line_may_hold_is_named_with_its_place(text, line, column, name):
    (problem,) = find_forbidden(text)
    assert (problem.line, problem.column) == (line, column)
    assert name in problem.message


def test_each_line_is_told_once():
    assert [one.line for one in find_forbidden("\ta:\t1\nb: 2\n\tc: 3\n")] == [1, 3]


@pytest.mark.parametrize("text", ["# a\ttab\n", "a: 1 #\tc\n", "# 全角　と\u00a0空白\n", "a: 😀\n"])
def test_a_comment_may_hold_tabs_and_the_blanks_of_any_language(text):
    assert list(find_forbidden(text)) == []


@pytest.mark.parametrize(
    ("source", "offset", "name"),
    [
        ("\u00a0start", 0, "NO-BREAK SPACE (U+00A0)"),
        ("sta\u200brt", 3, "ZERO WIDTH SPACE (U+200B)"),
        ("start:\u3000480", 6, "IDEOGRAPHIC SPACE (U+3000)"),
        ("a\ufeff", 1, "ZERO WIDTH NO-BREAK SPACE (U+FEFF)"),
        ("a\u3164", 1, "HANGUL FILLER (U+3164)"),
        ("co\u00adop", 2, "SOFT HYPHEN (U+00AD)"),
    ],
)
def test_what_nobody_sees_in_a_word_is_found_and_named(source, offset, name):
    assert find_invisible(source) == (offset, name)


@pytest.mark.parametrize("source", ["local glm", "한국어", "日本語", "two\nlines"])
def test_what_can_be_seen_is_let_pass(source):
    assert find_invisible(source) is None
    assert find_look_alike(source) is None


def test_signs_of_an_input_method_are_told_from_those_of_yaml():
    assert find_look_alike("start：48000") == (5, "：", ":")
    assert find_look_alike("“x”") == (0, "“", '"')
