"""The queue and its thread: refuse at once, wait so long and no longer, survive anything."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from headlight.errors import Problem
from headlight.inference.engine import ClientLeft, Engine
from headlight.model.cancellation import check


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


def test_a_full_queue_does_not_refuse_the_rest_of_what_has_begun(engine, gate):
    async def overfill():
        tasks = [await start(engine, gate.wait) for _ in range(2)]
        rest = asyncio.ensure_future(engine.run(lambda: "the rest", is_begun=True))
        await asyncio.sleep(0.05)
        with pytest.raises(Problem):
            await engine.run(lambda: "anew")
        gate.set()
        await asyncio.gather(*tasks)
        return await rest

    assert asyncio.run(overfill()) == "the rest"


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


def test_work_that_takes_too_long_is_refused_at_once_and_stops(engine, gate):
    engine.work_seconds = 0.1
    has_stopped = threading.Event()

    def slow():
        try:
            while not gate.is_set():
                check()
        finally:
            has_stopped.set()

    with pytest.raises(Problem) as caught:
        asyncio.run(asyncio.wait_for(engine.run(slow), timeout=20))
    assert (caught.value.status_code, caught.value.kind) == (504, "too-slow")
    assert caught.value.detail == (
        "this took longer than the 0.1 s that are allowed and was stopped; "
        "ask for fewer tokens, sites, layers or analyses"
    )
    assert has_stopped.wait(20)
    assert asyncio.run(engine.run(lambda: "free again")) == "free again"


@pytest.mark.parametrize("way", ["leaves", "is cancelled"])
def test_a_pass_stops_between_two_steps_when_its_client(engine, gate, way):
    has_begun, has_stopped = threading.Event(), threading.Event()

    def slow():
        has_begun.set()
        try:
            while not gate.is_set():
                check()
        finally:
            has_stopped.set()

    async def leave():
        left = asyncio.Event()
        waiting = asyncio.ensure_future(engine.run(slow, client_left=left.wait))
        await asyncio.to_thread(has_begun.wait, 20)
        left.set() if way == "leaves" else waiting.cancel()
        with pytest.raises((ClientLeft, asyncio.CancelledError)):
            await waiting
        return await asyncio.to_thread(has_stopped.wait, 20)

    assert asyncio.run(leave())
    assert not gate.is_set()


def solve_pairs(seen):
    def solve(orders):
        seen.append(orders)
        return [10 * order for order in orders]

    return solve


def test_orders_of_one_kind_that_wait_together_are_solved_together_first_come_first(engine, gate):
    engine.queue_length, seen = 10, []

    async def ask():
        first = await start(engine, gate.wait)
        solve = solve_pairs(seen)
        kinds = ["a", "b", "a", "a", "b"]
        orders = [
            asyncio.ensure_future(engine.run_together(kind, number, solve))
            for number, kind in enumerate(kinds)
        ]
        await asyncio.sleep(0.05)
        gate.set()
        await first
        return await asyncio.gather(*orders)

    assert asyncio.run(ask()) == [0, 10, 20, 30, 40]
    assert seen == [[0, 2, 3], [1, 4]]


def test_a_batch_holds_no_more_than_it_may(engine, gate):
    engine.queue_length, engine.max_batch, seen = 10, 2, []

    async def ask():
        first = await start(engine, gate.wait)
        solve = solve_pairs(seen)
        orders = [asyncio.ensure_future(engine.run_together("a", n, solve)) for n in range(5)]
        await asyncio.sleep(0.05)
        gate.set()
        await asyncio.gather(first, *orders)

    asyncio.run(ask())
    assert seen == [[0, 1], [2, 3], [4]]


def test_a_lone_order_is_a_batch_of_one(engine):
    seen = []
    assert asyncio.run(engine.run_together("a", 4, solve_pairs(seen))) == 40
    assert seen == [[4]]


@pytest.mark.parametrize("way", ["raised", "returned"])
def test_an_exception_hits_only_the_order_that_caused_it(engine, gate, way):
    engine.queue_length = 10

    def divide(order):
        try:
            return 12 // order
        except ZeroDivisionError as error:
            if way == "raised":
                raise
            return error

    async def ask():
        first = await start(engine, gate.wait)
        orders = [
            asyncio.ensure_future(
                engine.run_together("a", order, lambda orders: [divide(each) for each in orders])
            )
            for order in (3, 0, 4)
        ]
        await asyncio.sleep(0.05)
        gate.set()
        await first
        return await asyncio.gather(*orders, return_exceptions=True)

    four, error, three = asyncio.run(ask())
    assert (four, three) == (4, 3)
    assert isinstance(error, ZeroDivisionError)


def test_a_batch_goes_on_while_anybody_in_it_waits(engine, gate):
    engine.queue_length = 10
    has_begun, may_end = threading.Event(), threading.Event()

    def solve(orders):
        has_begun.set()
        while not may_end.is_set():
            check()
        return orders

    async def ask():
        first = await start(engine, gate.wait)
        left = asyncio.Event()
        leaves = asyncio.ensure_future(engine.run_together("a", 1, solve, client_left=left.wait))
        stays = asyncio.ensure_future(engine.run_together("a", 2, solve))
        await asyncio.sleep(0.05)
        gate.set()
        await first
        await asyncio.to_thread(has_begun.wait, 20)
        left.set()
        with pytest.raises(ClientLeft):
            await leaves
        await asyncio.sleep(0.05)
        may_end.set()
        return await stays

    assert asyncio.run(ask()) == 2


def test_what_is_wrong_with_the_rest_of_a_request_is_raised_and_is_no_leaving(engine, gate):
    async def refuse():
        raise Problem(408, "body-too-slow", "too slow")

    async def ask():
        with pytest.raises(Problem) as refused:
            await engine.run(gate.wait, client_left=refuse)
        return refused.value.kind

    assert asyncio.run(ask()) == "body-too-slow"


def test_closing_refuses_who_waits_at_once(engine, gate):
    async def ask():
        running, waiting = [await start(engine, gate.wait) for _ in range(2)]
        closing = asyncio.ensure_future(asyncio.to_thread(engine.close))
        await asyncio.sleep(0.05)
        gate.set()
        await closing
        with pytest.raises(Problem) as refused:
            await asyncio.wait_for(waiting, 5)
        return refused.value.kind, await running

    assert asyncio.run(ask()) == ("server-stopping", True)


def test_closing_ends_the_thread(engine):
    asyncio.run(engine.run(lambda: None))
    assert engine.n_workers == 1
    engine.close()
    assert engine.n_workers == 0
    with pytest.raises(Problem) as caught:
        asyncio.run(engine.run(lambda: None))
    assert caught.value.kind == "server-stopping"
