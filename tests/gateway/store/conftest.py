"""Every test of the store runs on every kind of database, unless it is marked with one's name."""

from collections.abc import Iterator

import pytest

from tests.gateway.databases import engines_of, using


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    kinds = engines_of(metafunc.definition)
    metafunc.parametrize("engine", kinds, indirect=True, scope="module")


@pytest.fixture(scope="module", autouse=True)
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    with using(request.param):
        yield request.param
