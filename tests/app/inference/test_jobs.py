"""The queue: bounded, first come first served, and emptied by one worker at a time."""

import asyncio
import threading

import pytest

from headlight.inference.jobs import Job, Queue, QueueFull


class Bench:
    """A queue that this test serves itself."""

    def __init__(self, length=10):
        self.queue = Queue(length)
        self.queue.hand_over(self)
        self.loop = asyncio.new_event_loop()

    def put(self, order, kind=None):
        async def make():
            return Job(kind, order, list)

        job = self.loop.run_until_complete(make())
        self.queue.put(job)
        return job

    def take(self, max_batch=10):
        return [job.order for job in self.queue.take(self, max_batch)]


@pytest.fixture
def bench():
    bench = Bench()
    yield bench
    bench.loop.close()


def test_jobs_without_a_kind_are_taken_one_by_one_in_order(bench):
    for order in "abc":
        bench.put(order)
    assert [bench.take() for _ in "abc"] == [["a"], ["b"], ["c"]]


def test_who_came_first_is_in_the_batch_and_those_of_its_kind_come_with_it(bench):
    for order in ("a1", "b1", "a2", "b2", "a3"):
        bench.put(order, kind=order[0])
    assert [bench.take(max_batch=2) for _ in range(3)] == [["a1", "a2"], ["b1", "b2"], ["a3"]]


def test_one_more_than_the_length_may_wait_while_nothing_runs(bench):
    bench.queue.length = 1
    bench.put("will be taken at once")
    bench.put("waits")
    with pytest.raises(QueueFull) as caught:
        bench.put("too many")
    assert caught.value.actual == 3
    bench.take()
    with pytest.raises(QueueFull) as caught:
        bench.put("too many")
    assert caught.value.actual == 2


def test_a_job_that_waits_can_be_withdrawn_and_one_that_runs_cannot(bench):
    first, second = bench.put("first"), bench.put("second")
    bench.take()
    assert not bench.queue.withdraw(first)
    assert bench.queue.withdraw(second)
    assert not bench.queue.withdraw(second)
    assert bench.queue.jobs() == [first]
    assert bench.queue.n_jobs == 1


def test_what_has_finished_does_not_count(bench):
    bench.put("first")
    batch = bench.queue.take(bench, 1)
    assert bench.queue.running_seconds > 0
    bench.queue.finish(batch)
    assert (bench.queue.n_jobs, bench.queue.running_seconds) == (0, 0)


def test_who_takes_over_gets_what_waits_and_is_told_what_was_lost(bench):
    lost = bench.put("lost")
    batch = bench.queue.take(bench, 1)
    bench.put("waits")
    other = object()
    assert bench.queue.hand_over(other) == [lost]
    assert bench.queue.take(bench, 1) == []
    (waiting,) = bench.queue.take(other, 1)
    bench.queue.finish(batch)  # the worker before comes back from where it hung
    assert bench.queue.jobs() == [waiting]


def test_a_worker_that_waits_for_jobs_goes_when_the_queue_is_closed(bench):
    taken = []
    worker = threading.Thread(target=lambda: taken.append(bench.queue.take(bench, 1)))
    worker.start()
    bench.queue.close()
    worker.join(20)
    assert taken == [[]]


def test_an_answer_for_a_loop_that_is_closed_is_nobody_s(bench):
    job = bench.put("late")
    bench.loop.close()
    job.settle("an answer")
