"""A queue on every kind of database."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection

from gateway.store.engine import Store
from tests.gateway.databases import database_url, dropping, engines_of, using
from tests.gateway.seeds import add_conversation, talk


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    kinds = engines_of(metafunc.definition)
    metafunc.parametrize("engine", kinds, indirect=True, scope="module")


@pytest.fixture(scope="module", autouse=True)
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    with using(request.param):
        yield request.param


@pytest.fixture(scope="module")
def store(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with dropping():
        store = Store(database_url(tmp_path_factory.mktemp("queue") / "jobs.db"), synchronous="OFF")
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
