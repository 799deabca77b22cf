"""What of a text is visible, and pairs that came in halves."""

from gateway.wire.letters import is_blank, join_surrogates


def test_blank_is_what_nobody_sees() -> None:
    assert is_blank(" \t\n\u200b\ufeff")
    assert not is_blank(" .")


def test_halves_are_joined_and_what_stands_alone_stays() -> None:
    assert join_surrogates("a \ud83c\udf89") == "a 🎉"
    assert join_surrogates("a\ud83c") == "a\ud83c"
    assert join_surrogates("全部") == "全部"
