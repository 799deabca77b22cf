"""A place: what an index tells of a message without its row."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.recall.places import DEEPEST, PK_AT, Place, ends_asking, pack_place, read_place


@given(st.integers(1, 1 << 36), st.integers(1, DEEPEST), st.text(max_size=200), st.booleans())
def test_what_is_packed_is_read_again(pk: int, depth: int, text: str, by_user: bool) -> None:
    place = pack_place(pk, depth, text, by_user)
    size = len(text).bit_length()
    assert read_place(place) == Place(pk, depth, size, by_user, ends_asking(text))
    assert place >> PK_AT == pk
    assert place < 1 << 63, "a rowid of SQLite"


def test_the_longest_sizes_share_a_class() -> None:
    assert read_place(pack_place(1, 1, "x" * 40_000, False)).size == 15


@pytest.mark.parametrize("depth", [0, DEEPEST + 1])
def test_a_depth_beyond_an_index_is_refused(depth: int) -> None:
    with pytest.raises(ValueError, match="1,048,575"):
        pack_place(1, depth, "x", True)


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("Where is it?", True),
        ("“どこ？」 ", True),
        ("Look! Isn't it nice? [image]", True),
        ("¿Dónde está?", True),
        ("Where? There.", False),
        ("", False),
        ("[what?]", False),
    ],
)
def test_what_ends_in_a_question(text: str, asks: bool) -> None:
    assert ends_asking(text) is asks
