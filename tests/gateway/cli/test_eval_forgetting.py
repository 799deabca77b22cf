"""`foldgate eval forgetting` as people and scripts call it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gateway.cli import main
from gateway.evals.forgetting import fingerprint
from tests.gateway.evals.long_talks import make_talk

POLICIES = """
version: 1
backends:
  rehearsal: {kind: scripted, latency: 0s, refusals: 0, truncations: 0}
  cloud: {kind: litellm, model: deepseek/deepseek-v4-flash, api_key: "${NOT_SET:-}"}
  gone: {kind: llama_cpp, url: "http://127.0.0.1:9"}
policies:
  small:
    view: {start: 9000, ceiling: 12000, headroom: 4000, keep: 2500}
    chapters: {split: 8000, length: 500, stack: 1200}
    gist: {length: 600}
    summaries: {backends: [rehearsal]}
  alone:
    view: {start: 9000, ceiling: 12000, headroom: 4000, keep: 2500}
    chapters: {split: 8000, length: 500, stack: 1200}
    gist: {length: 600}
    recall: {budget: 0}
models:
  foldgate: {tiers: [{backend: rehearsal, policy: small}, {backend: cloud, policy: alone}]}

...
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sources are taken to be what they were, also where somebody edits them meanwhile."""
    monkeypatch.setattr(fingerprint, "code_digest", lambda: "0" * 32)
    (tmp_path / "policies.yaml").write_text(POLICIES)
    for seed in (1, 2):
        talk = [{"role": role, "content": text} for role, text in make_talk(22_000, seed=seed)]
        (tmp_path / f"talk{seed}.json").write_text(json.dumps(talk))
    return tmp_path


def run(folder: Path, *more: str, policy: str = "small", files: tuple[int, ...] = (1,)) -> Result:
    words = ["eval", "forgetting", *(str(folder / f"talk{number}.json") for number in files)]
    words += ["--policies", str(folder / "policies.yaml"), "--policy", policy, *more]
    return CliRunner().invoke(main, words, catch_exceptions=False)


def figures(done: Result) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def test_one_object_on_standard_output_and_progress_on_the_other(folder: Path) -> None:
    svg, html = folder / "curve.svg", folder / "curve.html"
    more = ("--keep", "0.5", "--repeats", "2", "--state", str(folder / "state"))
    done = run(folder, *more, "--svg", str(svg), "--html", str(html), "--json")
    assert done.exit_code == 0
    told = figures(done)
    assert list(told["modes"]) == [
        "rolling",
        "rolling-long",
        "generational",
        "generational+recall",
    ]
    for mode in told["modes"].values():
        assert set(mode) >= {"mean", "spread", "by_span", "questions", "malformed", "calls"}
        assert set(mode["spread"]) == {"min", "max", "stdev"}
        assert all(
            set(row) == {"age", "where", "share", "spread", "questions"} for row in mode["by_span"]
        )
        assert mode["questions"] == 2 * told["questions"]
    assert set(told["fingerprint"]) == {"code", "policy", "keep", "seed", "conversation"}
    assert told["paths"] == {
        "state": str(folder / "state" / "forgetting.jsonl"),
        "html": str(html),
        "svg": str(svg),
    }
    assert "conversation 1, repeat 2 of 2: generational+recall" in done.stderr
    assert svg.read_text().startswith("<svg")
    assert "talk1.json under small" in html.read_text()
    again = run(folder, *more, "--json")
    assert figures(again)["modes"] == told["modes"]
    assert (told["asked_now"] > 0, figures(again)["asked_now"]) == (True, 0)


def test_a_state_of_other_numbers_is_refused_until_it_is_begun_anew(folder: Path) -> None:
    state = ("--state", str(folder / "state"), "--modes", "generational", "--json")
    assert run(folder, "--keep", "0.5", *state).exit_code == 0
    refused = run(folder, "--keep", "0.6", *state)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "another keep" in refused.stderr and "--fresh" in refused.stderr
    other = run(folder, "--keep", "0.5", *state, files=(2,))
    assert "another conversation" in other.stderr
    (folder / "policies.yaml").write_text(POLICIES.replace("length: 500", "length: 450"))
    assert "another policy" in run(folder, "--keep", "0.5", *state).stderr
    assert run(folder, "--keep", "0.5", *state, "--fresh").exit_code == 0


def test_it_is_told_to_people(folder: Path) -> None:
    done = run(folder, "--keep", "0.5", "--modes", "generational,rolling", files=(1, 2))
    assert done.exit_code == 0
    assert "a summarizer that keeps 50% of what it reads; 2 conversations" in done.stdout
    lines = done.stdout.splitlines()
    assert lines[1].split() == ["mode", "mean", "least", "most", "stack", "gist", "memory"]
    assert [line.split()[0] for line in lines[2:4]] == ["generational", "rolling"]
    assert lines[4] == "generational, by age in spans:"
    assert lines[5].split()[:2] == ["1", "stack"]


def test_files_are_joined_when_that_is_wanted(folder: Path) -> None:
    more = ("--keep", "0.5", "--modes", "rolling", "--json")
    apart = figures(run(folder, *more, files=(1, 2)))
    joined = figures(run(folder, *more, "--joined", files=(1, 2)))
    assert (apart["conversations"], joined["conversations"]) == (2, 1)
    assert joined["spans"] > apart["spans"] / 2 + 1


def test_a_scripted_backend_summarizes_and_code_examines(folder: Path) -> None:
    told = figures(run(folder, "--spans", "2", "--questions", "3", "--json"))
    assert (told["backend"], told["examiner"], told["keep"]) == ("rehearsal", "code", None)
    assert (told["spans"], told["questions"]) == (2, 6)
    assert told["modes"]["generational+recall"]["mean"] >= 0.9
    named = figures(run(folder, "--backend", "rehearsal", "--spans", "1", "--json", policy="alone"))
    # A policy that recalls nothing is measured without.
    assert list(named["modes"]) == ["rolling", "rolling-long", "generational"]


def test_nobody_there_ends_with_one_and_says_where_it_goes_on(folder: Path) -> None:
    done = run(folder, "--backend", "gone", "--json")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "with --state DIR" in done.stderr
    state = folder / "state"
    kept = run(folder, "--examiner", "gone", "--state", str(state), "--json")
    assert kept.exit_code == 1
    assert f"What was made is kept in {state}" in kept.stderr


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (("--keep", "0.5", "--backend", "rehearsal"), "leave out --backend"),
        (("--keep", "0.5", "--fresh"), "--state"),
        (("--keep", "0"), "0<x<=1"),
        (("--keep", "0.5", "--modes", "rolling,rowing"), "'rowing' is none of"),
        (("--keep", "0.5", "--policy", "none"), "there are: small, alone; name one with --policy"),
        (("--keep", "0.5", "--policy", "alone", "--modes", "generational+recall"), "recalls noth"),
        (("--policy", "alone"), "--keep 0.5"),
        (("--backend", "nobody"), "there is no backend nobody; there are: rehearsal"),
        (("--backend", "cloud"), "the backend cloud is off"),
    ],
)
def test_wrong_use_is_told(folder: Path, more: tuple[str, ...], why: str) -> None:
    done = run(folder, *more, "--json")
    assert (done.exit_code, done.stdout) == (2, "")
    assert why in done.stderr


def test_what_cannot_be_measured_is_told(folder: Path) -> None:
    (folder / "talk3.json").write_text('[{"role": "user", "content": "hello"}]')
    short = run(folder, "--keep", "0.5", files=(3,))
    assert short.exit_code == 2 and "too short" in short.stderr
    (folder / "talk4.json").write_text("{}")
    none = run(folder, "--keep", "0.5", files=(4,))
    assert none.exit_code == 2 and "neither a LoCoMo file" in none.stderr
    vague = [{"role": role, "content": "so so " * 60} for role in ("user", "assistant") * 40]
    (folder / "talk5.json").write_text(json.dumps(vague))
    nothing = run(folder, "--keep", "0.5", "--json", files=(5,))
    assert (nothing.exit_code, figures(nothing)["questions"]) == (1, 0)
    assert "there is nothing to ask" in nothing.stderr
