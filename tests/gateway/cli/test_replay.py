"""A recorded conversation played from the command line: its figures, and what stops it early."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import pytest

from tests.gateway.cli.conftest import Run

POLICIES = """
version: 1
backends:
  actor: {kind: scripted}
policies:
  small:
    view: {start: 6_000, ceiling: 8_000, headroom: 2_000, keep: 2_000}
    chapters: {split: 3_000, length: 400, stack: 1_500}
    gist: {length: 500}
    summaries: {delay: 1s}
models:
  foldgate: {tiers: [{backend: actor, policy: small}]}
"""


@pytest.fixture
def recording(run: Run, tmp_path: Path) -> str:
    """Ten turns, each of 2 · 8 · 72 = 1,152 characters."""
    (tmp_path / "policies.yaml").write_text(POLICIES)
    said = [
        {"role": role, "content": text.format(number) * 8}
        for number in range(10)
        for role, text in (
            (
                "user",
                "On day {} the ship Aurora reached Hakodate; 船長の田中 gave the map to Ольга. ",
            ),
            (
                "assistant",
                "So on day {} the map changed hands, and the captain kept quiet about it. ",
            ),
        )
    ]
    assert [len(message["content"]) for message in said[:2]] == [8 * 72, 8 * 72]
    (tmp_path / "talk.json").write_text(json.dumps(said))
    return "talk.json"


def test_a_recording_that_ends_amid_a_summary(
    run: Run, recording: str, caplog: pytest.LogCaptureFixture
) -> None:
    done = run("replay", recording, "--policy", "small", "--json")
    gc.collect()
    assert (done.exit_code, done.stderr) == (0, "")
    figures = json.loads(done.stdout)
    assert (figures["messages"], figures["turns"]) == (20, 10)
    assert figures["floor_chars"] == 10 * 2 * 8 * 72
    assert figures["lost_messages"] == 0
    assert figures["prompt_chars_max"] <= 8_000
    assert "switches" not in figures
    # asyncio says it here where a task was left behind.
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


def test_a_picture_that_could_not_be_kept_is_told_first(run: Run, recording: str) -> None:
    done = run("replay", recording, "--policy", "small", "--plot", "nowhere/out.svg")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "There is no folder 'nowhere'." in done.stderr


def test_a_picture(run: Run, recording: str, tmp_path: Path) -> None:
    done = run("replay", recording, "--policy", "small", "--plot", "out.svg")
    assert done.exit_code == 0
    assert "ceiling 8,000" in (tmp_path / "out.svg").read_text()


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ((), "There is no policy 'local-fold'; there are: small; name one with --policy"),
        (("--policy", "small", "--backend", "x"), "there are: actor; name one with --backend"),
    ],
)
def test_names_that_the_policies_file_does_not_have(
    run: Run, recording: str, flags: tuple[str, ...], why: str
) -> None:
    done = run("replay", recording, *flags)
    assert done.exit_code == 2
    assert why in done.stderr


@pytest.fixture
def questions(run: Run, tmp_path: Path) -> str:
    """Forty days, and then forty questions about them."""
    (tmp_path / "policies.yaml").write_text(POLICIES)
    things = (
        "compass",
        "鍵",
        "фонарь",
        "violin",
        "灯籠",
        "maceta",
        "ledger",
        "письмо",
        "bell",
        "mapa",
    )
    said = []
    for day in range(40):
        thing = things[day % 10]
        said.append(f"Today captain number{day} of the Aurora lost the {thing} called name{day}x.")
        said.append(f"What a pity. {'And the sea was calm, or so they say. ' * 3}")
    for day in range(40):
        said.append(f"Who lost the {things[day % 10]} called name{day}x?")
        said.append("Let me think about it.")
    messages = [
        {"role": role, "content": text}
        for role, text in zip(("user", "assistant") * 80, said, strict=True)
    ]
    (tmp_path / "questions.json").write_text(json.dumps(messages))
    return "questions.json"


def test_recall_finds_lines_and_moves_no_prefix(run: Run, questions: str) -> None:
    with_notes, without = (
        json.loads(run("replay", questions, "--policy", "small", "--json", *flags).stdout)
        for flags in ((), ("--no-recall",))
    )
    assert with_notes["recall_turns"] >= 3
    # a third of the headroom of 2,000 between two folds
    assert 0 < with_notes["recall_chars"] <= 666 * (with_notes["folds"] + 1)
    assert (without["recall_turns"], without["recall_chars"]) == (0, 0)
    for figures in (with_notes, without):
        assert figures["moved_prefixes"] == figures["lost_messages"] == figures["hard_cuts"] == 0
    added = with_notes["reread_chars"] - without["reread_chars"]
    assert added <= 1.5 * with_notes["floor_chars"]


# -- switches ---------------------------------------------------------------------------------

MOVES = """
version: 1
backends:
  actor: {kind: scripted}
