"""Budgets: limits in characters, and what characters cost in tokens."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from policies.budget import (
    OUTPUT_FLOOR,
    RATIO_LEAST,
    RATIO_MOST,
    estimate_tokens,
    find_narrowed,
    first_ratio,
    is_half_read,
    is_smaller,
    learn_ratio,
    limits_of,
    output_room,
    tell_narrowing,
    view_room,
)
from policies.generations import plan_major
from policies.schema import Ledger, Policy, Recall, Unit, View
from policies.schema.policy import Chapters, Gist, Profile
from policies.values import ChapterState, GistState, Limits
from tests.policies.life import LOCAL


def test_limits_in_characters_are_the_policys_own() -> None:
    # beside them a tenth of 31,000 at most, here the 1,000 that the policy says; documents may
    # have 31,000 - 16,000 - 1,500 - 6,000 - 2 x 1,000, and pins of these 4,000 as the policy says
    shares = {"profile": 1_000, "ledger": 1_000, "documents": 5_500, "pins": 4_000}
    assert limits_of(Policy(), 4.0) == replace(LOCAL, **shares)
    assert LOCAL.goal == 48_000 - 17_000


@pytest.mark.parametrize(
    ("ceiling", "unit", "is_less"),
    [
        (240_000, "chars", False),
        (239_999, "chars", True),
        # 79,999 x 3 = 239,997; 80,000 x 3 = 240,000
        (79_999, "tokens", True),
        (80_000, "tokens", False),
        # 479 x 500 = 239,500; 480 x 500 = 240,000
        (479, "messages", True),
        (480, "messages", False),
    ],
)
def test_is_smaller(ceiling: int, unit: Unit, is_less: bool) -> None:
    sizes = {"start": 400, "headroom": 100, "keep": 50}
    if unit != "messages":
        sizes = {name: 100 * size for name, size in sizes.items()}
    view = View(unit=unit, ceiling=ceiling, **sizes)
    assert is_smaller(view, View(ceiling=240_000)) is is_less


def test_limits_in_tokens_follow_the_ratio() -> None:
    view = View(unit="tokens", start=12_000, ceiling=14_000, headroom=4_000, keep=4_000)
    # at 1.5 characters a token; chapters stay in characters
    assert limits_of(Policy(view=view), 1.5) == Limits(
        start=18_000,
        ceiling=21_000,
        headroom=6_000,
        keep=6_000,
        split=32_000,
        length=1_100,
        # 18,000 - 6,000 - 6,000 - 1,500
        stack=4_500,
        gist_length=1_500,
        # beside them 12,000 - 6,000 - 1,500 - 4,500 leaves nothing for documents
        profile=1_000,
        ledger=1_000,
        # and for pins what threads give way to them
        pins=1_000,
    )


def test_limits_in_messages_are_counted_ones() -> None:
    view = View(unit="messages", start=40, ceiling=60, headroom=20, keep=10)
    limits = limits_of(Policy(view=view), 0.4, 10)
    assert (limits.start, limits.ceiling, limits.goal, limits.keep) == (40, 60, 20, 10)
    assert limits.messages and limits.worth == 1
    # of common length: (20 - 10) x 500 - 1,500 for the stack, a tenth of 10,000 for the others
    assert (limits.stack, limits.profile, limits.ledger) == (3_500, 1_000, 1_000)
    assert (limits.documents, limits.pins) == (0, 1_000)
    assert tell_narrowing(Policy(view=view), 4_096) is None


def test_profile_and_ledger_are_a_tenth_each_of_what_a_fold_leaves() -> None:
    view = View(start=5_000, ceiling=6_000, headroom=1_000, keep=1_000)
    chapters, gist = Chapters(stack=1_000), Gist(length=300)
    policy = Policy(view=view, chapters=chapters, gist=gist, profile=Profile(length=300))
    limits = limits_of(policy, 4.0)
    # 5,000 - 1,000 = 4,000; 4,000 - 1,000 - 300 - 1,000 - 300 - 400
    assert (limits.profile, limits.ledger, limits.documents) == (300, 400, 1_000)
    # what documents leave and what threads give way to them: 1,000 + 400
    assert limits.pins == 1_400
    assert limits.rolling is False
    assert limits_of(Policy(memory="rolling"), 4.0).rolling is True


@pytest.mark.parametrize(
    ("ratio", "room", "start", "ceiling", "headroom", "keep"),
    [
        # English: 56,000 / 4 = 14,000 tokens fit 60,000
        (4.0, 60_000, 48_000, 56_000, 17_000, 16_000),
        # emoji: 60,000 x 0.4 = 24,000 characters, so everything times 24/56 = 3/7
        (0.4, 60_000, 20_571, 24_000, 7_285, 6_857),
        # just as much as there is
        (1.0, 56_000, 48_000, 56_000, 17_000, 16_000),
        # what is fixed leaves no room: no fold helps, so nothing is narrowed
        (1.0, 0, 48_000, 56_000, 17_000, 16_000),
        (1.0, -7, 48_000, 56_000, 17_000, 16_000),
    ],
)
def test_a_view_is_narrowed_to_the_room_of_the_window(
    ratio: float, room: int, start: int, ceiling: int, headroom: int, keep: int
) -> None:
    limits = limits_of(Policy(), ratio, room)
    assert (limits.start, limits.ceiling) == (start, ceiling)
    assert (limits.headroom, limits.keep) == (headroom, keep)


@given(st.floats(RATIO_LEAST, RATIO_MOST), st.none() | st.integers(1_000, 1_000_000))
def test_a_narrowed_view_keeps_its_order_and_fits(ratio: float, room: int | None) -> None:
    limits = limits_of(Policy(), ratio, room)
    assert limits.keep < limits.goal < limits.start < limits.ceiling
    if room is not None:
        assert estimate_tokens(limits.ceiling, ratio) <= room + 1


def test_the_usage_figures_of_d02() -> None:
    ratio = None
    for tokens in (12_000, 0, 900_000, None, -3):
        ratio = learn_ratio(ratio, 48_000, tokens)
        assert ratio == 4.0  # 48,000 / 12,000; then 0, 0.053, none: ignored


@pytest.mark.parametrize(
    ("old", "chars", "tokens", "new"),
    [
        (None, 48_000, 12_000, 4.0),
        (None, 48_000, 0, None),
        (None, 0, 500, None),
        (None, 100, 50_000, None),  # 0.002
        (None, 48_000, 2_048, None),  # 23: the prompt was cut behind our back (B07)
        (4.0, 30_000, 10_000, 3.7),  # 4 + 0.3 x (3 - 4)
        (4.0, 5_000, 10_000, 3.4),  # 0.5 is far away: 4 + 0.3 x (2 - 4)
        (1.0, 60_000, 10_000, 1.3),  # 6 is far away: 1 + 0.3 x (2 - 1)
        (0.26, 2_500, 10_000, 0.257),  # 0.26 + 0.3 x (0.25 - 0.26)
    ],
)
def test_learn_ratio(old: float | None, chars: int, tokens: int | None, new: float | None) -> None:
    assert learn_ratio(old, chars, tokens) == (None if new is None else pytest.approx(new))


@given(
    st.none() | st.floats(RATIO_LEAST, RATIO_MOST),
    st.lists(st.tuples(st.integers(0, 10**7), st.none() | st.integers(-5, 10**7)), max_size=40),
)
def test_a_learned_ratio_stays_in_bounds(
    ratio: float | None, figures: list[tuple[int, int | None]]
) -> None:
    for chars, tokens in figures:
        ratio = learn_ratio(ratio, chars, tokens)
        assert ratio is None or RATIO_LEAST <= ratio <= RATIO_MOST


def test_a_real_change_is_followed() -> None:
    """From English to Chinese: 4.0 becomes 0.9 within a dozen turns."""
    ratio: float | None = 4.0
    for _ in range(12):
        ratio = learn_ratio(ratio, 9_000, 10_000)
    assert ratio == pytest.approx(0.9, abs=0.1)


@pytest.mark.parametrize(
    ("text", "ratio"),
    [
        ("", 3.0),
        ("Plain English words.", 3.0),
        ("Mañana será otro día, ¿no?", 3.0),
        ("今天天气很好", 0.9),
        ("오늘은날씨가좋다", 0.9),
        ("𠮷野家", 0.9),
        ("Сегодня", 2.0),
        ("👨‍👩‍👧‍👦", 0.39),
        ("สวัสดี", 1.0),
        # 6 letters / 3 + 9 signs / 0.9 = 12 tokens for 15 characters
        ("abcdef今天天气很好今天天", 1.25),
    ],
)
def test_first_ratio(text: str, ratio: float) -> None:
    """D15: emoji cost more tokens than they are characters."""
    assert first_ratio(text) == pytest.approx(ratio)


def test_a_long_text_is_sampled_evenly() -> None:
    # half of it English, half Chinese: 1 / (0.5 / 3 + 0.5 / 0.9) = 1.38
    assert first_ratio("a" * 500_000 + "字" * 500_000) == pytest.approx(1.38, abs=0.02)


@pytest.mark.parametrize(
    ("chars", "ratio", "tokens"), [(0, 4.0, 0), (48_000, 4.0, 12_000), (48_000, 0.39, 123_077)]
)
def test_estimate_tokens(chars: int, ratio: float, tokens: int) -> None:
    assert estimate_tokens(chars, ratio) == tokens


def test_view_room() -> None:
    assert view_room(65_536, 3_000, 4_096, 512) == 57_928
    assert view_room(4_096, 3_000, 4_096, 512) == -3_512
    assert view_room(None, 3_000, 4_096, 512) is None


@pytest.mark.parametrize(
    ("prompt", "asked", "window", "tokens"),
    [
        (1_000, 4_096, 65_536, 4_096),
        (62_000, 4_096, 65_536, 3_436),  # 65,536 - 62,000 - 100
        (62_000, None, 65_536, 3_436),
        (65_426, 10, 65_536, 10),  # few were asked for, and few are left
        (65_180, None, 65_536, OUTPUT_FLOOR),  # 256 are left
        (10**9, None, None, None),
        (10**9, 77, None, 77),
    ],
)
def test_output_room(prompt: int, asked: int | None, window: int | None, tokens: int) -> None:
    assert output_room(prompt, asked, 100, window) == tokens


@pytest.mark.parametrize(
    ("prompt", "asked", "message"),
    [
        (65_181, None, "255 tokens are left for the reply, 256 are the least"),
        (65_181, 4_096, "255 tokens are left for the reply, 256 are the least"),
        (65_427, 10, "9 tokens are left for the reply, 10 are the least"),
        (90_000, 1, "-24564 tokens are left for the reply, 1 are the least"),
    ],
)
def test_a_room_below_the_floor_is_an_overflow(
    prompt: int, asked: int | None, message: str
) -> None:
    """B13: never a max_tokens of 1, 0 or less that nobody asked for."""
    with pytest.raises(OverflowError, match=message):
        output_room(prompt, asked, 100, 65_536)


@pytest.mark.parametrize(
    ("window", "sentence"),
    [
        (None, None),
        (65_536, None),
        (62_223, None),  # 56,000 / 0.9
        (
            32_768,
            "a ceiling of 56,000 chars is up to 62,223 tokens in Chinese or Japanese, and a"
            " conversation's window is 32,768: there views shrink and fold earlier",
        ),
    ],
)
def test_a_ceiling_beyond_the_window_in_the_dearest_language(
    window: int | None, sentence: str | None
) -> None:
    """B06: four slots of 131,072 tokens leave 32,768 to each conversation."""
    assert tell_narrowing(Policy(), window) == sentence


def test_a_ceiling_in_tokens_is_what_it_is_in_every_language() -> None:
    view = {"unit": "tokens", "start": 20_000, "ceiling": 24_000, "headroom": 8_000, "keep": 6_000}
    policy = Policy.model_validate({"view": view})
    assert tell_narrowing(policy, 24_000) is None
    assert "24,000 tokens is up to 24,000 tokens" in (tell_narrowing(policy, 23_999) or "")


@pytest.mark.parametrize(
    ("chars", "ratio", "tokens", "alarm"),
    [
        (90_000, 3.0, 2_048, True),  # 30,000 were sent
        (90_000, 3.0, 9_000, False),  # three tenths: another tokenizer may do that
        (90_000, 3.0, 8_999, True),
        (90_000, 3.0, None, False),
        (90_000, 3.0, 0, False),
        (2_997, 3.0, 5, False),  # 999 fit every window
    ],
)
def test_a_prompt_that_was_cut_behind_our_back(
    chars: int, ratio: float, tokens: int | None, alarm: bool
) -> None:
    """B07."""
    assert is_half_read(chars, ratio, tokens) is alarm


@given(
    st.integers(1_000, 60_000),
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(100, 20_000),
    st.integers(50, 3_000),
    st.floats(0.3, 5.0),
    st.none() | st.integers(300, 70_000),
    st.lists(st.integers(1, 4_000), max_size=40),
)
def test_a_stack_never_fills_what_a_fold_leaves(
    start: int,
    headroom: int,
    keep: int,
    stack: int,
    gist: int,
    ratio: float,
    room: int | None,
    lengths: list[int],
) -> None:
    """However small the window, and however many chapters come at once: when the major GCs that
    they cause are done, gist and stack leave room for what stays verbatim."""
    freed = 100 + (start - 500) * headroom // 20
    kept = 100 + (start - freed - 300) * keep // 20
    view = View(start=start, ceiling=start * 2, headroom=freed, keep=max(100, kept))
    try:
        policy = Policy(view=view, gist=Gist(length=gist), chapters=Chapters(stack=stack))
    except ValidationError:
        return  # it would fill the view, and is refused
    limits = limits_of(policy, ratio, room)
    fits = limits.goal - limits.keep - limits.gist_length
    assert limits.stack <= max(fits, limits.length)
    row = [ChapterState(at, at, 18_000, length) for at, length in enumerate(lengths, 1)]
    newest = None
    for _ in lengths:
        major = plan_major(limits, newest, row)
        if major is None:
            break
        newest = GistState(major.covers_to, limits.gist_length)
    covered = newest.covers_to if newest else 0
    assert sum(one.length or 0 for one in row if one.first > covered) <= limits.stack


SMALL = View(start=1_000, ceiling=1_200, headroom=300, keep=200)
TENTH = "more than a tenth of what a fold leaves (view.start − view.headroom)"


@pytest.mark.parametrize(
    ("policy", "found"),
    [
        (Policy(), []),
        # defaults (1,000 and 1,500) in a small view: a tenth of 1,000 - 300 is 70
        (Policy(view=SMALL, chapters=Chapters(stack=300), gist=Gist(length=200)), []),
        (Policy(recall=Recall(budget=6_000)), []),
        (Policy(recall=Recall(budget=0, between_folds=0)), []),
        (
            Policy(recall=Recall(budget=6_001)),
            [
                "recall.budget 6,001 is above recall.between_folds: a message is shown 6,000 "
                "characters of notes at most"
            ],
        ),
        (
            Policy(recall=Recall(between_folds=900)),
            [
                "recall.budget 1,500 is above recall.between_folds: a message is shown 900 "
                "characters of notes at most"
            ],
        ),
        (
            Policy(recall=Recall(budget=60_000, between_folds=60_000)),
            [
                "recall.budget 60,000 is above view.ceiling, which is 56,000 characters: notes "
                "are shown only where the view has room for them"
            ],
        ),
        # a tenth of 48,000 - 17,000
        (Policy(ledger=Ledger(length=3_100), profile=Profile(length=3_100)), []),
        # pins: 31,000 - 16,000 - 1,500 - 6,000 - 1,000 for documents and ledger
        (Policy(ledger=Ledger(pins=6_500)), []),
        (
            Policy(ledger=Ledger(pins=6_501)),
            [
                "ledger.pins 6,501 is more than documents and ledger.length have together: 6,500 "
                "characters are shown at most"
            ],
        ),
        (
            Policy(ledger=Ledger(length=3_101), profile=Profile(length=9_000)),
            [
                f"ledger.length 3,101 is {TENTH}: 3,100 characters are shown at most",
                f"profile.length 9,000 is {TENTH}: 3,100 characters are shown at most",
            ],
        ),
    ],
)
def test_what_is_written_and_never_shown_in_full(policy: Policy, found: list[str]) -> None:
    assert find_narrowed(policy) == found


@given(
    st.integers(10_000, 200_000),
    st.integers(5, 90),
    st.integers(20, 95),
    st.integers(0, 20_000),
    st.integers(0, 20_000),
)
def test_pins_have_their_room_out_of_what_memory_has_anyway(
    start: int, freed: int, kept: int, length: int, pins: int
) -> None:
    """However much is pinned, what stands in a memory at most grows by nothing."""
    headroom = start * freed // 100
    keep = (start - headroom) * kept // 100
    view = View(start=start, ceiling=start + 1_000, headroom=headroom, keep=keep)
    chapters = Chapters(stack=100, split=2_000, length=50)
    policy = Policy().model_copy(
        update={
            "view": view,
            "chapters": chapters,
            "gist": Gist(length=50),
            "ledger": Ledger(length=length, pins=pins),
        }
    )
    limits = limits_of(policy, 3.0)
    assert limits.pins == min(pins, limits.documents + limits.ledger)
    beside = limits.gist_length + limits.stack + limits.profile + limits.ledger + limits.documents
    assert not limits.documents or beside + limits.keep == limits.goal
