"""What entries change in a ledger: what is new, superseded, outdated, closed, left out."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.ledger.additions import Known, fold_text, plan_additions, supersedes
from policies.ledger.values import NOTHING, Claim, Entries, Fact, Quote, Thread, join_entries


def fact(pk: int, text: str, about: str = "") -> Known:
    return Known(pk, "fact", text, about)


@pytest.mark.parametrize(
    ("newer", "older", "expected"),
    [
        # the same subject, however it is written
        (("home", "Ann lives in Porto."), ("Home ", "Ann rents a flat in Lisbon."), True),
        (("住所", "横浜に住む。"), ("住所", "東京に住む。"), True),
        (("ｈｏｍｅ", "Porto"), ("home", "Lisbon"), True),
        (("pet", "Ann has a cat."), ("home", "Ann lives in Lisbon."), False),
        (("", "Ann has a cat."), ("", "Ann lives in Lisbon."), False),
        # the same words but for numbers and names
        (("", "Ann is 31 years old."), ("", "Ann is 30 years old."), True),
        (("", "Ann works for Acme now."), ("", "Ann works for Initech now."), True),
        (("", "Аня живёт в Порту."), ("", "Аня живёт в Риме."), True),
        (("", "用户今年三十一岁。"), ("", "用户今年三十岁。"), True),
        (("", "Ann has a cat called Tom."), ("", "Ann has a dog called Rex."), False),
        # the same words are no news; what is nothing but a name is no frame
        (("home", "Ann lives in Lisbon."), ("home", "ann lives in Lisbon"), False),
        (("", "30"), ("", "31"), False),
    ],
)
def test_supersedes(newer: tuple[str, str], older: tuple[str, str], expected: bool) -> None:
    assert supersedes(fact(2, newer[1], newer[0]), fact(1, older[1], older[0])) is expected


def test_a_plan_names_what_is_new_and_what_that_does() -> None:
    entries = Entries(
        facts=(Fact("Lives in Porto.", "home", 3), Fact("Has a cat.", "pet", 4)),
        claims=(Claim("Mira", "Ann", "she is a queen", "she is a thief", 5),),
        opened=(Thread("Who took the key?", 6), Thread("Where is Ada?", 7)),
        resolved=(2, 9),
        quotes=(Quote("Never!", "Mira", 8), Quote("Never!", "Mira", 9)),
    )
    plan = plan_additions(
        entries,
        earlier=[
            fact(11, "Lives in Lisbon.", "home"),
            fact(12, "has a CAT"),
            Known(13, "thread", "who took the key", number=1),
            Known(14, "thread", "Will it rain?", number=2),
            Known(15, "claim", "she is a queen", who="Bo"),
        ],
        own=[Known(16, "quote", "Never.", who="MIRA"), Known(17, "thread", "Gone?", number=3)],
        later=[fact(18, "Lives in Rome.", "home"), Known(19, "thread", "Lives in Porto.")],
    )
    assert [(new.kind, new.text, new.line) for new in plan.new] == [
        ("fact", "Lives in Porto.", 3),  # the cat is known
        ("claim", "she is a queen", 5),  # by Mira, not by Bo
        ("thread", "Where is Ada?", 7),
    ]
    assert plan.superseded == ((11, 0),)
    assert plan.outdated == ((0, 18),)
    assert plan.closed == (14,)  # 9 is no thread that was open
    assert plan.left_out == (17,)


def test_the_same_fact_told_later_outdates_it() -> None:
    plan = plan_additions(
        Entries(facts=(Fact("A cat.", "pet", 0),)), earlier=[], later=[fact(1, "a cat")]
    )
    assert plan.outdated == ((0, 1),)


def test_what_pieces_of_a_span_tell_is_joined_in_their_order() -> None:
    one = Entries(facts=(Fact("A.", "a", 0),), resolved=(2, 1), opened=(Thread("x?", 0),))
    two = Entries(facts=(Fact("A.", "a", 0), Fact("B.", "b", 4)), resolved=(1, 3))
    assert join_entries([one, two]) == Entries(
        facts=(Fact("A.", "a", 0), Fact("B.", "b", 4)), resolved=(2, 1, 3), opened=one.opened
    )
    assert join_entries([]) == NOTHING


_TEXTS = st.sampled_from(
    ["Lives in Porto.", "lives in porto", "Lives in Rome.", "Is 30.", "Is 31.", "猫がいる"]
)
_ABOUTS = st.sampled_from(["", "home", "Home", "age"])


def _facts(told: Sequence[tuple[str, str]]) -> Entries:
    return Entries(facts=tuple(Fact(text, about, 0) for about, text in told))


@given(st.lists(st.lists(st.tuples(_ABOUTS, _TEXTS), max_size=4), max_size=6))
def test_of_one_subject_the_newest_chapter_alone_is_live(
    chapters: list[list[tuple[str, str]]],
) -> None:
    """Each text once, and no live fact of an earlier chapter says otherwise than a newer one."""
    live: list[tuple[int, Known]] = []
    pk = 0
    for at, told in enumerate(chapters):
        plan = plan_additions(_facts(told), earlier=[known for _, known in live])
        gone = {old for old, _ in plan.superseded}
        live = [(chapter, known) for chapter, known in live if known.pk not in gone]
        for new in plan.new:
            pk += 1
            live.append((at, fact(pk, new.text, new.about)))
    texts = [fold_text(known.text) for _, known in live]
    assert len(texts) == len(set(texts))
    for chapter, older in live:
        assert not any(then > chapter and supersedes(newer, older) for then, newer in live)
