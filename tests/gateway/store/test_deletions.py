"""What rows say of what is deleted, and what it says that they are not there."""

from __future__ import annotations

import pytest

from gateway.store.deletions import Gone
from tests.gateway.seeds import NOW


@pytest.mark.parametrize(
    ("pk", "id", "is_gone"),
    [
        (1, "a", False),  # it is there
        (2, "b", True),  # it says so itself
        (9, "b", True),  # wherever it stands
        (3, "c", True),  # its row is gone
        (1, "x", False),  # its number is another's by now
        (7, "y", False),  # its number was not given out yet
    ],
)
def test_a_row_that_is_not_there_is_deleted_where_its_number_was_given_out(
    pk: int, id: str, is_gone: bool
) -> None:
    gone = Gone(told={"b": NOW}, taken=frozenset({1, 2, 5}), newest=6)
    assert gone.holds(pk, id) is is_gone
