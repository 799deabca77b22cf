"""The queue's table."""

from __future__ import annotations

from gateway.jobs.rows import jobs
from gateway.store.tables.work import Job


def test_its_columns_are_those_of_the_table() -> None:
    table = Job.__table__  # type: ignore[attr-defined]

    assert [column.name for column in jobs.c] == [column.name for column in table.c]
