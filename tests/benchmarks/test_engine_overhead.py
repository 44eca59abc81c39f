"""The cost of the engine for a request that need not wait, and the length of its way."""

import asyncio
import re
import statistics
import subprocess
import sys
import time
from timeit import repeat

from headlight.model.cancellation import cancellable, check
from headlight.serving.engine import Engine, Job

N_REQUESTS = 1_000
N_CHECKS = 20_000


async def typical_seconds(engine):
    """Return the median seconds from asking on the event loop to the answer of empty work."""
    took = []
    for _ in range(N_REQUESTS):
        began = time.perf_counter()
        await engine.result(engine.submit(Job("a payload", enumerate, "a key")))
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def test_the_engine_takes_a_request_less_than_a_third_of_a_millisecond(table):
    engine = Engine(queue_length=1, queue_seconds=10)
    seconds = min(asyncio.run(typical_seconds(engine)) for _ in range(3))
    engine.close()
    is_met = seconds < 0.3e-3
    table.add(
        "Engine", "to the inference thread and back", f"{1e3 * seconds:.3f} ms", "< 0.3 ms", is_met
    )
    assert seconds < 1e-3


def test_asking_whether_to_stop_takes_less_than_a_microsecond(table):
    jobs = [True] * 16
    with cancellable(lambda: not any(jobs)):
        seconds = min(repeat(check, number=N_CHECKS, repeat=10)) / N_CHECKS
    figure, is_met = f"{1e6 * seconds:.2f} µs", seconds < 1e-6
    table.add("Engine", "asking before a layer whether to stop", figure, "< 1 µs", is_met)
    assert seconds < 5e-6


def test_a_warm_trace_passes_through_at_most_40_files_and_one_worker_thread(table):
    script = [sys.executable, "-m", "tests.benchmarks.trip"]
    text = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    figures = re.search(r"(\d+) files, (\d+) functions, \d+ calls, (\d+) moves", text)
    assert figures, text
    threads = re.findall(r"calls in thread (\w+)", text)
    n_files = int(figures[1])
    table.add("Engine", "files on the way of a warm trace", figures[0], "≤ 40", n_files <= 40)
    assert sorted(threads) == ["MainThread", "inference"]
    assert n_files < 50
