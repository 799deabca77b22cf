"""Whatever people and clients write is stored exactly and returned exactly, on every database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, delete, insert, select, text

from gateway.store.engine import Store
from gateway.store.escapes import MARK, escape, unescape
from gateway.store.prepared import Prepared
from gateway.store.tables.transcript import Owner
from tests.gateway.databases import database_url, dropping

owners = Owner.__table__  # type: ignore[attr-defined]
LONE, NUL = "half \ud83d of a pair", "before\x00after"
TEXTS = st.lists(
    st.one_of(st.text(), st.characters(categories=["Cs"]), st.sampled_from("\x00\u00e9" + MARK))
).map("".join)
_ADD = Prepared(insert(owners), ["name", "user", "created_ms"])
_NAMES = Prepared(select(owners.c.name).where(owners.c.user == text(":said")))


@pytest.fixture(scope="module")
def store(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with dropping():
        made = Store(database_url(tmp_path_factory.mktemp("texts") / "x.db"))
        made.open()
        yield made
        made.close()


@pytest.mark.sqlite
@given(TEXTS)
@example(LONE)
@example(NUL)
@example(f"{MARK}0000")
@example(f"{MARK}\x00{MARK}")
def test_what_is_escaped_can_be_held_and_comes_back(said: str) -> None:
    held = escape(said)
    assert unescape(held) == said
    assert "\x00" not in held
    held.encode()  # no half of a pair is left in it


@pytest.mark.sqlite
@pytest.mark.parametrize(
    "said", ["", "雨の日", "مرحبا", "👩‍👩‍👧", "\u0301e\r\n\t", "\uffff\U0010ffff"]
)
def test_what_can_be_held_stays_as_it_is(said: str) -> None:
    assert escape(said) == unescape(said) == said


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS)
@example(LONE)
@example(NUL)
@example(f"{MARK}0000")
def test_any_text_is_returned_as_it_was_stored(store: Store, engine: str, said: str) -> None:
    """By SQLAlchemy's own statements, by prepared ones and by plain SQL."""
    # On SQLite halves of pairs reach no column: raw messages are JSON, escaped.
    assume(engine == "postgresql" or not any("\ud800" <= one <= "\udfff" for one in said))

    def there_and_back(connection: Connection) -> list[str]:
        connection.execute(delete(owners))
        connection.execute(insert(owners).values(name=said, user=said, created_ms=1))
        _ADD.run(connection, name=said + "2", user=said, created_ms=1)
        connection.execute(
            text('INSERT INTO owners (name, "user", created_ms) VALUES (:name, :said, 1)'),
            {"name": said + "3", "said": said},
        )
        named = select(owners.c.name).where(owners.c.user == said).order_by(owners.c.pk)
        found = list(connection.execute(named).scalars())
        assert sorted(row[0] for row in _NAMES.all(connection, said=said)) == sorted(found)
        plain = text('SELECT "user" FROM owners WHERE name = :name')
        found.append(connection.execute(plain, {"name": said}).scalar_one())
        return found

    assert store.writing(there_and_back) == [said, said + "2", said + "3", said]
