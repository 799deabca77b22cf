import pytest
from pydantic import ValidationError

from policies.schema import FAULTS, Chapters, Gist, Policy, Privacy, Summaries, View


def faults(make):
    with pytest.raises(ValidationError) as caught:
        make()
    (error,) = caught.value.errors()
    assert error["type"] == FAULTS
    return error["ctx"]["faults"]


def test_the_defaults_are_the_local_fold():
    policy = Policy()
    view = policy.view
    assert (view.start, view.ceiling, view.headroom, view.keep) == (48_000, 56_000, 17_000, 16_000)
    assert view.after_fold == 48_000 - 17_000 == 31_000
    chapters = policy.chapters
    assert (chapters.split, chapters.length, chapters.stack) == (32_000, 1_100, 6_000)
    assert (policy.gist.length, policy.recall.budget) == (1_500, 1_500)
    summaries = policy.summaries
    assert (summaries.backends, summaries.delay, summaries.max_output) == ((), 30.0, 4_096)
    assert (summaries.redraws, summaries.rounds, summaries.timeout) == (1, 3, 600.0)
    assert (policy.keep_warm, policy.ttl, policy.name) == (False, None, "")
    assert policy.privacy.mask == ()


@pytest.mark.parametrize(
    ("sizes", "where", "arithmetic"),
    [
        # keep < start - headroom
        ({"keep": 31_000}, "keep", "31,000 is not below 48,000 − 17,000 = 31,000"),
        ({"headroom": 32_000}, "headroom", "16,000 is not below 48,000 − 32,000 = 16,000"),
        ({"start": 33_000}, "start", "16,000 is not below 33,000 − 17,000 = 16,000"),
        ({"headroom": 50_000}, "headroom", "16,000 is not below 48,000 − 50,000 = -2,000"),
        # start < ceiling
        ({"start": 56_000}, "start", "56,000 is not below 56,000"),
        ({"ceiling": 48_000}, "ceiling", "48,000 is not below 48,000"),
    ],
)
def test_sizes_in_the_wrong_order_show_the_arithmetic_at_what_was_written(sizes, where, arithmetic):
    (fault,) = faults(lambda: View(**sizes))
    assert fault.path == (where,)
    assert arithmetic in fault.message
    assert fault.hint


def test_all_that_is_wrong_with_a_view_is_told_at_once():
    found = faults(lambda: View(start=56_000, headroom=40_000))
    assert [fault.path for fault in found] == [("headroom",), ("start",)]


def test_a_view_for_a_small_window_is_as_good_as_a_large_one():
    view = View(start=1_000, ceiling=1_200, headroom=300, keep=400)
    assert view.after_fold == 700


@pytest.mark.parametrize(
    ("key", "value"),
    [("ceiling", 560), ("start", 499), ("headroom", 99), ("keep", 0), ("start", 20_000_001)],
)
def test_a_number_out_of_all_proportion_is_refused(key, value):
    with pytest.raises(ValidationError) as caught:
        View(**{key: value})
    assert [error["loc"] for error in caught.value.errors()] == [(key,)]


def test_a_view_counts_tokens_where_it_says_so():
    sizes = {"start": 9_000, "ceiling": 11_000, "headroom": 3_000, "keep": 3_000}
    said_once = View(unit="tokens", **sizes)
    said_always = View.model_validate({name: f"{n} tokens" for name, n in sizes.items()})
    assert said_once.model_dump() == said_always.model_dump()
    assert said_always.unit == "tokens"


def test_a_view_in_tokens_has_no_defaults():
    (fault,) = faults(lambda: View(unit="tokens", start=9_000, ceiling=11_000))
    assert "headroom, keep must be written too" in fault.message


def test_a_view_counts_messages_where_it_says_so():
    sizes = {"start": 40, "ceiling": 60, "headroom": 20, "keep": 10}
    said_once = View(unit="messages", **sizes)
    said_always = View.model_validate({name: f"{n} messages" for name, n in sizes.items()})
    assert said_once.model_dump() == said_always.model_dump()
    assert Policy(view=said_once).view.after_fold == 20
    (fault,) = faults(lambda: View(unit="messages", start=40))
    assert "a view in messages has no defaults: ceiling, headroom, keep" in fault.message
    with pytest.raises(ValidationError) as caught:
        View(unit="messages", **{**sizes, "start": 3})
    assert [error["loc"] for error in caught.value.errors()] == [("start",)]
    with pytest.raises(ValidationError) as caught:
        View.model_validate({**sizes, "start": "40 messages", "unit": "chars"})
    assert "unit: messages" in caught.value.errors()[0]["ctx"]["hint"]


def test_units_are_not_mixed_in_one_view():
    with pytest.raises(ValidationError) as caught:
        View.model_validate({"start": "30k tokens", "ceiling": 56_000})
    (error,) = caught.value.errors()
    assert error["loc"] == ("start",)
    assert error["msg"] == "this view counts in chars"
    assert "unit: tokens" in error["ctx"]["hint"]


def test_a_view_is_a_mapping_and_nothing_else():
    with pytest.raises(ValidationError):
        View.model_validate("48000")


def test_a_chapter_is_shorter_than_its_span():
    (fault,) = faults(lambda: Chapters(length=400, split=400))
    assert fault.path == ("length",)
    assert "length 400 is not below split 400" in fault.message


def test_memory_may_not_fill_the_view():
    small = View(start=9_000, ceiling=10_000, headroom=3_000, keep=3_000)
    (fault,) = faults(lambda: Policy(view=small))
    assert "1,500 + 6,000 = 7,500 is not below" in fault.message
    assert "9,000 − 3,000 = 6,000" in fault.message
    assert fault.path == ("view",)
    assert Policy(view=small, gist=Gist(length=500), chapters=Chapters(stack=2_000))


def test_memory_in_characters_is_not_compared_with_a_view_in_tokens():
    view = View(unit="tokens", start=6_000, ceiling=7_000, headroom=1_000, keep=1_000)
    assert Policy(view=view).view.after_fold == 5_000


def test_a_summarizer_is_named_once():
    assert Summaries(backends=("a", "b")).backends == ("a", "b")
    with pytest.raises(ValidationError, match="each summarizer is named once"):
        Summaries(backends=("a", "b", "a"))


def test_no_conversation_is_deleted_within_the_hour_by_a_slip_of_the_unit():
    assert Policy(ttl=3_600).ttl == 3_600.0
    with pytest.raises(ValidationError):
        Policy(ttl=365)


def test_what_is_hidden_is_named_by_its_kind_and_once():
    assert Privacy(mask=("mail", "iban")).mask == ("mail", "iban")
    for mask, kind in ((("mail", "mail"), "twice"), (("name",), "literal_error")):
        with pytest.raises(ValidationError) as caught:
            Privacy(mask=mask)
        assert caught.value.errors()[0]["type"] == kind
