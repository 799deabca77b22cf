"""What the scripted backend tells beside its accounts: mostly borne out, at times not."""

from dataclasses import replace

import pytest

from gateway.backends.accounts import read_task
from gateway.backends.scripted_frames import write_lists
from gateway.prompts.summary import ask_chapter
from gateway.wire.json_text import loads
from policies.judge.beside import read_beside
from policies.ledger.grounding import ground
from policies.ledger.values import MOST_CHARS
from policies.values import Line
from tests.gateway.backends.test_accounts import SPANS, make_span

HONEST, CROOKED = bytes(7) + b"\x01" + bytes(8), bytes(16)


def cast(language: str) -> list[Line]:
    """The span with its first speaker as the user."""
    lines = make_span(language)
    user = lines[0].speaker
    return [
        replace(line, role="user" if line.speaker == user else "assistant", at=at)
        for at, line in enumerate(lines)
    ]


def told(lines: list[Line], language: str, digest: bytes, threads: list[tuple[int, str]]) -> dict:
    prompt = ask_chapter(lines, asked_chars=300, language=language, form="grammar", threads=threads)
    return write_lists(read_task(loads(prompt.messages[0])["content"]), digest)


@pytest.mark.parametrize("language", SPANS)
def test_honest_entries_are_borne_out(language: str) -> None:
    lines = cast(language)
    threads = [(3, lines[0].text), (4, "Zzyzx Qwerty?")]
    lists = told(lines, language, HONEST, threads)
    beside = read_beside(lists)
    found = ground(beside, lines, {3, 4})
    assert len(found.facts) == len(beside.facts) > 0
    assert len(found.claims) == len(beside.claims) > 0
    assert len(found.quotes) == len(beside.quotes) == 1
    assert found.resolved == beside.resolved == (3,)
    assert all(lines[fact.line].role == "user" for fact in found.facts)
    assert told(lines, language, HONEST, threads) == lists


def test_the_last_question_is_an_open_thread_and_a_thought_the_truth() -> None:
    lines = [
        Line("Ada", "Will Clara come to the aquarium on Saturday?", role="user"),
        Line("Mira", "I never took the silver key from Whitby.", role="assistant", at=1),
        Line("Mira", "The silver key is in my Somerset bag.", "thought", "thinks", "assistant", 1),
        Line("Ada", "Where is the signed contract now?", role="user", at=2),
    ]
    lists = told(lines, "en", HONEST, [])
    assert lists["opened"] == ["Where is the signed contract now?"]
    assert [claim["truth"] for claim in lists["claims"]] == [
        "The silver key is in my Somerset bag."
    ]
    assert [claim.truth for claim in ground(read_beside(lists), lines).claims] == [
        "The silver key is in my Somerset bag."
    ]


@pytest.mark.parametrize("language", SPANS)
def test_crooked_entries_are_dropped_and_cost_no_honest_one(language: str) -> None:
    lines = cast(language)
    honest, crooked = (told(lines, language, digest, [(1, "?")]) for digest in (HONEST, CROOKED))
    assert any(len(fact["text"]) > MOST_CHARS for fact in crooked["facts"])
    assert sum(map(len, crooked.values())) >= sum(map(len, honest.values())) + 4
    assert ground(read_beside(crooked), lines, {1}) == ground(read_beside(honest), lines, {1})


def test_a_span_in_which_nobody_speaks_has_nothing_beside_it() -> None:
    task = read_task("[begin record 1]\nall in one line without a name\n[end record 1]")
    assert not any(write_lists(task, HONEST).values())
