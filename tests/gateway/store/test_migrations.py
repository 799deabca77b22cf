"""Migrations: the newest one makes what the tables say, and a failed one stops the start."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from gateway.errors import ConfigurationError
from gateway.store import migrations
from gateway.store.engine import Store, find_database
from gateway.store.tables import METADATA
from tests.gateway.databases import database_url

FOLDER = Path(migrations.__file__).parent


def is_ours(_object: object, name: str | None, *_others: object) -> bool:
    """The search index is made otherwise on each database: on SQLite it is a virtual table."""
    return not (name or "").startswith(("message_search", "message_terms"))


def open_store(folder: Path) -> Store:
    store = Store(database_url(folder / "x.db", migrated=False))
    store.open()
    return store


def test_the_migrations_make_what_the_tables_say(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    with store._writer.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"render_as_batch": True, "include_object": is_ours}
        )
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
    file = tmp_path / "x.db"
    before = file.read_bytes() if file.exists() else b""
    store = open_store(tmp_path)
    assert migrations.current(store._writer) == migrations.HEAD
    store.close()
    assert (file.read_bytes() if file.exists() else b"") == before


BROKEN = """
from alembic import op
import sqlalchemy as sa
revision = "9998"
down_revision = "{head}"
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
    head = migrations.HEAD
    for made in (FOLDER / "versions").glob("[0-9]*.py"):
        (copy / "versions" / made.name).write_text(made.read_text())
    (copy / "versions" / "9998_broken.py").write_text(BROKEN.format(head=head))
    monkeypatch.setattr(migrations, "__file__", str(copy / "__init__.py"))
    monkeypatch.setattr(migrations, "HEAD", "9998")
    store = Store(database_url(tmp_path / "x.db"))
    with pytest.raises(ConfigurationError, match="no_such_table"):
        store.open()
    with store._writer.connect() as connection:
        assert not inspect(connection).has_table("half_made")
    assert migrations.current(store._writer) == head
    store.close()


def test_an_earlier_database_keeps_its_rows_and_its_images_are_counted(tmp_path: Path) -> None:
    config = Config()
    config.set_main_option("script_location", str(FOLDER))
    made = find_database(database_url(tmp_path / "x.db", migrated=False), synchronous="OFF")
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}}
    path = [
        {"role": "user", "content": [{"type": "text", "text": "見て"}, image, image]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}]},
        {"role": "tool", "tool_call_id": "c1", "content": "ясно"},
        {"role": "user", "content": "और?"},
    ]
    with made.migrating() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        connection.exec_driver_sql(
            """INSERT INTO owners (pk, name, "user", created_ms) VALUES (1, 'local', '', 0)"""
        )
        connection.exec_driver_sql(
            "INSERT INTO conversations (pk, id, owner_pk, model, archived, resends, created_ms,"
            " touched_ms) VALUES (1, 'conv_1', 1, 'm', false, false, 0, 0)"
        )
        for pk, message in enumerate(path, 1):
            connection.execute(
                text(
                    "INSERT INTO messages (pk, id, conversation_pk, owner_pk, parent_pk, depth,"
                    " jump_depth, chain, content, role, raw, chars, cum_chars, opens, produced,"
                    " anchored, partial, created_ms)"
                    " VALUES (:pk, :id, 1, 1, :parent, :pk, 0, '', '', :role, :raw, 1, :pk,"
                    " false, false, false, false, 0)"
                ),
                {
                    "pk": pk,
                    "id": f"m{pk}",
                    "parent": pk - 1 or None,
                    "role": message["role"],
                    "raw": json.dumps(message),
                },
            )
    made.writer.dispose()
    made.reader.dispose()

    store = open_store(tmp_path)
    counted = store.reading(
        lambda c: c.exec_driver_sql(
            "SELECT cum_images, cum_tools, raw FROM messages ORDER BY pk"
        ).all()
    )
    assert [(row[0], row[1]) for row in counted] == [(2, 0), (2, 1), (2, 2), (2, 2)]
    assert [json.loads(row[2]) for row in counted] == path
    private = store.reading(
        lambda c: c.exec_driver_sql("SELECT private, route FROM conversations").all()
    )
    assert [tuple(row) for row in private] == [(0, None)]
    store.close()


def test_a_database_of_a_newer_program_is_refused(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.writing(lambda c: c.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'"))
    store.close()
    store = Store(database_url(tmp_path / "x.db"))
    with pytest.raises(ConfigurationError, match="9999"):
        store.open()
    store.close()
