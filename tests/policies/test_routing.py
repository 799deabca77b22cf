"""Which tier serves a turn: tables of the conditions, and laws over all conversations."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.routing import (
    Candidate,
    Choice,
    Facts,
    Stand,
    choose,
    explain,
    is_during,
    order_rest,
)
from policies.schema import DAYS, Extent, Rule, When

LOCAL = Candidate("glm", "fold", is_local=True, is_usable=True)
CLOUD = Candidate("deepseek", "wide", is_local=False, is_usable=True)
OTHER = Candidate("grok", "wide", is_local=False, is_usable=True)
TIERS = (LOCAL, CLOUD, OTHER)
NOBODY = Stand()
FACTS = Facts(
    model="foldgate",
    owner="ada",
    user="学生7",
    headers={"x-mood": "dark"},
    tags=frozenset({"work", "рабочее"}),
    chars=100_000,
    minute=23 * 60,
    day="fri",
    usable=frozenset({"glm", "deepseek", "grok"}),
)


def rule(when: When | None = None, tier: str = "deepseek", **more: object) -> Rule:
    return Rule(name="r", tier=tier, when=when or When(), **more)


def decide(
    stand: Stand = NOBODY,
    rules: tuple[Rule, ...] = (),
    tiers: tuple[Candidate, ...] = TIERS,
    facts: Facts = FACTS,
) -> tuple[str, str, bool] | None:
    """(backend, rule, whether it lives there) of the choice."""
    found = choose(facts, stand, tiers, rules)
    return None if found is None else (tiers[found.index].backend, found.rule, found.settles)


def down(*names: str) -> tuple[Candidate, ...]:
    return tuple(replace(tier, is_usable=tier.backend not in names) for tier in TIERS)


# ── the order ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("stand", "rules", "chosen"),
    [
        (Stand(), (), ("glm", "first-healthy", True)),
        (Stand(home="grok"), (), ("grok", "home", True)),
        (Stand(home="gone"), (), ("glm", "first-healthy", True)),
        (Stand(home="grok"), (rule(),), ("deepseek", "r", True)),
        (Stand(home="grok", route="glm"), (rule(),), ("glm", "route", True)),
        (Stand(home="grok", route="gone"), (rule(),), ("deepseek", "r", True)),
        (Stand(route="grok", private=True), (), ("glm", "first-healthy", True)),
        (Stand(home="grok", private=True), (rule(),), ("glm", "first-healthy", True)),
    ],
    ids=[
        "nothing is known",
        "it lives somewhere",
        "its home is no tier of this model",
        "a rule before the home",
        "the route before a rule",
        "a route that is no tier of this model",
        "private: a route elsewhere counts for nothing",
        "private: so do home and rule",
    ],
)
def test_route_then_rules_then_home_then_the_first(stand, rules, chosen):
    if stand.private and stand.home:
        chosen = (*chosen[:2], False)  # its home is still its home
    assert decide(stand, rules) == chosen


@pytest.mark.parametrize(
    ("stand", "out", "chosen"),
    [
        (Stand(), ("glm",), ("deepseek", "first-healthy", True)),
        (Stand(home="glm"), ("glm",), ("deepseek", "first-healthy", False)),
        (Stand(home="grok", route="glm"), ("glm",), ("deepseek", "r", True)),
        (Stand(home="grok"), ("deepseek",), ("grok", "home", True)),
        (Stand(home="grok"), ("deepseek", "grok"), ("glm", "first-healthy", False)),
    ],
    ids=[
        "the first is down",
        "an outage moves nobody for good",
        "the chosen route is down",
        "the rule's tier is down",
        "rule's tier and home are down",
    ],
)
def test_only_what_can_be_used_counts(stand, out, chosen):
    rules = (rule(),) if chosen[1] == "r" or "deepseek" in out else ()
    assert decide(stand, rules, down(*out)) == chosen


@pytest.mark.parametrize(
    ("stand", "chosen"),
    [
        (Stand(), ("deepseek", "r", False)),
        (Stand(route="grok"), ("grok", "route", False)),
        (Stand(private=True), ("glm", "first-healthy", False)),
    ],
)
def test_where_nothing_can_be_used_the_first_way_is_tried_and_nobody_moves(stand, chosen):
    assert decide(stand, (rule(),), down("glm", "deepseek", "grok")) == chosen


def test_what_is_private_has_no_tier_where_none_is_on_this_machine():
    assert decide(Stand(private=True), tiers=(CLOUD, OTHER)) is None


def test_the_first_rule_that_holds_decides():
    rules = (
        Rule(name="no", tier="deepseek", when=When(owner=("ben",))),
        Rule(name="yes", tier="grok", when=When(owner=("ben", "ada"))),
        Rule(name="late", tier="glm"),
    )
    assert decide(rules=rules) == ("grok", "yes", True)


def test_a_rule_for_a_tier_that_is_off_is_passed_over():
    assert decide(rules=(rule(tier="gemini"),)) == ("glm", "first-healthy", True)


# ── conditions ────────────────────────────────────────────────────────────────────────────────

HOLDS = [
    When(),
    When(model=("chat", "foldgate")),
    When(owner=("ada",)),
    When(user=("学生7",)),
    When(header={"X-Mood": ("bright", "dark")}),
    When(tag=("рабочее", "play")),
    When(chars=Extent(over=99_999)),
    When(chars=Extent(under=100_001)),
    When(chars=Extent(over=99_999, under=100_001)),
    When(images=False),
    When(tools=False),
    When(hours=("01:00-02:00", "22:00-06:00")),
    When(days=("sat", "fri")),
    When(healthy=("gone", "grok")),
    When(unhealthy=("gone", "grok")),
    When(owner=("ada",), tag=("work",), days=("fri",)),
]
FAILS = [
    ("model", When(model=("chat",))),
    ("owner", When(owner=("Ada",))),
    ("user", When(user=("学生",))),
    ("header", When(header={"X-Mood": ("Dark",)})),
    ("header", When(header={"X-Mood": ("dark",), "X-Other": ("dark",)})),
    ("tag", When(tag=("Work",))),
    ("chars", When(chars=Extent(over=100_000))),
    ("chars", When(chars=Extent(under=100_000))),
    ("images", When(images=True)),
    ("tools", When(tools=True)),
    ("hours", When(hours=("06:00-22:00",))),
    ("days", When(days=("sat", "sun"))),
    ("healthy", When(healthy=("gone",))),
    ("unhealthy", When(unhealthy=("glm", "grok"))),
    ("tag", When(owner=("ada",), tag=("play",), days=("fri",))),
]


@pytest.mark.parametrize("when", HOLDS, ids=str)
def test_a_condition_that_holds(when):
    assert decide(rules=(rule(when),))[1] == "r"


@pytest.mark.parametrize(("key", "when"), FAILS, ids=str)
def test_a_condition_that_does_not_hold_is_named(key, when):
    rules = (rule(when),)
    assert decide(rules=rules)[1] == "first-healthy"
    (step,) = (s for s in explain(FACTS, Stand(), TIERS, rules) if s.rule == "r")
    assert step.misses == (key,)
    assert not step.holds


def test_a_header_that_was_not_sent_is_no_header():
    facts = replace(FACTS, headers=None)
    assert decide(rules=(rule(When(header={"X-Mood": ("dark",)})),), facts=facts)[0] == "glm"
    assert decide(rules=(rule(),), facts=facts)[0] == "deepseek"


@pytest.mark.parametrize("key", ["images", "tools"])
def test_what_a_view_holds_is_asked_of_the_view_of_the_rules_own_tier(key):
    """E18: the picture stands in the cloud's long view and was folded away in the local one."""
    tiers = (LOCAL, replace(CLOUD, **{key: True}))
    seen = rule(When(**{key: True}))
    assert decide(rules=(seen,), tiers=tiers)[1] == "r"
    assert decide(rules=(rule(When(**{key: True}), tier="glm"),), tiers=tiers)[1] != "r"
    # A picture pins nobody: when it is gone, the conversation is at home again.
    assert decide(Stand(home="glm"), (seen,), tiers) == ("deepseek", "r", False)
    assert decide(Stand(home="glm"), (seen,), (LOCAL, CLOUD)) == ("glm", "home", True)


