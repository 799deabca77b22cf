"""The picture holds every point, and the page every figure; neither loads anything."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from gateway.evals.forgetting.curve import draw, write_page
from gateway.evals.forgetting.report import Graded, ModeReport

SVG = "{http://www.w3.org/2000/svg}"


def modes(ages: int, repeats: int = 2) -> dict[str, Any]:
    made = {}
    for name, share in (("rolling", 0), ("generational", 2)):
        grades = [
            Graded(repeat, age, "gist" if age > 2 else "stack", number < share + repeat)
            for repeat in range(repeats)
            for age in range(1, ages + 1)
            for number in range(4)
        ]
        made[name] = ModeReport(grades).as_json()
    return made


def test_every_age_has_its_dot_and_the_gists_are_hollow() -> None:
    drawn = ElementTree.fromstring(draw(modes(4), title="A <talk> & more"))
    dots = drawn.findall(f"{SVG}circle")
    assert len(dots) == 8
    assert sum(dot.get("fill") == "white" for dot in dots) == 4
    titles = [dot.findtext(f"{SVG}title") for dot in dots]
    assert titles[0] == "rolling, age 1: 12% (0% to 25%)"
    # Newest on the left, and a greater share further up.
    assert float(dots[0].get("cx", 0)) < float(dots[3].get("cx", 0))
    assert float(dots[4].get("cy", 0)) < float(dots[0].get("cy", 0))
    assert len(drawn.findall(f"{SVG}polygon")) == 2
    assert "A <talk> & more" in "".join(drawn.itertext())


def test_one_repeat_has_no_band_and_many_ages_no_crowd_of_numbers() -> None:
    drawn = ElementTree.fromstring(draw(modes(90, 1), title="t"))
    assert drawn.findall(f"{SVG}polygon") == []
    numbers = [text.text for text in drawn.findall(f"{SVG}text") if (text.text or "").isdigit()]
    assert len(numbers) == 18 and numbers[:2] == ["1", "6"]
    assert ElementTree.fromstring(draw(modes(1), title="t")).findall(f"{SVG}circle")


def test_nothing_measured_is_an_empty_picture() -> None:
    drawn = ElementTree.fromstring(draw({"rolling": ModeReport().as_json()}, title="t"))
    assert drawn.findall(f"{SVG}circle") == []


def test_the_page_holds_the_picture_and_the_figures() -> None:
    page = write_page(modes(3), title="A <talk>", facts="No model & no cost.")
    assert "<svg" in page and "<h1>A &lt;talk&gt;</h1>" in page
    assert "<td>rolling</td><td>12.5%</td><td>0.0% – 25.0%</td>" in page
    assert "<td>3</td><td>12% gist (0% – 25%)</td><td>62% gist (50% – 75%)</td>" in page
    assert "No model &amp; no cost." in page
    for word in ("http://", "https://", "src=", "<script", "<link"):
        assert word not in page.replace('xmlns="http://www.w3.org/2000/svg"', "")
