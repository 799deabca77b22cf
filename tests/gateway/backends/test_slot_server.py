"""Small questions to a server about its slots, and what its answers mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.backends.slot_server import ServerSlot, SlotServer, make_noise

MISSING = UpstreamFault(FaultKind.BAD_REQUEST, "This server does not support slots action")
GONE = UpstreamFault(FaultKind.UNAVAILABLE, "gone")


class Script:
    """Answers in their order, the last of them again and again."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, Mapping[str, Any] | None]] = []

    async def __call__(
        self, method: str, path: str, seconds: float, fields: Mapping[str, Any] | None = None
    ) -> Any:
        self.asked.append((f"{method} {path}", fields))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, UpstreamFault):
            raise answer
        return answer


async def test_the_servers_word_on_its_slots() -> None:
    listed = [{"id": 0, "is_processing": True, "id_task": 7}, {"is_processing": False}]
    assert await SlotServer("b", Script(listed)).read_slots() == [
        ServerSlot(0, is_busy=True, is_fresh=False),
        ServerSlot(1, is_busy=False, is_fresh=True),
    ]


@pytest.mark.parametrize("answer", [{}, None, [1], "slots"])
async def test_no_list_is_malformed(answer: Any) -> None:
    with pytest.raises(UpstreamFault) as told:
        await SlotServer("b", Script(answer)).read_slots()
    assert told.value.kind is FaultKind.MALFORMED


@pytest.mark.parametrize(
    ("fault", "what"),
    [
        (
            UpstreamFault(FaultKind.NOT_FOUND, "The backend b answered 404: File: not found"),
            "The backend b answered 404, asked for GET /slots: File: not found",
        ),
        (
            UpstreamFault(FaultKind.SERVER, "The backend b answered 501", status=501),
            "The backend b answered 501, asked for GET /slots",
        ),
        (GONE, "gone"),
    ],
)
async def test_what_a_server_lacks_is_named(fault: UpstreamFault, what: str) -> None:
    with pytest.raises(UpstreamFault) as told:
        await SlotServer("b", Script(fault)).read_slots()
    assert (told.value.kind, told.value.what) == (fault.kind, what)
    assert told.value.status == fault.status
    assert told.value.outline == what.partition(": ")[0]


async def test_a_slot_is_erased_or_else_overwritten_and_it_is_asked_once() -> None:
    able = Script({})
    await SlotServer("b", able).overwrite(1)
    assert [path for path, _ in able.asked] == ["POST /slots/1?action=erase"]
    unable = Script(MISSING, {})
    server = SlotServer("b", unable)
    await server.overwrite(1)
    await server.overwrite(0)
    over = "POST /v1/chat/completions"
    assert [path for path, _ in unable.asked] == ["POST /slots/1?action=erase", over, over]
    fields = unable.asked[1][1]
    assert fields is not None
    assert (fields["id_slot"], fields["cache_prompt"], fields["max_tokens"]) == (1, False, 1)


async def test_a_server_that_is_gone_has_erased_nothing() -> None:
    with pytest.raises(UpstreamFault):
        await SlotServer("b", Script(GONE)).overwrite(0)


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ({"timings": {"prompt_n": 1}}, True),
        ({"timings": {"prompt_n": 8}}, True),
        ({"timings": {"prompt_n": 9}}, False),  # more than _TOLD_APART was read anew
        ({"timings": {}}, None),
        ({"timings": 7}, None),
        ([], None),
        (MISSING, None),
    ],
)
async def test_whether_what_was_overwritten_comes_back(answer: Any, found: bool | None) -> None:
    assert await SlotServer("b", Script(answer)).remembers(0) is found


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ({"data": [{"meta": {"n_ctx": 8_192, "n_ctx_train": 8_192}}]}, True),
        ({"data": [{"meta": {"n_ctx": 2_048, "n_ctx_train": 8_192}}]}, False),
        ({"data": []}, False),
        ({"data": None}, False),
        (GONE, False),
    ],
)
async def test_slots_that_share_one_cache(answer: Any, found: bool) -> None:
    assert await SlotServer("b", Script(answer)).is_unified() is found


def test_noise_is_like_nothing() -> None:
    one, other = make_noise(), make_noise()
    assert one != other
    assert len(one.split()) == 24