policies:
  small:
    view: {start: 8_000, ceiling: 11_000, headroom: 3_000, keep: 2_000}
    chapters: {split: 3_000, length: 400, stack: 1_500}
    gist: {length: 500}
    summaries: {delay: 1s}
  large:
    view: {start: 40_000, ceiling: 60_000, headroom: 9_000, keep: 20_000}
    keep_warm: WARM
models:
  little: {tiers: [{backend: actor, policy: small}]}
  foldgate: {tiers: [{backend: actor, policy: large}]}
"""


def long_recording(folder: Path, *, warm: bool) -> str:
    """130 turns of 2 · 144 = 288 characters."""
    (folder / "policies.yaml").write_text(MOVES.replace("WARM", str(warm).lower()))
    places = (
        "Hakodate",
        "Владивосток",
        "釜山",
        "Vigo",
        "Lisbon",
        "Ålesund",
        "高雄",
        "Cork",
        "Oulu",
    )
    things = ("map", "compass", "鍵", "ledger", "lamp", "письмо", "rope", "bell", "mirror", "coat")
    lines = (
        "On day {0:03d} the Aurora reached {1} and Ольга bought a {2} for {3} crowns.",
        "Captain 田中 hid the {2} of {1} in cabin {3} and told nobody on day {0:03d}.",
    )
    said = [
        {"role": role, "content": text.format(day, places[day % 9], things[day % 10], day * 7)}
        for day in range(130)
        for role, text in zip(("user", "assistant"), lines, strict=True)
    ]
    for message in said:
        message["content"] = (message["content"] + " …" * 40)[:144]
    (folder / "long.json").write_text(json.dumps(said))
    return "long.json"


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("refusals", [0, 30])
def test_there_and_back(run: Run, tmp_path: Path, warm: bool, refusals: int) -> None:
    recording = long_recording(tmp_path, warm=warm)
    flags = ("--policy", "large", "--switch", "12_000:small", "--switch", "35_000:large", "--json")
    # with notes the small view folds so often that gists of these lines, which repeat themselves
    # and are judged out, come too late
    flags = (*flags, "--no-recall")
    done = run("replay", recording, *flags, "--refusals", str(refusals))
    assert (done.exit_code, done.stderr) == (0, "")
    figures = json.loads(done.stdout)
    there, back = figures["switches"]
    assert (there["at_chars"], there["to"]) == (12_000, "small")
    # the view holds 8,000 at most, 2,000 of them verbatim; the rest is backlog
    assert 12_000 - 8_000 <= there["backlog_chars"]
    spans = -(-there["backlog_chars"] // 3_000)
    assert spans <= there["chapters"] <= spans + 2
    assert there["largest_span"] <= 3_000
    assert 2_000 <= there["verbatim_chars"] < there["first_prompt_chars"] <= 8_200
    assert (back["at_chars"], back["to"]) == (35_000, "large")
    assert (back["backlog_chars"], back["chapters"], back["largest_span"]) == (0, 0, 0)
    # 122 turns are 35,136; and the message of the next
    assert back["verbatim_chars"] == back["first_prompt_chars"] == 122 * 288 + 144
    assert there["lost_messages"] == back["lost_messages"] == figures["lost_messages"] == 0
    # a refused chapter may come too late later on: so small a view has only 3,000 to spare
    assert figures["hard_cuts"] == 0 or refusals


def test_a_switch_that_the_recording_does_not_reach(run: Run, tmp_path: Path) -> None:
    recording = long_recording(tmp_path, warm=False)
    done = run("replay", recording, "--policy", "large", "--switch", "37_440:small", "--json")
    assert done.exit_code == 0
    # 130 turns are 37,440: nobody speaks after the last one
    assert json.loads(done.stdout)["switches"] == []
    told = "foldgate: the switch at 37,440 to small was not made: no turn begins so late"
    assert f"{told} (37,440 characters were played)" in done.stderr
    done = run("replay", recording, "--policy", "large", "--switch", "37_152:small")
    # 129 turns: the last one still waits in the large view
    assert "switch at 37,152 to small" in done.stdout
    assert "not made" not in done.stderr
    assert done.stdout.rstrip().endswith("lost_messages                  0")
    assert "first_prompt_chars             -" in done.stdout


@pytest.mark.parametrize("switch", ["small", "12k:small", ":small", "12000:", "-5:small"])
def test_what_is_no_switch(run: Run, recording: str, switch: str) -> None:
    done = run("replay", recording, "--policy", "small", "--switch", switch)
    assert done.exit_code == 2
    assert "such as 150000:local-fold" in " ".join(done.stderr.split())


def test_a_switch_to_no_policy(run: Run, recording: str) -> None:
    done = run("replay", recording, "--policy", "small", "--switch", "100:smal")
    assert done.exit_code == 2
    assert "There is no policy 'smal'; there are: small; name one with --switch" in done.stderr
