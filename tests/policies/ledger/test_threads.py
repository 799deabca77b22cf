"""Which open threads a summarizer is told of."""

from hypothesis import given
from hypothesis import strategies as st

from policies.ledger.threads import choose_threads

THREADS = [(1, "Who took the silver key?"), (2, "Will Ann call the doctor?"), (5, "鍵は誰のもの？")]


def test_all_of_them_where_they_fit() -> None:
    # (24 + 6) + (25 + 6) + (7 + 6) = 74
    assert choose_threads(THREADS, "", 74) == tuple(THREADS)
    assert len(choose_threads(THREADS, "", 73)) == 2


def test_else_those_that_the_span_speaks_of_then_the_newest() -> None:
    near = "Mira: The silver key was never lost, I took it.\n" * 3
    assert choose_threads(THREADS, near, 40) == ((1, THREADS[0][1]),)
    assert choose_threads(THREADS, near, 45) == (THREADS[0], THREADS[2])
    assert choose_threads(THREADS, "", 40) == (THREADS[2],)
    assert choose_threads([(n, "a" * 10) for n in range(1, 9)], "", 48) == tuple(
        (n, "a" * 10) for n in (6, 7, 8)
    )


@given(
    st.lists(
        st.tuples(st.integers(1, 99), st.text(max_size=30)), unique_by=lambda t: t[0], max_size=9
    ),
    st.text(max_size=99),
    st.integers(0, 200),
)
def test_what_is_chosen_fits_and_keeps_its_order(
    threads: list[tuple[int, str]], near: str, most: int
) -> None:
    chosen = choose_threads(threads, near, most)
    assert sum(len(text) + 6 for _, text in chosen) <= most
    assert list(chosen) == [thread for thread in threads if thread in chosen]
