"""Migrations: the newest one makes what the tables say, and a failed one stops the start."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect

from gateway.errors import ConfigurationError
from gateway.store import migrations
from gateway.store.engine import Store
from gateway.store.tables import METADATA

FOLDER = Path(migrations.__file__).parent


def open_store(folder: Path) -> Store:
    store = Store(f"sqlite:///{folder / 'x.db'}")
    store.open()
    return store


def test_the_migrations_make_what_the_tables_say(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    with store._writer.connect() as connection:
        context = MigrationContext.configure(connection, opts={"render_as_batch": True})
        assert compare_metadata(context, METADATA) == []
        made = inspect(connection)
        for table in METADATA.sorted_tables:
            indexes = {index["name"] for index in made.get_indexes(table.name)}
            assert {index.name for index in table.indexes} <= indexes
            foreign = {
                (key["constrained_columns"][0], key["options"].get("ondelete"))
                for key in made.get_foreign_keys(table.name)
            }
            assert foreign == {
                (key.column_keys[0], key.ondelete) for key in table.foreign_key_constraints
            }
    store.close()


def test_every_key_hangs_on_something_that_cascades() -> None:
    for table in METADATA.sorted_tables:
        for key in table.foreign_key_constraints:
            assert key.ondelete == "CASCADE", (table.name, key.column_keys)


def test_head_is_the_newest_file() -> None:
    scripts = ScriptDirectory(str(FOLDER))
    assert scripts.get_heads() == [migrations.HEAD]
    newest = max(path.name for path in (FOLDER / "versions").glob("[0-9]*.py"))
    assert newest.startswith(f"{migrations.HEAD}_")


def test_opening_again_changes_nothing(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    assert migrations.current(store._writer) == migrations.HEAD
    store.close()
    before = (tmp_path / "x.db").read_bytes()
    store = open_store(tmp_path)
    store.close()
    assert (tmp_path / "x.db").read_bytes() == before


BROKEN = """
from alembic import op
import sqlalchemy as sa
revision = "0002"
down_revision = "0001"
def upgrade():
    op.create_table("half_made", sa.Column("pk", sa.Integer, primary_key=True))
    op.execute("INSERT INTO no_such_table VALUES (1)")
"""


def test_a_failed_migration_stops_the_start_and_leaves_the_database_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_store(tmp_path).close()
    copy = tmp_path / "migrations"
    (copy / "versions").mkdir(parents=True)
    (copy / "env.py").write_text((FOLDER / "env.py").read_text())
    (copy / "script.py.mako").write_text((FOLDER / "script.py.mako").read_text())
    first = next((FOLDER / "versions").glob("0001*.py"))
    (copy / "versions" / first.name).write_text(first.read_text())
    (copy / "versions" / "0002_broken.py").write_text(BROKEN)
    monkeypatch.setattr(migrations, "__file__", str(copy / "__init__.py"))
    monkeypatch.setattr(migrations, "HEAD", "0002")
    store = Store(f"sqlite:///{tmp_path / 'x.db'}")
    with pytest.raises(ConfigurationError, match="no_such_table"):
        store.open()
    with store._writer.connect() as connection:
        assert not inspect(connection).has_table("half_made")
    assert migrations.current(store._writer) == "0001"
    store.close()


def test_a_database_of_a_newer_program_is_refused(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.writing(lambda c: c.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'"))
    store.close()
    store = Store(f"sqlite:///{tmp_path / 'x.db'}")
    with pytest.raises(ConfigurationError, match="9999"):
        store.open()
    store.close()
