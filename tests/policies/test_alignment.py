"""Where histories stand that are not told word for word: tables of single habits, and the law that
whatever a client does over forty turns the transcript is what its person and the model said."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.alignment import Alignment, Around, Insertion, Lore, Piece, Spoken, Window, align
from policies.likeness import Peeled
from tests.policies.told import FILLER, Client, Note, Said, Transcript, reply, spoken, user

U1, U2, U3, U4 = (user(f"Question {at}: what about number {at}?") for at in range(1, 5))
A1, A2, A3 = (reply(f"Number {at} is a fine one, as I said.") for at in range(1, 4))
NOTE = user("[Author's note: keep it short.]")
NEW = user("And now something new.")
TALE = (U1, A1, U2, A2, U3, A3)


def told(*said: Said) -> list[Spoken]:
    return [spoken(each) for each in said]


def stored(*said: Said) -> list[Spoken]:
    return [spoken(each, produced=each[0] == "assistant") for each in said]


def aligned(
    sent: list[Spoken],
    kept: list[Spoken],
    lore: Lore | None = None,
    **window: int | bool,
) -> Alignment:
    found = align(sent, kept, lore or Lore(), Window(**window))  # type: ignore[arg-type]
    assert found is not None
    return found


def path(found: Alignment, sent: list[Spoken], kept: list[Spoken]) -> list[str]:
    """The texts of the path that the client tells of."""
    texts = [message.text for message in kept[: found.base]]
    for piece in found.pieces:
        if piece.kept is not None:
            texts.append(kept[piece.kept].text)
        else:
            assert piece.sent is not None
            texts.append(piece.text or sent[piece.sent].text)
    return texts


def texts(*said: Said) -> list[str]:
    return [text for _, text in said]


@pytest.mark.parametrize(
    ("sent", "result"),
    [
        # trimmed
        ([A3, NEW], [*TALE, NEW]),
        ([U2, A2, U3, A3, NEW], [*TALE, NEW]),
        ([U3, A3], TALE),
        # a reply is asked for again
        ([U2, A2, U3], TALE[:5]),
        ([*TALE[:5]], TALE[:5]),
        # a note between messages that follow each other
        ([U1, A1, U2, A2, NOTE, U3, A3, NEW], [*TALE, NEW]),
        ([U1, NOTE, A1, U2, A2, U3, A3, NEW], [*TALE, NEW]),
        # edits
        ([U1, A1, user("Question 2: what about Lima?"), A2, U3, A3, NEW],
         [U1, A1, user("Question 2: what about Lima?"), A2, U3, A3, NEW]),
        ([U1, A1, U2, reply("No."), U3, A3, NEW], [U1, A1, U2, reply("No."), U3, A3, NEW]),
        ([user("Question 1: what about 7?"), A1, U2, A2, U3, A3, NEW],
         [user("Question 1: what about 7?"), *TALE[1:], NEW]),
        ([U1, A1, U4, NEW], [U1, A1, U4, NEW]),
        # deletions
        ([U1, A1, U3, A3, NEW], [U1, A1, U3, A3, NEW]),
        # joined turns and names
        ([reply(f"Bob: {A3[1]}"), NEW], [*TALE, NEW]),
        ([user("Ann: hm"), reply(f"Bob: {A3[1]}"), NEW], None),
        # a filler and a summary in place of the head
        ([FILLER, U3, A3, NEW], [*TALE, NEW]),
        ([user("What was said before: three questions, and more."), A2, U3, A3, NEW],
         [*TALE, NEW]),
        # nothing of ours
        ([U4, reply("Who are you?"), NEW], None),
        ([U4, NEW], None),
    ],
)  # fmt: skip
def test_what_a_history_tells(sent: list[Said], result: list[Said] | None) -> None:
    found = align(told(*sent), stored(*TALE), Lore(), Window())
    if result is None:
        assert found is None
        return
    assert found is not None
    assert path(found, told(*sent), stored(*TALE)) == texts(*result)


def test_places_are_told() -> None:
    sent = told(A1, NOTE, U2, A2, U3, A3, NEW)
    found = aligned(sent, stored(*TALE))
    assert found == Alignment(
        base=6,
        pieces=(Piece(None, 6),),
        # the note stands after the second message of the path
        depths=(2, 2, 3, 4, 5, 6, 7),
        insertions=(Insertion(1, 2, "note"),),
        arounds=(),
        pairs=5,
        replies=3,
    )


def test_a_known_note_is_never_a_message() -> None:
    lore = Lore((NOTE[1],))
    for sent in ([U3, A3, NOTE, NEW], [U3, A3, NEW, NOTE]):
        found = aligned(told(*sent), stored(*TALE), lore)
        assert path(found, told(*sent), stored(*TALE)) == texts(*TALE, NEW)
        assert found.insertions == (Insertion(sent.index(NOTE), 6 + sent.index(NOTE) - 2, "note"),)


def test_a_note_much_like_a_known_one_is_one() -> None:
    lore = Lore(("[Lore: the tower has 3 floors.]",))
    sent = told(U3, A3, user("[Lore: the tower has 4 floors.]"), NEW)
    assert path(aligned(sent, stored(*TALE), lore), sent, stored(*TALE)) == texts(*TALE, NEW)


def test_a_person_may_say_a_notes_very_words() -> None:
    sent = told(U3, A3, NOTE)
    found = aligned(sent, stored(*TALE), Lore((NOTE[1],)))
    assert path(found, sent, stored(*TALE)) == texts(*TALE, NOTE)


def test_behind_a_question_a_known_note_alone_is_the_clients() -> None:
    found = aligned(told(NOTE), stored(A3), Lore((NOTE[1],)), rooted=True, answered=False)
    assert (found.base, found.pieces) == (0, ())
    assert found.insertions == (Insertion(0, 0, "note"),)


def test_what_a_client_takes_back_was_its_own() -> None:
    """First it was stored as a message; now it stands elsewhere: the path is told anew without."""
    kept = stored(U1, A1, NOTE, U2, A2)
    sent = told(U1, A1, U2, A2, NOTE, NEW)
    found = aligned(sent, kept)
    assert (found.base, found.pieces[:2]) == (2, (Piece(3, None), Piece(4, None)))
    assert path(found, sent, kept) == texts(U1, A1, U2, A2, NEW)
    assert found.insertions == (Insertion(4, 4, "note"),)


def test_a_note_at_the_root_that_moved() -> None:
    kept = stored(NOTE, U1, A1, U2, A2)
    sent = told(U1, NOTE, A1, U2, A2, NEW)
    assert path(aligned(sent, kept), sent, kept) == texts(U1, A1, U2, A2, NEW)
    other = user("[Lore: the tower has 3 floors, they say.]")
    changed = user("[Lore: the tower has 4 floors, they say.]")
    kept, sent = stored(other, U1, A1, U2, A2), told(U1, changed, A1, U2, A2, NEW)
    assert path(aligned(sent, kept), sent, kept) == texts(U1, A1, U2, A2, NEW)


def test_a_note_that_vanished_long_ago_stays() -> None:
    """Nothing is told anew for it: seventy messages would be."""
    talk = [said for at in range(40) for said in (user(f"Say {at}."), reply(f"It is {at}, sir."))]
    kept, sent = stored(U1, A1, NOTE, *talk), told(U1, A1, *talk, NEW)
    found = aligned(sent, kept)
    assert found.base == len(kept)


def test_text_around_the_newest_message_is_told_apart_once_it_is_known() -> None:
    wrapped = user(f"Papers:\nOne.\n\nQuestion:\n{U2[1]}")
    again = user(f"Papers:\nTwo.\nThree.\n\nQuestion:\n{U3[1]}")
    kept, sent = stored(U1, A1, wrapped, A2), told(U1, A1, U2, A2, again)
    found = aligned(sent, kept)
    assert path(found, sent, kept) == texts(U1, A1, U2, A2, U3)
    assert found.arounds == (Around(4, 5, "Papers:\nTwo.\nThree.\n\nQuestion:\n", ""),)


def test_notes_joined_with_messages_stand_around_them() -> None:
    lore = Lore((NOTE[1],), (Peeled("", "", f"\n\n{NOTE[1]}"),))
    sent = told(user(f"{U2[1]}\n\n{NOTE[1]}"), A2, U3, A3, NEW)
    found = aligned(sent, stored(*TALE), lore)
    assert path(found, sent, stored(*TALE)) == texts(*TALE, NEW)
    assert found.arounds == (Around(0, 3, "", f"\n\n{NOTE[1]}"),)
    # a note that changes: the client is known to join notes with messages
    sent = told(user(f"{U2[1]}\n\n[Another note.]"), A2, U3, A3, NEW)
    found = aligned(sent, stored(*TALE), lore)
    assert found.arounds == (Around(0, 3, "", "\n\n[Another note.]"),)


def test_a_reply_is_asked_for_again_without_what_stood_around_the_question() -> None:
    wrapped = user(f"Papers:\nOne.\n\nQuestion:\n{U2[1]}")
    kept, sent = stored(U1, A1, wrapped, A2), told(U1, A1, U2)
    found = aligned(sent, kept)
    assert path(found, sent, kept) == texts(U1, A1, U2)


def test_what_stands_around_a_known_note_and_a_message_both() -> None:
    lore = Lore((NOTE[1],), (Peeled("Papers:\nOne.\n\nQuestion:\n", "", ""),))
    text = f"{NOTE[1]}\n\nPapers:\nTwo.\n\nQuestion:\n{NEW[1]}"
    found = aligned(told(A3, user(text)), stored(*TALE), lore)
    assert found.pieces == (Piece(None, 1, NEW[1]),)
    assert found.arounds == (Around(1, 7, text[: -len(NEW[1])], ""),)
    # a manner that does not fit leaves the message as it is
    assert aligned(told(A3, NEW), stored(*TALE), lore).pieces == (Piece(None, 1),)
    # a tool's result has nothing around it
    result = Spoken("tool", text, "tool", bound=True)
    assert aligned([*told(A3), result], stored(*TALE), lore).pieces == (Piece(None, 1),)


@pytest.mark.parametrize("count", [2, 9])
def test_turns_that_are_not_all_of_a_joined_message(count: int) -> None:
    """Something stands before them that is not stored: it is an edit."""
    said = [user(f"Part {at} of what I have to say.") for at in range(count)]
    kept = stored(U1, A1, *said, A2)
    joined = user("\n\n".join(["Something else.", *texts(*said)]))
    sent = told(U1, A1, joined, A2, NEW)
    assert path(aligned(sent, kept), sent, kept) == texts(U1, A1, joined, A2, NEW)


def test_a_question_that_was_taken_for_a_note_is_a_question_after_all() -> None:
    """Nobody asked for the second reply, as it was stored."""
    kept = stored(U1, A1, A2)
    sent = told(U1, A1, U2, A2, NEW)
    assert path(aligned(sent, kept), sent, kept) == texts(U1, A1, U2, A2, NEW)
    with_note = told(U1, A1, NOTE, U2, A2, NEW)
    found = aligned(with_note, kept, Lore((NOTE[1],)))
    assert path(found, with_note, kept) == texts(U1, A1, U2, A2, NEW)


def test_an_edit_beside_a_note_of_another_role() -> None:
    edited = user("Question 2: what about Lima?")
    sent = told(U1, A1, edited, reply("[A note of the client's.]"), A2, U3, A3, NEW)
    found = aligned(sent, stored(*TALE))
    assert path(found, sent, stored(*TALE)) == texts(U1, A1, edited, A2, U3, A3, NEW)
    assert found.insertions == (Insertion(3, 3, "note"),)


def test_a_reply_is_asked_for_again_with_a_note_beside_the_question() -> None:
    sent = told(U1, A1, NOTE, U2)
    found = aligned(sent, stored(*TALE[:4]))
    assert (path(found, sent, stored(*TALE)), found.base) == (texts(U1, A1, U2), 3)
    assert found.insertions == (Insertion(2, 2, "note"),)


def test_an_edit_with_a_note_around_it() -> None:
    edited = user(f"Question 2: what about Lima?\n\n{NOTE[1]}")
    sent = told(U1, A1, edited, A2, NEW)
    found = aligned(sent, stored(U1, A1, U2, A2), Lore((NOTE[1],)))
    assert found.pieces[0] == Piece(None, 2, "Question 2: what about Lima?")
    assert found.arounds == (Around(2, 3, "", f"\n\n{NOTE[1]}"),)


def test_joined_turns_with_notes_at_both_ends() -> None:
    kept = stored(U1, U2, A2, U3, A3)
    lore = Lore((NOTE[1], "[The end.]"))
    sent = told(user(f"{NOTE[1]}\n\n{U1[1]}\n\n{U2[1]}\n[The end.]"), A2, U3, A3, NEW)
    found = aligned(sent, kept, lore)
    assert path(found, sent, kept) == texts(U1, U2, A2, U3, A3, NEW)
    assert found.arounds == (
        Around(0, 1, f"{NOTE[1]}\n\n", ""),
        Around(0, 2, "", "\n[The end.]"),
    )


def test_a_reply_that_grew_in_place_is_its_two_parts() -> None:
    kept = stored(U1, reply("Once there was"), reply("a king."))
    sent = told(U1, reply("Once there was a king."), NEW)
    assert path(aligned(sent, kept), sent, kept) == texts(
        U1, reply("Once there was"), reply("a king."), NEW
    )


def bound(said: Said) -> Spoken:
    one = spoken(said)
    return Spoken(one.role, one.text, one.content, bound=True)


def test_calls_and_results_that_a_client_leaves_out_stay() -> None:
    calls = [bound(reply("")), bound(("tool", "sunny"))]
    kept = [*stored(U1), *calls, *stored(A1)]
    sent = told(U1, A1, NEW)
    found = aligned(sent, kept)
    assert found.base == 4
    rooted = aligned(told(A1, NEW), [*calls, *stored(A1)], rooted=True)
    assert rooted.base == 3


def test_notes_cross_a_message() -> None:
    """At the root both were stored before the first question; now they stand behind it."""
    other = user("[Lore: there is a tower on the hill.]")
    kept = stored(NOTE, other, U1, A1)
    sent = told(U1, NOTE, other, A1, U2)
    found = aligned(sent, kept)
    assert U1[1] in path(found, sent, kept)


# -- what was known word for word before ----------------------------------------------------------


def test_behind_a_known_history_all_is_new_but_for_notes() -> None:
    found = aligned(told(NEW, NOTE), stored(U3), Lore((NOTE[1],)), rooted=True)
    assert found.pieces == (Piece(None, 0),)
    assert found.insertions == (Insertion(1, 1, "note"),)
    assert align(told(NEW, reply("x")), stored(U3), Lore(), Window(rooted=True)) is None


@pytest.mark.parametrize(
    ("sent", "kept", "window", "result"),
    [
        # a few messages were deleted behind what is known
        ([A2, NEW], [U2, A2], {"rooted": True}, [A2, NEW]),
        # many are missing, or all but the opening: that is a trimmed history
        ([A2, NEW], [U2, A2], {"rooted": True, "below": 9}, [U2, A2, NEW]),
        ([A2, NEW], [U2, A2], {"rooted": True, "pinned": True}, [U2, A2, NEW]),
        # a note that the opening was stored with has moved
        ([A2, NOTE, NEW], [NOTE, A2], {"rooted": True, "pinned": True}, [A2, NEW]),
        # an edit behind what is known
        ([user("Two?"), A2, NEW], [U2, A2], {"rooted": True}, [user("Two?"), A2, NEW]),
        # a summary in place of the middle
        ([user("A summary."), U3, A3, NEW], [U3, A3], {"rooted": True, "below": 9}, [U3, A3, NEW]),
        # what differs beyond what was compared: an edit is told as such, a manner is not
        ([*TALE[:5], U3, A3, NEW], [U3, A3], {"rooted": True, "below": 9}, None),
        ([*TALE[:5], U3, reply(f"Bob: {A3[1]}"), NEW], [U3, A3], {"rooted": True, "below": 9},
         [U3, A3, NEW]),
        ([U1, A1, U4, U3, A3, NEW], [user("x"), U3, A3], {"rooted": True}, None),
    ],
)  # fmt: skip
def test_behind_a_known_history(
    sent: list[Said], kept: list[Said], window: dict[str, bool], result: list[Said] | None
) -> None:
    found = align(told(*sent), stored(*kept), Lore(), Window(**window))  # type: ignore[arg-type]
    if result is None:
        assert found is None
    else:
        assert found is not None
        assert path(found, told(*sent), stored(*kept)) == texts(*result)


def test_a_history_from_before_our_time_is_told_first() -> None:
    kept = stored(U3, A3)
    sent = told(U1, A1, U2, A2, U3, A3, NEW)
    assert path(aligned(sent, kept), sent, kept) == texts(*TALE, NEW)
    assert align(sent, kept, Lore(), Window(cut=5)) is None


def test_a_long_head_in_another_manner_is_not_told_again() -> None:
    before = [said for at in range(4) for said in (user(f"Say {at}."), reply(f"It is {at}."))]
    retold = [(role, f"{text} Or so it was remembered.") for role, text in before[:6]]
    kept, sent = stored(*before, *TALE), told(*retold, *TALE, NEW)
    found = aligned(sent, kept)
    assert path(found, sent, kept) == texts(*before, *TALE, NEW)
    assert found.depths[:6] == (-1,) * 6
    few = [*before, U3, A3]
    assert align(told(*retold, U3, A3, NEW), stored(*few), Lore(), Window()) is None


def test_repeated_words_are_placed_at_the_end() -> None:
    yes, ok = user("yes"), reply("ok")
    kept = stored(yes, ok, yes, ok, yes, ok)
    sent = told(ok, yes, ok, yes)
    assert path(aligned(sent, kept), sent, kept) == texts(*([yes, ok] * 3), yes)


def test_a_greeting_is_no_anchor() -> None:
    """Only a reply that the gateway gave is."""
    greeting = reply("Welcome, traveller!")
    kept = [*told(greeting), *stored(U1, A1)]
    assert align(told(greeting, NEW), kept, Lore(), Window()) is None


# -- the law ---------------------------------------------------------------------------------------

WORDS = "the storm came over hills and we walked home with wet coats then slept".split()
LINES = st.lists(st.sampled_from(WORDS), min_size=3, max_size=12).map(" ".join)


@st.composite
def clients(draw: st.DrawFn) -> Client:
    """A client with any of its habits together. Its notes are told from what people say."""
    depths = draw(st.lists(st.sampled_from([0, 1, 2, 4, 6]), max_size=2, unique=True))
    squashes = draw(st.booleans()) and len(depths) < 2
    changes = draw(st.booleans()) and len(depths) == 1 and not squashes
    tail = " in turn {turn}]" if changes else "]"
    return Client(
        notes=[Note(depth, "user", f"[Note {depth}: keep it short{tail}") for depth in depths],
        budget=draw(st.sampled_from([None, 12, 20])),
        filler=draw(st.sampled_from([None, FILLER])),
        names=draw(st.booleans()),
        squashes=squashes,
        rewrites=draw(st.booleans()),
        retrieval=draw(st.booleans()) and not changes and not squashes,
    )


@settings(max_examples=25, deadline=None)
@given(client=clients(), lines=st.lists(LINES, min_size=40, max_size=40), data=st.data())
def test_nothing_is_lost_and_nothing_doubled(
    client: Client, lines: list[str], data: st.DataObject
) -> None:
    """Forty turns with swipes. Every message has a number of its own, as people's seldom repeat."""
    swipes = data.draw(st.sets(st.integers(4, 39), max_size=6))
    transcript, truth = Transcript(), []
    for turn, line in enumerate(lines):
        if turn in swipes:
            client.history.pop()
            truth.pop()
        else:
            client.history.append(user(f"{turn}: {line}?"))
            truth.append(user(f"Ann: {turn}: {line}?" if client.names else f"{turn}: {line}?"))
        transcript.take(client.tell(turn))
        said = reply(f'<think>hm</think>He says  "{line}", {turn}.\r\nThen  more. ')
        transcript.answer(said)
        client.history.append(said)
        truth.append(said)
    # what a client added to its newest message may be seen to be its own only in the next turn
    assert transcript.path[:-3] == truth[:-2] or transcript.path[:-2] == truth[:-2]
    assert transcript.path[-1] == truth[-1]
    assert truth[-2][1] in " ".join(text for _, text in transcript.path[-3:-1])
