"""What an owner deleted is not told again, in whichever words; the rest is."""

import pytest

from policies.ledger.deletions import Deleted, without_deleted
from policies.ledger.values import Claim, Entries, Fact, Quote, Thread

PAIRS = [
    ("The user lives in Kyoto", "The user's home is in Kyoto, Japan"),
    ("ユーザーは京都に住んでいる", "ユーザーの住まいは京都"),
    ("用户住在杭州", "用户的家在杭州"),
    ("사용자는 부산에 산다", "사용자의 집은 부산에 있다"),
    ("Пользователь живёт в Казани", "Пользователь родом из Казани и живёт там"),
    ("El usuario vive en Sevilla", "La casa del usuario está en Sevilla"),
]


@pytest.mark.parametrize(("text", "again"), PAIRS)
@pytest.mark.parametrize("kind", ["fact", "claim", "thread", "quote"])
def test_a_deleted_entry_is_not_told_in_other_words(kind: str, text: str, again: str) -> None:
    told = Entries(
        facts=(Fact(again, "x", 3),),
        claims=(Claim("Ann", "", again, None, 3),),
        opened=(Thread(again, 3),),
        quotes=(Quote(again, "Ann", 3),),
        resolved=(1,),
    )
    left = without_deleted(told, [Deleted(kind, text, "home", 0)])
    kept = {
        "fact": left.facts,
        "claim": left.claims,
        "thread": left.opened,
        "quote": left.quotes,
    }
    assert kept.pop(kind) == ()
    assert all(len(entries) == 1 for entries in kept.values())
    assert left.resolved == (1,)


@pytest.mark.parametrize(
    ("fact", "stays"),
    [
        (Fact("A nurse by day.", "", 0), False),
        (Fact("A nurse by day.", "HOME!", 5), False),
        (Fact("A nurse by day.", "work", 5), True),
        (Fact("", "", 5), True),
    ],
    ids=["of the same message", "about the same", "of another", "of nothing"],
)
def test_a_fact_goes_by_its_message_or_what_it_is_about(fact: Fact, stays: bool) -> None:
    deleted = [Deleted("fact", "The user lives in Kyoto", "home", 0)]
    assert without_deleted(Entries(facts=(fact,)), deleted).facts == ((fact,) if stays else ())


def test_short_words_are_compared_as_they_are() -> None:
    told = Entries(quotes=(Quote("了", "", 0), Quote("好", "", 0)))
    assert without_deleted(told, [Deleted("quote", "好", "", 0)]).quotes == (Quote("了", "", 0),)
    assert without_deleted(told, []) is told
