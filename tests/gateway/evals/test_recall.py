"""eval recall: what counts as shown, in which tally, and how the command tells it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.errors import ConfigurationError
from gateway.evals.recall import Annotated, join_annotated, measure_recall, read_annotated
from gateway.flows.recollection import LINE_CHARS
from tests.gateway.evals.talks import LANGUAGES, make_talk, read_talk

KEYS = {
    *("questions", "evidence_recall", "all_evidence_recall", "window_only", "chars_mean"),
    *("ms_p50", "by_age"),
}
FACTS = {
    3: "My grandmother left me a sapphire ring.",
    21: "In Lisbon a tram ran over my umbrella.",
    38: "We painted the ceiling turquoise.",
}


def small(**more: Any) -> dict[str, Any]:
    """Forty lines, three of which say something: two by the user, one by the other."""
    said = [FACTS.get(at, f"Line {at} about the bus and the soup, again.") for at in range(1, 41)]
    session = [
        {"speaker": "AB"[at % 2], "dia_id": f"D1:{at}", "text": text}
        for at, text in enumerate(said, 1)
    ]
    questions = [
        {"question": "Who left the sapphire ring?", "evidence": ["D1:3"], "category": 1},
        {"question": "What happened in Lisbon?", "evidence": ["D1:21; D1:38"], "category": 2},
        {"question": "What became of the zeppelin?", "evidence": ["D1:38"], "category": 2},
        {"question": "Nobody knows?", "evidence": [], "category": 5},
        {"question": "Elsewhere?", "evidence": ["D7:7"], "category": 5},
    ]
    return {"speaker_a": "B", "speaker_b": "A", "session_1": session, "qa": questions, **more}


def write(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


def read(tmp_path: Path, value: Any) -> Annotated:
    return read_annotated([write(tmp_path / "talk.json", value)])[0]


def test_shares_are_of_the_lines_that_stand_whole_among_the_passages(tmp_path: Path) -> None:
    conversation = read(tmp_path, small())
    figures = measure_recall([conversation], 300).as_json()
    assert set(figures) > KEYS
    # Shown: the ring (1 of 1), Lisbon (1 of 2), nothing of the zeppelin (0 of 1).
    assert figures["questions"] == 3
    assert figures["evidence_recall"] == round((1 + 0.5 + 0) / 3, 4)
    assert figures["all_evidence_recall"] == round(1 / 3, 4)
    assert figures["lines_recall"] == 0.5
    assert figures["by_category"] == {
        "1": {"evidence": 1, "recall": 1.0},
        "2": {"evidence": 3, "recall": round(1 / 3, 4)},
    }
    assert (figures["without_evidence"], figures["unknown_evidence"]) == (2, 1)
    assert figures["nothing_recalled"] == 1
    assert 0 < figures["chars_mean"] <= 300
    assert figures["ms_p50"] > 0


def test_frames_are_counted_where_they_are_asked_for(tmp_path: Path) -> None:
    conversation = read(tmp_path, small())
    bare = measure_recall([conversation], 300).as_json()
    framed = measure_recall([conversation], 300, framed=True).as_json()
    assert (bare["line_chars"], framed["line_chars"]) == (0, LINE_CHARS)
    assert framed["chars_mean"] <= 300
    assert framed["evidence_recall"] <= bare["evidence_recall"]


def test_the_window_is_what_the_newest_characters_hold_whole(tmp_path: Path) -> None:
    conversation = read(tmp_path, small())
    since = sum(len(text) for _, text in conversation.messages[37:])
    with_it = measure_recall([conversation], since).as_json()
    # The ceiling (D1:38) is in it: half of Lisbon's evidence, all of the zeppelin's.
    assert with_it["window_only"] == 0.5
    assert measure_recall([conversation], since - 1).as_json()["window_only"] == 0.0


def test_ages_are_counted_in_characters_said_since(tmp_path: Path) -> None:
    value = small()
    value["session_1"][29]["text"] = "soup " * 6_000
    figures = measure_recall([read(tmp_path, value)], 300).as_json()
    ages = [(age["from_chars"], age["to_chars"], age["evidence"]) for age in figures["by_age"]]
    assert ages == [(0, 8_000, 2), (8_000, 32_000, 2)]


def test_files_are_joined_or_measured_apart(tmp_path: Path) -> None:
    one = read(tmp_path, small())
    both = join_annotated([one, one])
    assert both.name == "talk+talk"
    assert (len(both.messages), len(both.questions), both.left_out) == (80, 6, 4)
    assert both.questions[3].evidence == (42,)
    apart = measure_recall([one, one], 300).as_json()
    assert (apart["questions"], apart["messages"]) == (6, 80)
    # Joined, each ring has a twin, and both are shown.
    joined = measure_recall([both], 300).as_json()
    assert (joined["questions"], joined["by_category"]["1"]["recall"]) == (6, 1.0)


def test_the_published_list_is_read_as_several(tmp_path: Path) -> None:
    flat = small()
    questions = flat.pop("qa")
    samples = [{"sample_id": id, "conversation": flat, "qa": questions} for id in ("c-1", "c-2")]
    found = read_annotated([write(tmp_path / "talk.json", samples)])
    assert [one.name for one in found] == ["talk-c-1", "talk-c-2"]
    alone = read(tmp_path, small())
    assert [(one.messages, one.questions) for one in found] == [
        (alone.messages, alone.questions)
    ] * 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not JSON"),
        ("[]", "an empty list: a LoCoMo file is an object"),
        ('{"qa": []}', "talk.json: a LoCoMo file is an object .* or a list of"),
        ('{"speaker_a": "A"}', "without any session"),
        (json.dumps(small(qa=[])), "no question"),
        (json.dumps(small(qa=[{"question": "x", "evidence": ["D9:9"]}])), "no question"),
    ],
)
def test_what_cannot_be_measured(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "talk.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=why):
        read_annotated([path])
    with pytest.raises(ConfigurationError, match=r"other\.json"):
        read_annotated([tmp_path / "other.json"])


def run(*arguments: str) -> Any:
    return CliRunner().invoke(main, ["eval", "recall", *arguments], catch_exceptions=False)


def test_the_command_prints_one_object_and_nothing_else(tmp_path: Path) -> None:
    path = write(tmp_path / "talk.json", small())
    done = run(str(path), str(path), "--joined", "--budget-chars", "300", "--json")
    assert done.exit_code == 0
    figures = json.loads(done.stdout)
    assert set(figures) > KEYS
    assert (figures["questions"], figures["budget_chars"]) == (6, 300)
    assert done.stderr == "6 of 6 questions asked\n"


def test_the_command_tells_people_what_it_found(tmp_path: Path) -> None:
    done = run(str(write(tmp_path / "talk.json", small())), "--budget-chars", "300")
    assert "3 questions over 40 messages" in done.stdout
    assert "evidence_recall" in done.stdout and "50.0%" in done.stdout
    assert "0 to 8,000 ago" in done.stdout


def test_the_commands_wrong_use(tmp_path: Path) -> None:
    assert run().exit_code == 2
    assert run(str(tmp_path / "none.json")).exit_code == 2
    path = write(tmp_path / "talk.json", [])
    assert run(str(path)).exit_code == 2
    assert run(str(write(tmp_path / "a.json", small())), "--budget-chars", "1").exit_code == 2


# What 8,000 and 4,000 characters are of three joined conversations of LoCoMo: 52 and 26 of their
# 1,650 messages of 153 characters.
SHARES = ((8_000 / 252_770, 0.75), (4_000 / 252_770, 0.65))


@pytest.mark.parametrize("language", LANGUAGES)
def test_other_languages_hold_the_level(tmp_path: Path, language: str) -> None:
    conversation = read(tmp_path, make_talk(language))
    assert (len(conversation.questions), len(conversation.messages)) == (30, 1_620)
    chars = sum(len(text) for _, text in conversation.messages)
    for share, level in SHARES:
        budget = int(chars * share)
        figures = measure_recall([conversation], budget).as_json()
        assert figures["evidence_recall"] >= level
        assert figures["window_only"] <= 0.1


@pytest.mark.parametrize("language", LANGUAGES)
def test_questions_are_not_the_facts_themselves(language: str) -> None:
    for fact, _, question in read_talk(language)[0]:
        assert question not in fact
        assert fact not in question
