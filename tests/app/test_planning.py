"""Traces are planned in bounds, and who waits with others waits no longer than alone."""

import asyncio
import threading
import time

import pytest

from headlight.errors import Problem
from headlight.inference.engine import ClientLeft, Engine
from headlight.metrics import Metrics
from headlight.registry import registry_of
from headlight.schemas.traces import TraceRequest
from headlight.tracing.service import Traces
from headlight.tracing.tracer import Tracer

REQUEST = TraceRequest(text="the cat", capture=["*.weights"])


async def never():
    await asyncio.Event().wait()


@pytest.fixture
def gate():
    """Work can wait for it; it opens when the test is over, so that no thread hangs."""
    gate = threading.Event()
    yield gate
    gate.set()


@pytest.fixture
def traces_with(settings, gate):
    """Makes traces with other settings, and closes them."""
    made = []

    def make(**changed):
        settings_here = settings.model_copy(update=changed)
        engine = Engine(
            queue_length=settings_here.queue_length,
            queue_seconds=settings_here.queue_seconds,
            retry_after_seconds=1,
            work_seconds=settings_here.work_seconds,
        )
        tracer = Tracer(registry_of(settings_here), settings_here)
        made.append(Traces(tracer, engine, Metrics()))
        return made[-1]

    yield make
    gate.set()
    for traces in made:
        traces.planner.close()
        traces.engine.close()


def hold_planning(traces, gate):
    """Planning waits for the gate; tells how often it began."""
    begun, order = [], traces.tracer.order

    def held(request):
        begun.append(request)
        gate.wait(20)
        return order(request)

    traces.tracer.order = held
    return begun


async def until(condition):
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came")


def test_one_more_than_may_wait_to_be_planned_is_refused_at_once(traces_with, gate):
    traces = traces_with(queue_length=1)
    begun = hold_planning(traces, gate)

    async def scene():
        first = asyncio.ensure_future(traces.answer(REQUEST, never))
        await until(lambda: begun)
        second = asyncio.ensure_future(traces.answer(REQUEST, never))
        await until(lambda: traces.planner.n_jobs == 2)
        with pytest.raises(Problem) as refused:
            await traces.answer(REQUEST, never)
        gate.set()
        await asyncio.gather(first, second)
        return refused.value

    refusal = asyncio.run(scene())
    assert (refusal.kind, refusal.members) == ("queue-full", {"limit": 1, "actual": 2})


def test_a_plan_that_takes_too_long_is_refused(traces_with, gate):
    traces = traces_with(work_seconds=0.2)
    hold_planning(traces, gate)
    with pytest.raises(Problem) as refused:
        asyncio.run(traces.answer(REQUEST, never))
    assert (refused.value.status_code, refused.value.kind) == (504, "too-slow")


def test_a_client_that_leaves_while_its_request_is_planned_is_let_go(traces_with, gate):
    traces = traces_with()
    begun = hold_planning(traces, gate)

    async def scene():
        left = asyncio.Event()
        client = asyncio.ensure_future(traces.answer(REQUEST, left.wait))
        await until(lambda: begun)
        left.set()
        with pytest.raises(ClientLeft):
            await asyncio.wait_for(client, 5)
        gate.set()
        await until(lambda: traces.planner.n_jobs == 0)
        return traces.engine.n_jobs, len(traces.sharing)

    assert asyncio.run(scene()) == (0, 0)


def test_who_shares_a_wait_that_is_in_vain_waits_no_longer_than_alone(traces_with, gate):
    queue_seconds, n_clients = 0.4, 5
    traces = traces_with(queue_seconds=queue_seconds)

    async def waited():
        began = time.monotonic()
        with pytest.raises(Problem) as refused:
            await traces.answer(REQUEST, never)
        assert refused.value.kind == "queue-timeout"
        return time.monotonic() - began

    async def scene():
        holder = asyncio.ensure_future(traces.engine.run(lambda: gate.wait(20)))
        await until(lambda: traces.engine.n_jobs == 1)
        seconds = await asyncio.gather(*(waited() for _ in range(n_clients)))
        gate.set()
        await holder
        return max(seconds)

    assert asyncio.run(scene()) < 2.5 * queue_seconds, "one after another they wait five times that"
