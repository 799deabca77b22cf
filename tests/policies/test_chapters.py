"""Cutting spans, texts and lines: sizes, borders, and that nothing is lost."""

from collections.abc import Sequence

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from policies.chapters import cut_spans, group_lines, line_chars, split_text
from policies.values import Line, Mark, Span

FAMILY = "👨‍👩‍👧‍👦"


def marks(*sizes: int, kinds: str = "") -> tuple[Mark, ...]:
    """Messages of these sizes; ``kinds``: u opens, t is bound, anything else neither."""
    kinds = kinds or "ua" * len(sizes)
    return tuple(
        Mark(i + 1, size, kind == "u", kind == "t")
        for i, (size, kind) in enumerate(zip(sizes, kinds, strict=False))
    )


@pytest.mark.parametrize(
    ("messages", "split", "spans"),
    [
        ((), 100, ()),
        # one that fits
        (marks(40, 60), 100, ((1, 2, 100),)),
        # 110 in two spans, even (60 + 50) and not full with a rest (100 + 10)
        (marks(30, 30, 20, 20, 5, 5), 100, ((1, 2, 60), (3, 6, 50))),
        # even would be after the third (60 + 60), but a tail may begin before it: 40 + 80
        (marks(20, 20, 20, 30, 30, kinds="uauaa"), 100, ((1, 2, 40), (3, 5, 80))),
        # where opening borders would need a third span they are let go: 90 + 90
        (marks(10, 80, 80, 10, kinds="uaaa"), 100, ((1, 2, 90), (3, 4, 90))),
        # a call and its result stay together: 60 + 120 is one too large for 100
        (marks(60, 30, 20, 60, kinds="uatu"), 100, ((1, 1, 60), (2, 3, 50), (4, 4, 60))),
        # a giant message alone, its neighbours in spans of their own
        (marks(50, 300, 50, 50), 100, ((1, 1, 50), (2, 2, 300), (3, 4, 100))),
        # a giant group: the call with its results
        (marks(50, 20, 200, 50, kinds="uatu"), 100, ((1, 1, 50), (2, 3, 220), (4, 4, 50))),
        # empty messages
        (marks(0, 0, 0), 100, ((1, 3, 0),)),
        # a result first in the stretch has nothing to be bound to
        (marks(20, 90, kinds="tu"), 100, ((1, 1, 20), (2, 2, 90))),
    ],
)
def test_cut_spans(
    messages: Sequence[Mark], split: int, spans: tuple[tuple[int, int, int], ...]
) -> None:
    assert cut_spans(messages, split) == tuple(Span(*span) for span in spans)


@given(
    st.lists(
        st.tuples(st.integers(0, 60) | st.integers(0, 300), st.sampled_from("uaat")), max_size=60
    ),
    st.integers(1, 200),
)
def test_spans_cover_all_in_as_few_as_can_be(rows: list[tuple[int, str]], split: int) -> None:
    messages = marks(*(size for size, _ in rows), kinds="".join(kind for _, kind in rows) or "u")
    spans = cut_spans(messages, split)
    depths = [depth for span in spans for depth in range(span.first, span.last + 1)]
    assert depths == [mark.depth for mark in messages]
    for span in spans:
        inside = messages[span.first - 1 : span.last]
        assert span.chars == sum(mark.chars for mark in inside)
        assert span.first == 1 or not inside[0].bound
        assert span.chars <= split or all(mark.bound for mark in inside[1:])
    assert len(spans) == count_greedily(messages, split)


def count_greedily(messages: Sequence[Mark], split: int) -> int:
    """The least number of spans, by filling each as far as it goes."""
    groups: list[int] = []
    for mark in messages:
        if mark.bound and groups:
            groups[-1] += mark.chars
        else:
            groups.append(mark.chars)
    count, room = 0, -1
    for size in groups:
        if size > room:
            count += 1
            room = split
        room -= size
    return count


@pytest.mark.parametrize(
    ("text", "limit", "pieces"),
    [
        ("", 10, []),
        ("abc", 3, ["abc"]),
        # no border at all: even pieces
        ("a" * 12, 10, ["a" * 6, "a" * 6]),
        # a paragraph before a line, a line before a sentence, a sentence before a word
        ("One two.\nThree.\n\nFour five.\nSix.", 20, ["One two.\nThree.\n\n", "Four five.\nSix."]),
        ("One two. Six\nFour. Five six", 20, ["One two. Six\n", "Four. Five six"]),
        ("aaa bb ccc! Dd eee fff gg", 20, ["aaa bb ccc! ", "Dd eee fff gg"]),
        ("今日は晴れです。明日は雨です。", 10, ["今日は晴れです。", "明日は雨です。"]),
        ("我去了北京，他去了上海看朋友", 10, ["我去了北京，", "他去了上海看朋友"]),
        ("aaaaa bbbbb ccccc", 12, ["aaaaa ", "bbbbb ccccc"]),
        # graphemes: a family is 7 code points, CR LF are one
        (FAMILY * 3, 10, [FAMILY, FAMILY, FAMILY]),
        ("aaaa\r\nbbbb", 6, ["aaaa\r\n", "bbbb"]),
        ("abc\r\n\r\nd", 4, ["abc", "\r\n\r\n", "d"]),
        # a grapheme within the limit, but beyond an even share
        (FAMILY + "ab", 8, [FAMILY + "a", "b"]),
        # only a grapheme longer than the limit is cut
        ("Z" + "͑" * 5, 4, ["Z͑͑͑", "͑͑"]),
    ],
)
def test_split_text(text: str, limit: int, pieces: list[str]) -> None:
    assert split_text(text, limit) == pieces


