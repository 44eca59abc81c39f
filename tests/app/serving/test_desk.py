"""A desk: computations of one kind hold up no other kind, and end in time."""

import asyncio
import threading

import pytest

from headlight.model.cancellation import check
from headlight.problems import Problem
from headlight.serving.concurrency import Desk


async def never():
    await asyncio.Event().wait()


def endless():
    while True:
        check()


def desk(limit=2, seconds=60.0):
    return Desk(limit, "too-many-things", "things are made", seconds, "it took too long")


def test_what_takes_too_long_is_stopped():
    with pytest.raises(Problem) as caught:
        asyncio.run(desk(seconds=0.05).run(endless, never))
    assert (caught.value.status_code, caught.value.detail) == (504, "it took too long")


def test_one_more_than_there_are_places_is_rejected_and_another_desk_answers():
    async def ask():
        busy, may_end = desk(), threading.Event()
        held = [asyncio.ensure_future(busy.run(may_end.wait, never)) for _ in range(2)]
        await asyncio.sleep(0)
        try:
            with pytest.raises(Problem) as caught:
                await busy.run(endless, never)
            return caught.value.status_code, await desk().run(lambda: "an answer", never)
        finally:
            may_end.set()
            await asyncio.gather(*held)

    assert asyncio.run(ask()) == (503, "an answer")


def test_what_nobody_waits_for_is_cancelled():
    async def ask():
        of_one, left = desk(), asyncio.Event()
        running = asyncio.ensure_future(of_one.run(endless, left.wait))
        await asyncio.sleep(0.05)
        left.set()
        with pytest.raises(Problem) as caught:
            await running
        return caught.value.status_code, of_one.n_open, await of_one.run(lambda: 1, never)

    assert asyncio.run(ask()) == (499, 0, 1)
