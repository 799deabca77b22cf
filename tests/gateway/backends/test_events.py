"""Server-sent events in any cut."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backends import events
from gateway.backends.events import DATA, ERROR, STRAY, Event, EventParser, EventTooLarge


def parse(*pieces: bytes) -> list[Event]:
    parser = EventParser()
    return [event for piece in pieces for event in parser.feed(piece)] + parser.close()


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (b"data: {}\n\n", [(DATA, b"{}")]),
        (b"data:{}\n\n", [(DATA, b"{}")]),
        (b"data: {}\r\n\r\ndata: 1\r\n\r\n", [(DATA, b"{}"), (DATA, b"1")]),
        (b"data: {}\r\rdata: 1\r\r", [(DATA, b"{}"), (DATA, b"1")]),
        (b"data: {\ndata: }\n\n", [(DATA, b"{\n}")]),
        (b": ping\n\n:\n\n\n\ndata: 1\n\n", [(DATA, b"1")]),
        (b": ping\ndata: 1\n\n", [(DATA, b"1")]),
        (b"event: message\nid: 7\nretry: 5\ndata: 1\n\n", [(DATA, b"1")]),
        (b"event: error\ndata: 1\n\n", [(ERROR, b"1")]),
        (b'error: {"code":400}\n\n', [(ERROR, b'{"code":400}')]),
        (b"data: 1", [(DATA, b"1")]),
        (b"\xef\xbb\xbfdata: 1\n\n", [(DATA, b"1")]),
        (b'{"error":{"code":400}}', [(STRAY, b'{"error":{"code":400}}')]),
        (b"<html>\n<p>502</p>", [(STRAY, b"<html>"), (STRAY, b"<p>502</p>")]),
        (b"data\n\n", [(STRAY, b"data")]),
        (b"", []),
    ],
)
def test_the_format(raw: bytes, found: list[Event]) -> None:
    assert parse(raw) == found


STREAM = (
    'data: {"a":"你好🎉"}\r\n\r\n: ping\n\ndata:{"b":\ndata: 1}\n\nevent: error\ndata: x\r\n\r\n'
    "data: [DONE]\n\n"
).encode()


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_any_cut_gives_the_same_events(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[a:b] for a, b in itertools.pairwise(edges)]
    assert parse(*pieces) == parse(STREAM)


def test_every_single_byte_alone() -> None:
    """F05."""
    assert parse(*(bytes([byte]) for byte in STREAM)) == parse(STREAM)


def test_an_endless_event_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MAX_EVENT_BYTES", 10)
    with pytest.raises(EventTooLarge):
        parse(b"data: 12345678")


def test_a_long_event_in_small_pieces_is_put_together_once() -> None:
    """Each byte is copied a few times, not once for every piece behind it: 8 MB in pieces of 16
    bytes were 2 TB of copies."""
    piece = b"0123456789abcdef"
    parser = EventParser()
    assert parser.feed(b"data: ") == []
    assert all(parser.feed(piece) == [] for _ in range(524_288))
    assert parser.feed(b"\n") == []
    assert parser.feed(b"\ndata: 1\n") == [(DATA, piece * 524_288)]
    assert parser.close() == [(DATA, b"1")]
