"""A queue on a real SQLite file."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection

from gateway.store.engine import Store
from tests.gateway.seeds import add_conversation, talk


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    store = Store(f"sqlite:///{tmp_path_factory.mktemp('queue') / 'jobs.db'}", synchronous="OFF")
    store.open()
    yield store
    store.close()


@pytest.fixture
def connection(store: Store) -> Iterator[Connection]:
    """A transaction that is rolled back."""
    with store._writer.connect() as connection:
        transaction = connection.begin()
        yield connection
        transaction.rollback()


@pytest.fixture
def conversation_pk(connection: Connection) -> int:
    return add_conversation(connection, talk(1))[0].pk
