"""What is said of how a server was started; that it is asked, and when, is tested with the care."""

import pytest

from gateway.backends.slot_cautions import caution_ram, caution_total


@pytest.mark.parametrize(
    ("total", "pinned", "wanted", "background", "said"),
    [
        (4, True, None, 1, []),
        (2, True, 1, 1, []),
        (2, True, 2, 1, ["background_slots is 2, and it has 2 slots: 1 are kept"]),
        (1, True, None, 0, ["it has one slot"]),
        (1, True, 1, 0, ["0 are kept", "it has one slot"]),
        (None, True, None, 0, ["only slot 0 is used"]),
        (None, False, None, 0, ["requests are not held back"]),
        (1, False, None, 0, []),
    ],
)
def test_the_number_of_slots(
    total: int | None, pinned: bool, wanted: int | None, background: int, said: list[str]
) -> None:
    found = caution_total(total, pinned=pinned, wanted=wanted, background=background)
    assert len(found) == len(said)
    assert all(words in caution for words, caution in zip(said, found, strict=True))


@pytest.mark.parametrize(
    ("has_ram", "pinned", "said"),
    [
        (True, True, "start it with --cache-ram 0"),
        (True, False, "those of deleted conversations too"),
        (False, False, "start it with --cache-ram MIB"),
        (False, True, None),
    ],
)
def test_memory_beside_the_slots(has_ram: bool, pinned: bool, said: str | None) -> None:
    found = caution_ram(has_ram, pinned=pinned)
    assert (said is None and found == []) or (said is not None and said in found[0])