@pytest.mark.parametrize(
    ("hours", "inside", "outside"),
    [
        ("08:00-12:30", (480, 749), (479, 750)),
        ("22:00-06:00", (1320, 1439, 0, 359), (360, 1319)),
        ("18:00-24:00", (1080, 1439), (0, 1079)),
        ("00:00-23:59", (0, 1438), (1439,)),
        ("00:01-00:00", (1, 1439), (0,)),
    ],
)
def test_hours_hold_their_first_minute_and_not_their_last(hours, inside, outside):
    assert all(is_during(hours, minute) for minute in inside)
    assert not any(is_during(hours, minute) for minute in outside)


@pytest.mark.parametrize(
    ("sticky", "when", "settles"),
    [
        (None, When(), True),
        (None, When(tag=("work",), owner=("ada",), header={"X-Mood": ("dark",)}), True),
        (None, When(tag=("work",), chars=Extent(over=1)), False),
        (None, When(hours=("22:00-06:00",)), False),
        (None, When(unhealthy=("gone",)), False),
        (True, When(hours=("22:00-06:00",)), True),
        (False, When(), False),
    ],
)
def test_a_conversation_lives_where_a_client_sent_it_and_not_where_something_passing_did(
    sticky, when, settles
):
    assert decide(Stand(home="glm"), (rule(when, sticky=sticky),)) == ("deepseek", "r", settles)


