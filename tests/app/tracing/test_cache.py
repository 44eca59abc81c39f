"""The cache keeps what was asked for last, counts its bytes, and never holds more than it may."""

import gc
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headlight.model.trace import NamedArray, Trace
from headlight.schemas.traces import TraceRequest
from headlight.serialization.trace import Analysis, Answer
from headlight.tracing.batch import solve
from headlight.tracing.cache import TraceCache, size_of
from headlight.tracing.jobs import trace_job


def answer(name, *arrays, text="a", analyses=()):
    tensors = {f"site.{n}": NamedArray(("query",), array) for n, array in enumerate(arrays)}
    trace = Trace(
        model="m", revision="r", precision="float32", text=text, tokens=(), tensors=tensors
    )
    found = {
        f"analysis {n}": Analysis(arrays={"x": NamedArray(("query",), array)}, metadata={})
        for n, array in enumerate(analyses)
    }
    return Answer(id=name, trace=trace, analyses=found)


def numbers(count):
    return np.zeros(count, dtype=np.float32)


EMPTY = size_of(answer("a"))


def test_an_answer_weighs_its_arrays_and_its_text():
    assert size_of(answer("a", numbers(100))) - size_of(answer("a", numbers(0))) == 400
    assert size_of(answer("a", text="a" * 1000)) == EMPTY + 999
    assert size_of(answer("a", text="é" * 1000)) == EMPTY + 1999


@pytest.mark.parametrize("asked", [{"capture": ["decoder.layers.0.*weights"]}, {}])
def test_small_answers_take_about_the_bytes_that_are_counted(tiny, asked):
    cache = TraceCache(10**8)

    def fill(numbers):
        for number in numbers:
            job = trace_job(
                TraceRequest(text=f"cat {number}", **asked), tiny.description, torch.float32
            )
            ((_, found),) = solve(tiny, [job], 10**6)
            cache.put(found)

    fill(range(10))  # what is made once
    counted = cache.n_bytes
    tracemalloc.start()
    try:
        fill(range(10, 110))
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.4 < taken / (cache.n_bytes - counted) < 1.3  # NumPy reuses small blocks


def test_what_is_kept_is_a_copy_that_holds_on_to_nothing_else():
    cache, whole = TraceCache(20_000), numbers(10_000)
    cache.put(answer("a", whole[:10], analyses=[whole[:10]]))
    kept = cache.get("a")
    arrays = [*kept.trace.tensors.values(), kept.analyses["analysis 0"].arrays["x"]]
    for array in arrays:
        assert array.data.base is None
        np.testing.assert_array_equal(array.data, whole[:10])


def test_what_was_asked_for_longest_ago_goes_first():
    size = size_of(answer("a", numbers(100)))
    cache = TraceCache(2 * size)
    cache.put(answer("a", numbers(100)))
    cache.put(answer("b", numbers(100)))
    cache.get("a")
    cache.put(answer("c", numbers(100)))
    assert [name in cache for name in "abc"] == [True, False, True]
    assert cache.n_bytes == 2 * size


@given(
    puts=st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 400)), max_size=30),
    max_bytes=st.integers(0, 10 * EMPTY),
)
def test_the_bytes_counted_are_those_of_what_is_kept_and_never_too_many(puts, max_bytes):
    cache = TraceCache(max_bytes)
    for name, count in puts:
        cache.put(answer(name, numbers(count)))
        kept = [cache.get(name) for name in "abcdef" if name in cache]
        assert cache.n_bytes == sum(size_of(found) for found in kept) <= max_bytes


def test_threads_do_not_lose_count():
    cache = TraceCache(20 * EMPTY)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            for _ in pool.map(lambda n: cache.put(answer(str(n % 40))), range(2000)):
                pass
    finally:
        sys.setswitchinterval(interval)
    kept = [found for n in range(40) if (found := cache.get(str(n))) is not None]
    assert len(kept) == len(cache) > 1
    assert cache.n_bytes == sum(map(size_of, kept)) <= 20 * EMPTY
