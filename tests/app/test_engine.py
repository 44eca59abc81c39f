"""The queue and its thread: refuse at once, wait so long and no longer, survive anything."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from app.engine import ClientLeft, Engine
from app.problems import Problem


class PanicError(BaseException):
    """What a crash in a compiled library looks like."""


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Work can wait for it; it opens when the test is over, so that no thread hangs."""
    gate = threading.Event()
    yield gate
    gate.set()


@pytest.fixture
def engine(gate: threading.Event) -> Iterator[Engine]:
    engine = Engine(queue_length=1, queue_seconds=30, retry_after_seconds=3)
    yield engine
    gate.set()
    engine.close()


async def start(engine, work):
    """Begin work and give it the thread."""
    task = asyncio.ensure_future(engine.run(work))
    await asyncio.sleep(0.05)
    return task


def test_work_returns_its_result_and_runs_on_its_own_thread(engine):
    name = asyncio.run(engine.run(lambda: threading.current_thread().name))
    assert name.startswith("inference")


def test_an_exception_reaches_who_asked(engine):
    with pytest.raises(ZeroDivisionError):
        asyncio.run(engine.run(lambda: 1 / 0))


def test_a_crash_becomes_a_problem_and_the_thread_lives_on(engine):
    def crash():
        raise PanicError

    async def crash_then_ask():
        with pytest.raises(Problem) as caught:
            await engine.run(crash)
        return caught.value.kind, await engine.run(lambda: "alive")

    assert asyncio.run(crash_then_ask()) == ("internal-error", "alive")


def test_pieces_of_work_never_overlap(engine):
    running = []

    def work():
        running.append(1)
        assert len(running) == 1
        running.pop()
        return True

    async def two():
        return await asyncio.gather(engine.run(work), engine.run(work))

    assert asyncio.run(two()) == [True, True]


def test_a_full_queue_refuses_at_once_and_says_when_to_come_back(engine, gate):
    async def overfill():
        tasks = [await start(engine, gate.wait) for _ in range(2)]
        with pytest.raises(Problem) as caught:
            await asyncio.wait_for(engine.run(lambda: None), timeout=1)
        gate.set()
        await asyncio.gather(*tasks)
        return caught.value, await engine.run(lambda: "room again")

    refusal, later = asyncio.run(overfill())
    assert (refusal.status_code, refusal.kind) == (503, "queue-full")
    assert refusal.headers == {"Retry-After": "3"}
    assert refusal.members == {"limit": 1, "actual": 2}
    assert refusal.detail == "1 requests are waiting already; try again in 3 s"
    assert later == "room again"


def test_work_that_waited_too_long_is_refused_and_never_runs(engine, gate):
    engine.queue_seconds = 0.1
    ran = []

    async def wait_in_vain():
        first = await start(engine, gate.wait)
        with pytest.raises(Problem) as caught:
            await engine.run(lambda: ran.append(1))
        gate.set()
        await first
        await engine.run(lambda: None)
        return caught.value

    refusal = asyncio.run(wait_in_vain())
    assert (refusal.status_code, refusal.kind) == (503, "queue-timeout")
    assert refusal.detail.startswith("this request waited 0.1 s and was not reached")
    assert ran == []


def test_work_that_has_begun_may_take_longer_than_the_queue_allows(engine):
    engine.queue_seconds = 0.05
    assert asyncio.run(engine.run(lambda: threading.Event().wait(0.2) or "done")) == "done"


def test_work_of_a_client_that_left_is_dropped_and_its_place_is_free(engine, gate):
    ran = []

    async def leave():
        first = await start(engine, gate.wait)
        left = asyncio.Event()
        second = asyncio.ensure_future(engine.run(lambda: ran.append(1), client_left=left.wait))
        await asyncio.sleep(0.05)
        left.set()
        with pytest.raises(ClientLeft):
            await second
        third = await start(engine, lambda: "third")
        gate.set()
        await first
        return await third

    assert asyncio.run(leave()) == "third"
    assert ran == []


def test_cancelling_who_waits_drops_the_work(engine, gate):
    ran = []

    async def cancel():
        first = await start(engine, gate.wait)
        second = await start(engine, lambda: ran.append(1))
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        gate.set()
        await first
        await engine.run(lambda: None)

    asyncio.run(cancel())
    assert ran == []


def test_closing_ends_the_thread(engine):
    asyncio.run(engine.run(lambda: None))
    engine.close()
    assert not [
        thread
        for thread in threading.enumerate()
        if thread.name.startswith("inference_")
        and thread in engine._thread._threads
        and thread.is_alive()
    ]
