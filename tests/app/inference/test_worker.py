"""An inference thread that dies takes its own jobs with it, and nobody else's."""

import asyncio
import gc
import threading
import time
import weakref

import pytest
import torch

from headlight.errors import Problem
from headlight.inference.crashes import is_crash, is_out_of_memory
from headlight.inference.engine import Engine
from headlight.model.cancellation import Cancelled

NO_MEMORY = "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate"


class PanicError(BaseException):
    """What a panic in a compiled library looks like."""


CRASHES = [
    PanicError("byte index 3 is no boundary of 'somebody's text'"),
    MemoryError(),
    torch.OutOfMemoryError("CUDA out of memory"),
    torch.AcceleratorError("CUDA error: an illegal memory access was encountered"),
    RuntimeError("CUDA error: device-side assert triggered"),
    RuntimeError(NO_MEMORY),
]


def test_what_is_a_crash_and_what_a_mistake():
    assert all(map(is_crash, CRASHES))
    assert not any(map(is_crash, [ValueError(), RuntimeError("shapes differ"), Cancelled()]))
    assert [is_out_of_memory(crash) for crash in CRASHES] == [False, True, True, False, False, True]


class Watched:
    """An engine, and what it tells of its threads."""

    def __init__(self, **options):
        self.prepared, self.deaths, self.ends = [], [], []
        self.engine = Engine(
            queue_length=10,
            queue_seconds=30,
            retry_after_seconds=3,
            prepare=lambda: self.prepare(),
            on_death=self.deaths.append,
            on_end=self.ends.append,
            **options,
        )

    def prepare(self):
        self.prepared.append(threading.get_ident())


@pytest.fixture
def watching():
    made = []

    def make(**options):
        made.append(Watched(**options))
        return made[-1]

    yield make
    for watched in made:
        watched.engine.close()


def raising(crash):
    def work(*_):
        raise crash

    return work


@pytest.mark.parametrize("crash", CRASHES, ids=range(len(CRASHES)))
def test_a_crash_costs_its_own_request_and_the_next_is_served_by_another_thread(watching, crash):
    watched = watching()
    engine = watched.engine

    async def crash_then_ask():
        before = await engine.run(threading.get_ident)
        with pytest.raises(Problem) as caught:
            await engine.run(raising(crash))
        return before, caught.value, await engine.run(threading.get_ident)

    before, problem, after = asyncio.run(crash_then_ask())
    assert (problem.status_code, problem.kind) == (503, "worker-died")
    assert problem.headers == {"Retry-After": "3"}
    assert watched.prepared == [before, after]
    assert [why.partition(":")[0] for why in watched.deaths] == [type(crash).__name__]
    assert engine.n_workers == 1
    assert engine.metrics.registry.get_sample_value("headlight_worker_deaths_total") == 1


def test_a_panic_s_words_which_may_quote_a_text_are_not_logged(watching, caplog):
    watched = watching()
    with pytest.raises(Problem):
        asyncio.run(watched.engine.run(raising(CRASHES[0])))
    assert "PanicError" in caplog.text
    assert "in work" in caplog.text, "where it happened"
    assert "somebody" not in caplog.text


def test_who_waits_while_the_thread_dies_is_served_by_the_next(watching):
    watched = watching()
    may_crash = threading.Event()

    def crash():
        may_crash.wait(20)
        raise PanicError

    async def ask():
        dying = asyncio.ensure_future(watched.engine.run(crash))
        await asyncio.sleep(0.05)
        waiting = [asyncio.ensure_future(watched.engine.run(lambda n=n: n)) for n in range(5)]
        await asyncio.sleep(0.05)
        may_crash.set()
        return await asyncio.gather(dying, *waiting, return_exceptions=True)

    problem, *results = asyncio.run(ask())
    assert problem.kind == "worker-died"
    assert results == [0, 1, 2, 3, 4]


def test_a_crash_that_is_returned_for_one_order_of_a_batch_is_a_crash_all_the_same(watching):
    watched = watching()
    solve = lambda orders: [MemoryError() for _ in orders]  # noqa: E731 - as short as it says
    with pytest.raises(Problem) as caught:
        asyncio.run(watched.engine.run_together("a", 1, solve))
    assert caught.value.kind == "worker-died"


