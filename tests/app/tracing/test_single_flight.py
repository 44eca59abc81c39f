"""Equal jobs asked for at the same time are computed once; each client may leave at any time."""

import asyncio

import pytest

from headlight.problems import Problem
from headlight.serving.concurrency import ClientDisconnected
from headlight.serving.engine import Job
from headlight.tracing.service import SingleFlight


class FakeEngine:
    """Notes the jobs that are submitted and withdrawn; a test settles them."""

    def __init__(self):
        self.jobs = []
        self.withdrawn = []

    def submit(self, job):
        self.jobs.append(job)
        return job

    def withdraw(self, job):
        if not job.future.done():
            self.withdrawn.append(job)
            job.future.cancel()


@pytest.fixture
def engine():
    return FakeEngine()


async def never():
    await asyncio.Event().wait()


def make_job():
    return Job("payload", None)


async def ask(flights, key="a", client_left=never, join=lambda _: None):
    """Start a client that waits for the job, and return its task."""
    client = asyncio.ensure_future(flights.run(key, make_job, join, client_left))
    for _ in range(3):
        await asyncio.sleep(0)
    return client


def test_equal_jobs_are_computed_once_and_those_that_join_are_counted(engine):
    async def scene():
        joined, flights = [], SingleFlight(engine)
        clients = [await ask(flights, join=joined.append) for _ in range(3)]
        assert joined == engine.jobs * 2
        engine.jobs[0].settle("found")
        return await asyncio.gather(*clients), len(engine.jobs), len(flights)

    assert asyncio.run(scene()) == (["found"] * 3, 1, 0)


@pytest.mark.parametrize("leaver", [0, 1])
def test_whichever_client_leaves_the_others_get_their_answer(engine, leaver):
    async def scene():
        flights, left = SingleFlight(engine), asyncio.Event()
        clients = [
            await ask(flights, client_left=left.wait if number == leaver else never)
            for number in range(3)
        ]
        left.set()
        with pytest.raises(ClientDisconnected):
            await clients.pop(leaver)
        assert engine.withdrawn == []
        engine.jobs[0].settle("found")
        return await asyncio.gather(*clients)

    assert asyncio.run(scene()) == ["found", "found"]


def test_the_job_is_withdrawn_when_the_last_client_leaves_and_the_next_begins_anew(engine):
    async def scene():
        flights, left = SingleFlight(engine), asyncio.Event()
        clients = [await ask(flights, client_left=left.wait) for _ in range(2)]
        left.set()
        for client in clients:
            with pytest.raises(ClientDisconnected):
                await client
        late = await ask(flights)
        assert engine.withdrawn == engine.jobs[:1]
        engine.jobs[1].settle("again")
        return await late

    assert asyncio.run(scene()) == "again"


def test_cancelling_the_only_client_withdraws_the_job(engine):
    async def scene():
        flights = SingleFlight(engine)
        client = await ask(flights)
        client.cancel()
        with pytest.raises(asyncio.CancelledError):
            await client
        return engine.withdrawn == engine.jobs, len(flights)

    assert asyncio.run(scene()) == (True, 0)


def test_a_client_that_joined_is_not_rejected_because_the_first_waited_too_long(engine):
    async def scene():
        flights = SingleFlight(engine)
        first, *joined = [await ask(flights) for _ in range(3)]
        engine.jobs[0].settle(Problem(503, "queue-timeout", "no"))
        with pytest.raises(Problem) as refused:
            await first
        await asyncio.sleep(0.01)
        engine.jobs[1].settle("found")
        return refused.value.kind, await asyncio.gather(*joined), len(engine.jobs)

    assert asyncio.run(scene()) == ("queue-timeout", ["found", "found"], 2)
