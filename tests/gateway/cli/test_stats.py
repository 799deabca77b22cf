"""`foldgate stats`: the figures of a database, as JSON and for people."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import Connection, text

from gateway.cli.stats_table import lay_out
from gateway.store.engine import Store
from tests.gateway.cli.conftest import Run, Seeded
from tests.gateway.seeds import NOW


def test_the_figures_as_one_object(run: Run, seeded: Seeded) -> None:
    """One chapter of 9 characters, one gist of 15, one refusal: 1 of 3 judged is 33.3 in 100."""
    told = json.loads(run("stats", "--json").stdout)
    assert told["since"] is None
    turns = told["turns"]
    assert (turns["answered"], turns["prompt_tokens"], turns["cut_by_length"]) == (1, 10, 0)
    assert told["questions"] == {"answered": 1, "broken_off": 0, "failed": 0, "cancelled": 0}
    assert (turns["reuse"], turns["reuse_expected"]) == (None, None)
    assert told["chapters"] == {"count": 1, "median_seconds": None, "mean_chars": 9}
    assert told["majors"] == {"count": 1, "median_seconds": None, "mean_chars": 15}
    assert told["rejections"] == {
        "judged": 3,
        "refusals": 1,
        "others": 0,
        "refusals_per_hundred": 33.3,
        "others_per_hundred": 0.0,
        "other_reasons": {},
    }
    assert told["folds"] == {
        "count": 1,
        "mean_span_chars": seeded.nodes[1].cum_chars,
        "renewals": 0,
        "migrations": 0,
        "with_stand_in": 0,
    }
    assert (told["hard_cuts"], told["stand_ins"]) == (0, {"chapters": 0, "gists": 0})
    assert told["jobs"] == {"states": {"chapter": {"queued": 1}}, "parked": []}
    (tier,) = told["by_tier"]
    assert (tier["backend"], tier["policy"], tier["answered"]) == ("local-glm", "local-fold", 1)
    assert [row["policy"] for row in told["by_policy"]] == ["", "local-fold"]
    assert [(row["backend"], row["kind"], row["count"]) for row in told["by_summarizer"]] == [
        ("local-glm", "chapter", 1),
        ("local-glm", "gist", 1),
    ]


def test_medians_and_shares(run: Run, seeded: Seeded) -> None:
    """960 of 1,000 tokens were there; 3,900 of 4,000 characters should have been."""

    def fill(connection: Connection) -> None:
        connection.execute(text("UPDATE chapter_versions SET took_ms = 21400"))
        connection.execute(
            text(
                "UPDATE attempts SET prompt_tokens = 1000, cached_tokens = 960,"
                " prompt_chars = 4000, expected_chars = 3900, moved_by = 'fold',"
                " first_token_ms = 850, finish_reason = 'length'"
            )
        )
        connection.execute(text("UPDATE jobs SET state = 'parked'"))
        for kind, state in (("title", "failed"), ("title", "done"), ("tags", "done")):
            connection.execute(
                text(
                    "INSERT INTO auxiliary_requests (owner_pk, kind, how, model, backend, state,"
                    f" started_ms) SELECT pk, '{kind}', 'marker', 'm', 'local-glm', '{state}',"
                    f" {NOW} FROM owners LIMIT 1"
                )
            )

    store = Store(f"sqlite:///{seeded.path}")
    store.open()
    store.writing(fill)
    store.close()
    told = json.loads(run("stats", "--json").stdout)
    assert told["chapters"]["median_seconds"] == 21.4
    assert (told["turns"]["reuse"], told["turns"]["reuse_expected"]) == (0.96, 0.975)
    lines = run("stats").stdout.splitlines()
    table = {line[:21].strip(): line[23:] for line in lines}
    assert table["replies cut by length"] == "1"
    assert table["reuse of prompts"] == "96.0 %, expected 97.5 %"
    assert table["chapters"] == "1, median 21.4 s, mean 9 characters"
    assert table["rejections"] == "of 3 outputs 33.3 % were refusals and 0.0 % others"
    assert table["folds"] == (
        f"1, mean span {seeded.nodes[1].cum_chars} characters, 0 migrations, 0 with a stand-in"
    )
    assert table["prompts that moved"] == "fold 1"
    assert table["turns"] == "1 answered, 0 broken off, 0 failed, 0 cancelled"
    assert table["attempts at them"] == "1, 0 of a fallback; 0 failed"
    assert table["auxiliary calls"] == "3 (title 2, tags 1), 2 answered"
    assert table["background work"] == "1 parked (refusal 1)"
    assert any(line.startswith("local-glm  local-fold") for line in lines)


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 migrations"), (1, "1 migration"), (1_200, "1,200 migrations")]
)
def test_one_of_a_kind_is_not_several(run: Run, seeded: Seeded, count: int, words: str) -> None:
    told = json.loads(run("stats", "--json").stdout)
    told["folds"]["migrations"] = count
    told["stand_ins"] = {"chapters": count, "gists": 1}
    lines = lay_out(told)
    assert any(f" {words}, 0 with a stand-in" in line for line in lines)
    kind = words.replace("migration", "chapter")
    assert any(line.startswith("stand-ins") and f" {kind}, 1 gist" in line for line in lines)


@pytest.mark.parametrize("since", ["7d", "2026-01-01", "2023-11-14T22:13:20.001Z"])
def test_what_is_older_is_left_out(run: Run, seeded: Seeded, since: str) -> None:
    """The seeds are of 2023-11-14T22:13:20Z."""
    told = json.loads(run("stats", "--since", since, "--json").stdout)
    assert (told["turns"]["attempts"], told["chapters"]["count"]) == (0, 0)
    assert told["rejections"]["refusals_per_hundred"] is None
    assert told["since"] >= "2023-11-14T22:13:20.001Z"
    assert run("stats", "--since", since).stdout.startswith("since 20")


def test_a_moment_without_a_zone_is_utc(run: Run, seeded: Seeded) -> None:
    for moment in ("2023-11-14T22:13:20", "2023-11-14T22:13:20+00:00", "2023-11-15T07:13:20+09:00"):
        told = json.loads(run("stats", "--since", moment, "--json").stdout)
        assert told["since"] == "2023-11-14T22:13:20.000Z"
        assert told["turns"]["attempts"] == 1
    assert NOW == 1_700_000_000_000


def test_what_is_no_moment_is_wrong_use(run: Run, seeded: Seeded) -> None:
    done = run("stats", "--since", "어제")
    assert done.exit_code == 2
    assert "neither a duration such as 7d nor a date" in done.stderr


def test_a_database_is_not_made_by_looking(run: Run) -> None:
    done = run("stats")
    assert (done.exit_code, "there is no database" in done.stderr) == (2, True)