def test_the_cut_of_a_family_at_32000() -> None:
    """D03."""
    text = "a" * 31_998 + FAMILY + "b" * 100
    pieces = split_text(text, 32_000)
    assert "".join(pieces) == text
    assert len(pieces) == 2
    assert sum(FAMILY in piece for piece in pieces) == 1


def test_a_giant_log_is_cut_at_lines() -> None:
    """E11: 180,000 characters in 6 even pieces of whole lines."""
    pieces = split_text("log line 17\n" * 15_000, 32_000)
    assert len(pieces) == 6
    assert all(piece.endswith("\n") and len(piece) <= 32_000 for piece in pieces)


def test_long_runs_without_spaces() -> None:
    """D07: a million letters, 200,000 signs of Chinese, marks without an end."""
    for text in ("a" * 1_000_000, "字" * 200_000, "!" * 100_000, "\n" * 100_000):
        pieces = split_text(text, 32_000)
        assert "".join(pieces) == text
        assert len(pieces) == -(-len(text) // 32_000)


def test_a_piece_has_at_least_one_character() -> None:
    with pytest.raises(ValueError, match="not 0"):
        split_text("abc", 0)


texts = st.text(
    st.sampled_from("ab .!?\n\r。、！字かカ각я" + "\u200d\u0351\ufe0f👩🏽🇩🇪") | st.characters(),
    max_size=300,
)


@given(texts, st.integers(1, 60))
def test_pieces_join_to_the_text(text: str, limit: int) -> None:
    pieces = split_text(text, limit)
    assert "".join(pieces) == text
    assert all(0 < len(piece) <= limit for piece in pieces)


@given(texts, st.integers(20, 60))
def test_no_grapheme_is_parted(text: str, limit: int) -> None:
    graphemes = regex.findall(r"\X", text)
    if max(map(len, graphemes), default=0) > limit:
        return
    borders = {0}
    for grapheme in graphemes:
        borders.add(max(borders) + len(grapheme))
    at = 0
    for piece in split_text(text, limit):
        at += len(piece)
        assert at in borders


def test_the_fact_in_the_middle_goes_to_one_call() -> None:
    """B12: a Chinese chapter of 32,000 for a summarizer that takes 12,000 at once."""
    fact = "小猫的名字叫雪球。"
    lines = [Line("用户", "今天天气很好。" * 100) for _ in range(45)]
    lines[22] = Line("用户", "天气。" * 100 + fact + "天气。" * 100)
    groups = group_lines(lines, 12_000)
    assert len(groups) == 3
    assert [line for group in groups for line in group] == lines
    assert all(sum(map(line_chars, group)) <= 12_000 for group in groups)
    assert sum(fact in line.text for group in groups for line in group) == 1


@pytest.mark.parametrize(
    ("sizes", "limit", "groups"),
    [
        ([], 100, []),
        # each costs 20: five fit, six are two even halves
        ([20] * 5, 100, [[20] * 5]),
        ([20] * 6, 100, [[20] * 3, [20] * 3]),
        # 90 + 90 + 20: the third fits behind neither half's share
        ([90, 90, 20], 100, [[90], [90], [20]]),
        # 150 in pieces with the speaker's name on each: 4 + 73 and 4 + 73
        ([150], 100, [[77], [77]]),
    ],
)
def test_group_lines(sizes: list[int], limit: int, groups: list[list[int]]) -> None:
    lines = [Line("A", "x" * (size - 4)) for size in sizes]
    found = [[line_chars(line) for line in group] for group in group_lines(lines, limit)]
    assert found == groups


def test_a_limit_without_room_beside_the_name_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one character"):
        group_lines([Line("Maximiliane", "hello")], 14)


@given(st.lists(st.builds(Line, st.sampled_from(["A", "美咲"]), texts), max_size=20))
def test_no_line_is_left_out(lines: list[Line]) -> None:
    groups = group_lines(lines, 80)
    assert all(sum(map(line_chars, group)) <= 80 for group in groups)
    joined = [line for group in groups for line in group]
    assert voices(joined) == voices(lines)


def voices(lines: list[Line]) -> list[tuple[str, str]]:
    """Each letter with who said it."""
    return [(line.speaker, letter) for line in lines for letter in line.text]
