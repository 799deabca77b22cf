"""Which work a line or a span belongs to."""

from __future__ import annotations

import asyncio

from gateway.trail import Trail, following, learn_conversation, trail


def test_outside_of_any_work_there_is_no_trail() -> None:
    assert trail() is None
    learn_conversation("conv_1")
    assert trail() is None


async def test_what_a_task_of_its_own_learns_is_seen_by_who_began_it() -> None:
    async def learn() -> None:
        learn_conversation("conv_1")

    with following(Trail(request="req_1")) as begun:
        await asyncio.create_task(learn())
    assert begun.ids() == {"request": "req_1", "conversation": "conv_1"}
    assert trail() is None


async def test_two_requests_at_once_keep_apart() -> None:
    async def serve(number: int) -> dict[str, str]:
        with following(Trail(request=f"req_{number}")):
            await asyncio.sleep(0)
            learn_conversation(f"conv_{number}")
            await asyncio.sleep(0)
            here = trail()
            assert here is not None
            return here.ids()

    assert await asyncio.gather(serve(1), serve(2)) == [
        {"request": "req_1", "conversation": "conv_1"},
        {"request": "req_2", "conversation": "conv_2"},
    ]
