"""Places in a list, and rows that nobody else may see. The rest stands in tests/gateway/api."""

from __future__ import annotations

import pytest

from gateway.store.conversations import Place


def test_a_place_survives_its_text() -> None:
    assert Place.parse(str(Place(1_700_000_000_000, 42))) == Place(1_700_000_000_000, 42)


@pytest.mark.parametrize("text", ["", "1", "-1", "1-", "a-1", "1-2-3", "١-٢", "9" * 17 + "-1"])
def test_what_is_no_place(text: str) -> None:
    with pytest.raises(ValueError, match="no place"):
        Place.parse(text)