def test_a_thread_that_hangs_is_given_up_and_replaced(watching):
    watched = watching(work_seconds=0.1)
    may_end = threading.Event()

    async def ask():
        with pytest.raises(Problem) as caught:
            await watched.engine.run(lambda: may_end.wait(60))
        return caught.value.kind, await asyncio.wait_for(watched.engine.run(lambda: "served"), 20)

    try:
        assert asyncio.run(ask()) == ("too-slow", "served")
        assert "it did not stop for" in watched.deaths[0]
        assert watched.engine.n_workers == 2
    finally:
        may_end.set()
    wait_for(lambda: watched.engine.n_workers == 1)
    assert asyncio.run(watched.engine.run(lambda: "still served")) == "still served"


def test_what_a_thread_computed_when_it_died_is_let_go(watching):
    watched = watching()
    held = []

    def crash():
        tensor = torch.ones(9)
        held.append(weakref.ref(tensor))
        raise MemoryError

    async def ask():
        with pytest.raises(Problem):
            await watched.engine.run(crash)
        await watched.engine.run(lambda: None)

    gc.disable()
    try:
        asyncio.run(ask())
        assert held[0]() is None
    finally:
        gc.enable()


def test_what_was_computed_beside_a_problem_is_let_go(watching):
    watched = watching()
    held = []

    def refuse():
        tensor = torch.ones(9)
        held.append(weakref.ref(tensor))
        try:
            raise ValueError
        except ValueError as error:
            raise Problem(422, "nothing-to-analyse", "there is nothing in it") from error

    def solve(orders):
        try:
            refuse()
        except Problem as problem:
            return [problem]

    async def ask():
        with pytest.raises(Problem):
            await watched.engine.run(refuse)
        with pytest.raises(Problem):
            await watched.engine.run_together("a", 1, solve)
        await watched.engine.run(lambda: None)

    gc.disable()
    try:
        asyncio.run(ask())
        assert [tensor() for tensor in held] == [None, None]
    finally:
        gc.enable()


def test_a_system_that_gives_no_thread_is_the_end(watching, monkeypatch):
    watched = watching()

    async def ask():
        await watched.engine.run(lambda: None)
        refuse = raising(RuntimeError("no new thread"))
        monkeypatch.setattr("headlight.inference.worker.Thread.start", refuse)
        for _ in range(2):  # the second one waits in the queue all the while
            with pytest.raises(Problem, match="died"):
                await asyncio.wait_for(watched.engine.run(raising(PanicError())), 20)

    asyncio.run(ask())
    wait_for(lambda: watched.ends)
    assert watched.ends == ["RuntimeError: no new thread"]


def test_three_threads_in_a_row_that_cannot_be_prepared_are_the_end(watching):
    watched = watching()

    async def ask():
        await watched.engine.run(lambda: None)
        watched.prepare = raising(torch.AcceleratorError("CUDA error: unknown error"))
        with pytest.raises(Problem):
            await watched.engine.run(raising(PanicError()))
        with pytest.raises(Problem) as caught:  # it waits in the queue all the while
            await asyncio.wait_for(watched.engine.run(lambda: None), 20)
        with pytest.raises(Problem) as after:
            await watched.engine.run(lambda: None)
        return caught.value.kind, after.value.kind

    assert asyncio.run(ask()) == ("worker-died", "worker-died")
    wait_for(lambda: watched.ends)
    assert watched.ends == ["AcceleratorError: CUDA error: unknown error"]
    assert len(watched.deaths) == 4
    assert watched.engine.n_workers == 0


def test_a_thread_that_comes_to_life_at_the_second_try_is_as_good(watching):
    watched = watching()
    failures = [MemoryError(), None]

    def prepare():
        if failure := failures.pop(0):
            raise failure

    async def ask():
        await watched.engine.run(lambda: None)
        watched.prepare = prepare
        with pytest.raises(Problem):
            await watched.engine.run(raising(PanicError()))
        return await asyncio.wait_for(watched.engine.run(lambda: "alive"), 20)

    assert asyncio.run(ask()) == "alive"
    assert watched.ends == []


def wait_for(condition, seconds=20):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)
