import asyncio
import threading

import pytest
from anyio import CapacityLimiter

from headlight.model.cancellation import check
from headlight.problems import Problem
from headlight.serving.concurrency import ClientDisconnected, Places, run_in_thread


def run_until_cancelled():
    while True:
        check()


def test_work_stops_when_its_client_leaves():
    async def scenario():
        threads, left, has_begun = CapacityLimiter(1), asyncio.Event(), threading.Event()

        def work():
            has_begun.set()
            run_until_cancelled()

        waiting = asyncio.ensure_future(run_in_thread(work, threads, left.wait))
        await asyncio.to_thread(has_begun.wait)
        left.set()
        with pytest.raises(ClientDisconnected):
            await waiting
        assert await run_in_thread(lambda: "the next", threads) == "the next"

    asyncio.run(scenario())


def test_work_whose_client_left_before_a_thread_was_free_is_not_begun():
    async def scenario():
        threads, left, gate, begun = CapacityLimiter(1), asyncio.Event(), threading.Event(), []
        first = asyncio.ensure_future(run_in_thread(gate.wait, threads))
        second = asyncio.ensure_future(run_in_thread(lambda: begun.append(2), threads, left.wait))
        await asyncio.sleep(0)
        left.set()
        with pytest.raises(ClientDisconnected):
            await second
        gate.set()
        await first
        await run_in_thread(lambda: begun.append(3), threads)
        assert begun == [3]

    asyncio.run(scenario())


def test_work_that_takes_too_long_is_stopped_with_its_own_reason():
    work = run_in_thread(run_until_cancelled, CapacityLimiter(1), seconds=0.01, too_slow="too big")
    with pytest.raises(Problem) as raised:
        asyncio.run(work)
    assert (raised.value.status_code, raised.value.kind) == (504, "too-slow")
    assert raised.value.detail == "too big"
    assert raised.value.__context__ is None, "it holds the frames of the work"


def test_one_more_than_all_places_is_rejected_until_one_is_free():
    places = Places(1, "too-many-readers", "texts are being read")
    with places.place():
        with pytest.raises(Problem) as raised, places.place():
            pass
        assert raised.value.kind == "too-many-readers"
        assert raised.value.members == {"limit": 1, "actual": 1}
    with places.place():
        assert places.n_open == 1
