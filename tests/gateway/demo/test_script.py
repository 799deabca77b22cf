"""The person's words: endless, never the same page twice, and in several scripts."""

from __future__ import annotations

from itertools import islice

from gateway.demo.script import PASSAGES, SYSTEM, log_page, messages


def test_the_words_are_the_same_at_every_run() -> None:
    assert list(islice(messages(), 50)) == list(islice(messages(), 50))


def test_no_page_of_the_log_is_read_twice() -> None:
    pages = [log_page(number) for number in range(2_000)]
    assert len(set(pages)) == 2_000


def test_each_message_is_a_passage_with_two_pages_and_a_question() -> None:
    third = next(islice(messages(), 2, None))
    assert third == "\n\n".join([PASSAGES[2], log_page(4), log_page(5), "What do you think?"])


def test_the_log_goes_on_when_everything_is_told() -> None:
    later = next(islice(messages(), len(PASSAGES) + 5, None))
    assert log_page(2 * (len(PASSAGES) + 5)) in later


def test_she_quotes_other_languages() -> None:
    told = "\n".join(PASSAGES)
    for quoted in (
        "霧の夜には三度鳴らす。",
        "Груз не указан",
        "la niña ya camina",
        "종은 아직",
        "守灯人与鸟",
        "🌟",
    ):
        assert quoted in told


def test_one_message_takes_a_sixth_of_the_window_at_most() -> None:
    """4,096 tokens at 3.7 characters are 15,155 characters; a sixth of them are 2,525."""
    assert max(map(len, islice(messages(), 300))) < 2_525
    assert len(SYSTEM) < 200
