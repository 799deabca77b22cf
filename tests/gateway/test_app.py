"""The program put together, and what does not happen before it runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import select

from gateway.app import create_app
from gateway.errors import ConfigurationError
from gateway.policy_file import PolicyFileError
from gateway.settings import Settings
from gateway.store.boots import boots, revisions
from tests.gateway.seeds import POLICIES


def settings(tmp_path: Path, text: str = POLICIES) -> Settings:
    policies = tmp_path / "policies.yaml"
    policies.write_text(text)
    return Settings(policies=policies, database_url=f"sqlite:///{tmp_path / 'foldgate.db'}")


async def test_nothing_is_opened_before_it_runs(tmp_path: Path) -> None:
    app = create_app(settings(tmp_path))
    store = app.state.context.store
    assert not store.path.exists()
    async with app.router.lifespan_context(app):
        (boot,) = store.reading(lambda c: c.execute(select(boots)).all())
        assert boot.id == app.state.context.boot
        (revision,) = store.reading(lambda c: c.execute(select(revisions)).all())
        assert (revision.digest, revision.text) == (app.state.context.policies.revision, POLICIES)


async def test_a_key_in_the_file_is_not_stored(tmp_path: Path) -> None:
    cloud = """
  one: {kind: litellm, model: deepseek/x, api_key: glm}
  two: {kind: litellm, model: deepseek/x, api_key: &k "sk-0123456789abcdef"}
  three: {kind: litellm, model: deepseek/x, api_key: *k}
policies:"""
    text = POLICIES.replace("\npolicies:", cloud)
    app = create_app(settings(tmp_path, text))
    store = app.state.context.store
    async with app.router.lifespan_context(app):
        stored = store.reading(lambda c: c.execute(select(revisions.c.text)).scalar())
    assert stored == text.replace("api_key: glm", "api_key: [key]").replace(
        "sk-0123456789abcdef", "[key]"
    )
    assert "local-glm" in stored


async def test_a_lookup_s_header_in_the_file_is_not_stored(tmp_path: Path) -> None:
    lookups = """
lookups:
  crm: {url: "http://127.0.0.1:1/x", headers: {X-Key: kurz, Authorization: "Bearer langer-wert"}}
models:"""
    text = POLICIES.replace("\nmodels:", lookups)
    app = create_app(settings(tmp_path, text))
    store = app.state.context.store
    async with app.router.lifespan_context(app):
        stored = store.reading(lambda c: c.execute(select(revisions.c.text)).scalar())
    assert stored == text.replace("kurz", "[key]").replace("Bearer langer-wert", "[key]")


async def test_a_database_that_cannot_be_brought_up_to_date_stops_the_start(
    tmp_path: Path,
) -> None:
    import sqlite3

    broken = sqlite3.connect(tmp_path / "foldgate.db")
    broken.execute("CREATE TABLE owners (pk INTEGER)")
    broken.close()
    app = create_app(settings(tmp_path))
    with pytest.raises(ConfigurationError, match="owners already exists"):
        async with app.router.lifespan_context(app):
            raise AssertionError("it started")


def test_a_file_with_problems_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(PolicyFileError):
        create_app(settings(tmp_path, "version: 1\n"))


def test_the_cloud_is_imported_by_nobody_who_does_not_use_it(tmp_path: Path) -> None:
    """D17."""
    settings(tmp_path)
    code = (
        "import sys; from pathlib import Path;"
        "from gateway.app import create_app; from gateway.settings import Settings;"
        "create_app(Settings(policies=Path('policies.yaml')));"
        "unused = ('litellm', 'tiktoken', 'openai', 'alembic', 'opentelemetry.sdk', 'psycopg');"
        "print([m for m in unused if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert done.stdout == "[]\n"


def test_what_judges_is_ready_before_the_first_text_is_read() -> None:
    """In a process of its own: here it was imported long ago."""
    script = (
        "import sys, gateway.app as app\n"
        "assert 'policies.judge' not in sys.modules\n"
        "app.warm_judge()\n"
        "assert {'policies.judge.rulings', 'policies.ledger.grounding'} <= set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, b"")


async def test_the_judge_is_warmed_when_the_program_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warmed: list[bool] = []
    monkeypatch.setattr("gateway.app.warm_judge", lambda: warmed.append(True))
    app = create_app(settings(tmp_path))
    async with app.router.lifespan_context(app):
        pass
    assert warmed == [True]