# ── where a failed turn may go ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("stand", "out", "taken", "rest"),
    [
        (Stand(), (), 0, ["deepseek", "grok"]),
        (Stand(home="grok"), (), 0, ["grok", "deepseek"]),
        (Stand(home="grok"), ("grok",), 0, ["deepseek", "grok"]),
        (Stand(), ("glm",), 1, ["grok", "glm"]),
        (Stand(private=True), (), 0, []),
        (Stand(private=True, home="grok"), (), 1, ["glm"]),
    ],
)
def test_a_failed_turn_goes_home_then_on_and_last_to_what_is_out_of_order(stand, out, taken, rest):
    tiers = down(*out)
    assert [tiers[at].backend for at in order_rest(stand, tiers, taken)] == rest


# ── laws ──────────────────────────────────────────────────────────────────────────────────────

NAMES = ("a", "b", "c", "d")
WORDS = st.lists(st.sampled_from(("work", "遊び", "игра", "x")), min_size=1).map(tuple)
WHENS = st.builds(
    When,
    tag=st.none() | WORDS,
    owner=st.none() | WORDS,
    images=st.none() | st.booleans(),
    chars=st.none() | st.builds(Extent, over=st.integers(0, 300_000)),
    days=st.none() | st.lists(st.sampled_from(DAYS), min_size=1).map(tuple),
    hours=st.none() | st.sampled_from((("22:00-06:00",), ("06:00-22:00", "05:00-05:01"))),
    unhealthy=st.none() | st.lists(st.sampled_from(NAMES), min_size=1).map(tuple),
)
RULES = st.lists(
    st.builds(
        Rule,
        name=st.sampled_from(("r1", "r2")),
        tier=st.sampled_from(NAMES),
        when=WHENS,
        sticky=st.none() | st.booleans(),
    ),
    max_size=4,
).map(tuple)
TIERS_ANY = st.lists(
    st.builds(
        Candidate,
        backend=st.sampled_from(NAMES),
        policy=st.just("p"),
        is_local=st.booleans(),
        is_usable=st.booleans(),
        images=st.booleans(),
    ),
    max_size=4,
    unique_by=lambda tier: tier.backend,
).map(tuple)
STANDS = st.builds(
    Stand,
    route=st.none() | st.sampled_from(NAMES),
    home=st.none() | st.sampled_from(NAMES),
    private=st.booleans(),
)
ANY_FACTS = st.builds(
    Facts,
    model=st.just("m"),
    owner=st.sampled_from(("work", "ada")),
    tags=st.frozensets(st.sampled_from(("work", "遊び"))),
    chars=st.integers(0, 300_000),
    minute=st.integers(0, 1_439),
    day=st.sampled_from(DAYS),
    usable=st.frozensets(st.sampled_from(NAMES)),
)


@given(ANY_FACTS, STANDS, TIERS_ANY, RULES)
def test_law_what_is_private_never_leaves_this_machine(facts, stand, tiers, rules):
    """By no rule, route, home, outage, nor fallback of any depth."""
    private = replace(stand, private=True)
    choice = choose(facts, private, tiers, rules)
    reached = [] if choice is None else [choice.index, *order_rest(private, tiers, choice.index)]
    assert all(tiers[at].is_local for at in reached)
    assert (choice is None) == (not any(tier.is_local for tier in tiers))


@given(ANY_FACTS, STANDS, TIERS_ANY, RULES)
def test_law_a_tier_that_can_be_used_is_chosen_wherever_one_may(facts, stand, tiers, rules):
    choice = choose(facts, stand, tiers, rules)
    allowed = [tier for tier in tiers if tier.is_local or not stand.private]
    if choice is None:
        assert not allowed
    else:
        assert tiers[choice.index].is_usable == any(tier.is_usable for tier in allowed)


@given(ANY_FACTS, STANDS, TIERS_ANY, RULES)
def test_law_what_is_explained_is_what_is_chosen(facts, stand, tiers, rules):
    choice = choose(facts, stand, tiers, rules)
    held = [step for step in explain(facts, stand, tiers, rules) if step.holds]
    if held:
        assert choice is not None
        assert (tiers[choice.index].backend, choice.rule) == (held[0].tier, held[0].rule)
    else:
        assert choice is None or not tiers[choice.index].is_usable


@given(ANY_FACTS, STANDS, TIERS_ANY, RULES)
def test_law_a_settled_conversation_stays_while_nothing_speaks_against_it(
    facts, stand, tiers, rules
):
    choice = choose(facts, stand, tiers, rules)
    if choice is None or not choice.settles or choice.rule == "route":
        return
    home = replace(stand, home=tiers[choice.index].backend, route=None)
    again = choose(facts, home, tiers, ())
    assert again == Choice(choice.index, "home", True)


@given(STANDS, TIERS_ANY, st.integers(0, 3))
def test_law_a_failed_turn_finds_every_other_tier_that_is_allowed_once(stand, tiers, taken):
    rest = order_rest(stand, tiers, taken)
    allowed = {
        at for at, t in enumerate(tiers) if at != taken and (t.is_local or not stand.private)
    }
    assert len(rest) == len(set(rest))
    assert set(rest) == allowed
