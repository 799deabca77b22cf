"""What a rule may say, and how it is read."""

import pytest
from pydantic import ValidationError

from policies.schema import (
    FAULTS,
    Extent,
    Rule,
    When,
    content_tiers,
    named_headers,
    parse_hours,
    spell_hours,
)
from policies.schema.rules import RESERVED, find_doubles


def faults(part, **values):
    with pytest.raises(ValidationError) as caught:
        part(**values)
    (error,) = caught.value.errors()
    return error["ctx"]["faults"] if error["type"] == FAULTS else error["msg"]


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("22:00-06:00", (1_320, 360)),
        ("00:00-00:01", (0, 1)),
        ("18:30-24:00", (1_110, 1_440)),
        ("23:59-00:00", (1_439, 0)),
    ],
)
def test_hours_are_minutes_of_the_day(text, minutes):
    assert parse_hours(text) == minutes


@pytest.mark.parametrize(
    "text",
    [
        "",
        "22-6",
        "22:00",
        "22:00-6:00",
        "24:00-06:00",
        "22:60-06:00",
        "22:00 - 06:00",
        "２２:00-06:00",
    ],
)
def test_other_texts_are_no_hours(text):
    with pytest.raises(ValueError, match="allowed are hours such as 22:00-06:00"):
        parse_hours(text)


@pytest.mark.parametrize("text", ["08:00-08:00", "00:00-24:00"])
def test_hours_that_are_the_whole_day_or_none_of_it_are_refused(text):
    with pytest.raises(ValueError, match="begin when they end"):
        parse_hours(text)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("22-6", "22:00-06:00"),
        ("22:00–6:30", "22:00-06:30"),
        ("２２：００－６：００", "22:00-06:00"),
        (" 8.15 - 12h00 ", "08:15-12:00"),
        ("25-6", ""),
        ("night", ""),
    ],
)
def test_hours_that_are_nearly_right_are_spelled(text, written):
    assert spell_hours(text) == written


def test_one_value_stands_for_a_list_of_one():
    when = When(tag="仕事", days="sun", hours="22:00-06:00", header={"X-Mood": "dark"})
    assert when.tag == ("仕事",)
    assert when.days == ("sun",)
    assert when.hours == ("22:00-06:00",)
    assert when.header == {"X-Mood": ("dark",)}
    with pytest.raises(ValidationError, match="at least one entry"):
        When(tag=())


def test_an_extent_bounds_something_and_something_can_be_within_it():
    assert Extent(over=9, under=11).under == 11
    assert faults(Extent)[0].message == "over or under is needed"
    (fault,) = faults(Extent, over=10_000, under=10_001)
    assert (fault.path, fault.message) == (
        ("under",),
        "no length is over 10,000 and under 10,001",
    )
    assert faults(Extent, over=-1)
    assert faults(Extent, under=0)


@pytest.mark.parametrize("name", ["Authorization", "cookie", "X-API-Key", "Proxy-Authorization"])
def test_no_rule_holds_a_key(name):
    (fault,) = faults(When, header={name: "geheim"})
    assert fault.path == ("header", name)
    assert "geheim" not in fault.message + fault.hint


def test_headers_have_names_that_can_be_sent():
    assert [fault.path for fault in faults(When, header={"": "a", "X Y": "b", "X-Z": "c"})] == [
        ("header", ""),
        ("header", "X Y"),
    ]
    assert faults(When, header={})[0].path == ("header",)


def test_a_header_is_named_once_however_it_is_written():
    (fault,) = faults(When, header={"X-Mood": "dark", "X-Place": "sea", "x-mood": "light"})
    assert fault.path == ("header", "x-mood")
    assert fault.message == "X-Mood is the same header: case says nothing in their names"


@pytest.mark.parametrize("written", ["glm", ("glm", "glm")])
def test_no_backend_is_healthy_and_unhealthy(written):
    (fault,) = faults(When, healthy="glm", unhealthy=written)
    assert fault.path == ("unhealthy",)
    assert fault.message.startswith("glm is never healthy and unhealthy at once")
    # one of two can be used and the other not
    assert When(healthy=("glm", "grok"), unhealthy="glm")
    assert When(healthy="glm", unhealthy=("glm", "grok"))


@pytest.mark.parametrize("name", ["", "a b", "夜", "-x", "x" * 129])
def test_the_name_of_a_rule_travels_in_a_header(name):
    (fault,) = faults(Rule, name=name, tier="glm")
    assert fault.path == ("name",)


@pytest.mark.parametrize("name", RESERVED)
def test_a_rule_is_not_called_what_no_rule_is_called(name):
    assert faults(Rule, name=name, tier="glm")[0].message == "this name tells that no rule decided"


def test_two_rules_of_a_name_are_refused_at_the_second():
    rules = [Rule(name=name, tier="glm") for name in ("a", "b", "a", "a")]
    assert [fault.path for fault in find_doubles(rules)] == [
        ("rules", 2, "name"),
        ("rules", 3, "name"),
    ]


def test_what_rules_look_at_is_known_before_a_request_is_read():
    plain = Rule(name="a", tier="glm", when=When(header={"X-Mood": "dark", "x-Place": "sea"}))
    assert named_headers([plain, Rule(name="b", tier="glm")]) == {"x-mood", "x-place"}
    assert content_tiers([plain]) == frozenset()
    seen = [
        Rule(name="b", tier="grok", when=When(images=False)),
        Rule(name="c", tier="deepseek", when=When(tools=True)),
    ]
    assert content_tiers([plain, *seen]) == {"grok", "deepseek"}
