"""The bounded queue and the worker thread: order, rejection, time limits, cancellation, failure."""

import asyncio
import threading
from collections.abc import Iterator

import pytest
import torch

from headlight.model.cancellation import check
from headlight.model.device import is_out_of_memory
from headlight.problems import Problem
from headlight.serving.concurrency import ClientDisconnected
from headlight.serving.engine import Engine, Job, is_fatal


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Return an event for work to wait for; it is set after the test, so that no thread hangs."""
    gate = threading.Event()
    yield gate
    gate.set()


@pytest.fixture
def engine(gate: threading.Event) -> Iterator[Engine]:
    engine = Engine(queue_length=1, queue_seconds=30)
    yield engine
    gate.set()
    engine.close()


async def until(condition):
    while not condition():  # noqa: ASYNC110 - a thread makes it true
        await asyncio.sleep(0.01)


def submit(engine, payload, solve, key="a", **options):
    """Put a job that can share a batch into the queue."""
    return engine.submit(Job(payload, solve, key, **options))


async def start(engine, work):
    """Start work, and return once it runs on the thread, or waits in the queue for it."""
    n_before, has_begun = engine.n_jobs, threading.Event()

    def begin():
        has_begun.set()
        return work()

    task = asyncio.ensure_future(engine.run(begin))
    await until(lambda: engine.n_jobs > n_before if n_before else has_begun.is_set())
    return task


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
    assert refusal.headers == {"Retry-After": "1"}
    assert refusal.members == {"limit": 1, "actual": 2}
    assert refusal.detail == "1 requests are waiting already; try again in 1 s"
    assert later == "room again"


def test_a_full_queue_does_not_refuse_the_rest_of_what_has_begun(engine, gate):
    async def overfill():
        tasks = [await start(engine, gate.wait) for _ in range(2)]
        rest = engine.submit(Job(0, lambda _: iter([(0, "the rest")]), is_continuation=True))
        with pytest.raises(Problem):
            await engine.run(lambda: "new")
        gate.set()
        await asyncio.gather(*tasks)
        return await engine.result(rest)

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


@pytest.mark.parametrize("way", ["leaves", "is cancelled"])
def test_work_is_dropped_and_its_place_is_free_when_its_client(engine, gate, way):
    ran = []

    async def leave():
        first = await start(engine, gate.wait)
        left = asyncio.Event()
        second = asyncio.ensure_future(engine.run(lambda: ran.append(1), client_left=left.wait))
        await until(lambda: engine.n_jobs == 2)
        left.set() if way == "leaves" else second.cancel()
        with pytest.raises((ClientDisconnected, asyncio.CancelledError)):
            await second
        third = await start(engine, lambda: "third")
        gate.set()
        await first
        return await third

    assert asyncio.run(leave()) == "third"
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
        with pytest.raises((ClientDisconnected, asyncio.CancelledError)):
            await waiting
        return await asyncio.to_thread(has_stopped.wait, 20)

    assert asyncio.run(leave())
    assert not gate.is_set()


def solver(seen):
    """Return a function that multiplies payloads by ten and notes each batch."""

    def solve(payloads):
        seen.append(payloads)
        for index, payload in reversed(list(enumerate(payloads))):
            yield index, 10 * payload

    return solve


async def ask_together(engine, gate, jobs):
    """Submit jobs while the worker is held, let it go, and return their results."""
    first = await start(engine, gate.wait)
    asked = [submit(engine, *job) for job in jobs]
    gate.set()
    await first
    return await asyncio.gather(*map(engine.result, asked), return_exceptions=True)


def test_jobs_of_one_key_that_wait_together_run_together_first_come_first(engine, gate):
    engine.queue_length, seen = 10, []
    solve = solver(seen)
    jobs = [(number, solve, key) for number, key in enumerate(["a", "b", "a", "a", "b"])]
    assert asyncio.run(ask_together(engine, gate, jobs)) == [0, 10, 20, 30, 40]
    assert seen == [[0, 2, 3], [1, 4]]


def test_a_batch_is_bounded_and_a_job_without_a_key_shares_none(engine, gate):
    engine.queue_length, engine.max_batch, seen = 10, 2, []
    solve = solver(seen)
    jobs = [*((number, solve) for number in range(3)), (7, solve, None), (8, solve, None)]
    asyncio.run(ask_together(engine, gate, jobs))
    assert seen == [[0, 1], [2], [7], [8]]


def test_a_result_does_not_wait_for_the_rest_of_its_batch(engine, gate):
    engine.queue_length, has_first = 10, threading.Event()

    def solve(payloads):
        for index, payload in enumerate(payloads):
            yield index, has_first.wait(20) if index else payload

    async def scenario():
        first = await start(engine, gate.wait)
        asked = [submit(engine, number, solve) for number in range(2)]
        gate.set()
        await first
        await engine.result(asked[0])
        has_first.set()
        return await engine.result(asked[1])

    assert asyncio.run(scenario()) is True


@pytest.mark.parametrize("way", ["raised", "yielded"])
def test_an_exception_hits_only_the_job_that_caused_it(engine, gate, way):
    engine.queue_length = 10

    def solve(payloads):
        for index, payload in enumerate(payloads):
            if way == "yielded" and not payload:
                yield index, ZeroDivisionError()
            else:
                yield index, 12 // payload

    four, error, three = asyncio.run(
        ask_together(engine, gate, [(number, solve) for number in (3, 0, 4)])
    )
    assert (four, three) == (4, 3)
    assert isinstance(error, ZeroDivisionError)


def test_a_continuation_runs_between_two_results_of_a_batch(engine, gate):
    engine.queue_length, order = 10, []
    is_between, may_go_on = threading.Event(), threading.Event()

    def solve(payloads):
        for index, payload in enumerate(payloads):
            order.append(payload)
            yield index, payload
            is_between.set()
            may_go_on.wait(20)

    def go_on(payloads):
        order.extend(payloads)
        return enumerate(payloads)

    async def scene():
        asked = [(number, solve) for number in (1, 2, 3)]
        batch = asyncio.ensure_future(ask_together(engine, gate, asked))
        await until(is_between.is_set)
        next_token = submit(engine, "token", go_on, "b", is_continuation=True)
        may_go_on.set()
        return await batch, await engine.result(next_token)

    assert asyncio.run(scene()) == ([1, 2, 3], "token")
    assert order == [1, 2, "token", 3]


def test_a_batch_goes_on_while_any_of_its_clients_waits(engine, gate):
    engine.queue_length = 10
    may_end, n_checks = threading.Event(), 0

    def solve(payloads):
        nonlocal n_checks
        while not may_end.is_set():
            check()
            n_checks += 1
        yield from enumerate(payloads)

    async def scene():
        first = await start(engine, gate.wait)
        left = asyncio.Event()
        leaves, stays = submit(engine, 1, solve), submit(engine, 2, solve)
        gate.set()
        await first
        await until(lambda: n_checks)
        left.set()
        with pytest.raises(ClientDisconnected):
            await engine.result(leaves, left.wait)
        n_then = n_checks
        await until(lambda: n_checks > n_then + 1)
        may_end.set()
        return await engine.result(stays)

    assert asyncio.run(scene()) == 2


FATAL = [
    MemoryError(),
    RuntimeError("DefaultCPUAllocator: can't allocate memory"),
    torch.OutOfMemoryError("CUDA out of memory"),
    RuntimeError("CUDA error: an illegal memory access was encountered"),
    type("PanicException", (BaseException,), {})("a text"),
]


def test_errors_of_memory_device_and_compiled_libraries_are_fatal_and_no_others():
    assert all(map(is_fatal, FATAL))
    assert [is_out_of_memory(error) for error in FATAL] == [True, True, True, False, False]
    assert not any(map(is_fatal, [ValueError(), RuntimeError("shape"), Problem(422, "a", "b")]))


@pytest.fixture
def fatal():
    """Return the sentences that an engine reports as fatal."""
    return []


@pytest.fixture
def mortal(gate, fatal):
    engine = Engine(queue_length=9, queue_seconds=30, on_fatal=fatal.append)
    yield engine
    gate.set()
    engine.close()


@pytest.mark.parametrize("error", FATAL, ids=repr)
def test_a_fatal_error_rejects_everything_and_is_reported_once(mortal, gate, fatal, error, caplog):
    def die(_):
        yield 0, error

    problems = asyncio.run(ask_together(mortal, gate, [(1, die), (2, solver([]), "b")]))
    assert [problem.kind for problem in problems] == ["engine-failed"] * 2
    with pytest.raises(Problem) as refused:
        asyncio.run(mortal.run(lambda: "later"))
    assert refused.value.kind == "engine-failed"
    assert len(fatal) == 1
    assert fatal[0].startswith(type(error).__name__)
    assert "a text" not in caplog.messages[-1], "a panic may quote what somebody typed"


def test_an_error_of_preparing_is_fatal(fatal):
    def prepare():
        raise MemoryError

    engine = Engine(queue_length=1, queue_seconds=1, prepare=prepare, on_fatal=fatal.append)
    engine.start()
    engine._thread.join(20)
    assert fatal == ["MemoryError: "]


def test_work_that_never_asks_whether_to_stop_is_fatal(mortal, gate, fatal):
    mortal.work_seconds = 0.1

    async def scene():
        with pytest.raises(Problem) as refused:
            await mortal.run(gate.wait)
        await until(lambda: fatal)
        return refused.value.kind

    assert asyncio.run(asyncio.wait_for(scene(), 20)) == "too-slow"
    assert "did not stop" in fatal[0]


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
        await until(lambda: engine.is_stopping)
        gate.set()
        await closing
        with pytest.raises(Problem) as refused:
            await asyncio.wait_for(waiting, 5)
        return refused.value.kind, await running

    assert asyncio.run(ask()) == ("server-stopping", True)


def test_closing_ends_the_thread(engine):
    asyncio.run(engine.run(lambda: None))
    assert engine.is_alive
    engine.close()
    assert not engine.is_alive
    with pytest.raises(Problem) as caught:
        asyncio.run(engine.run(lambda: None))
    assert caught.value.kind == "server-stopping"
