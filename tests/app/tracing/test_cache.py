"""The caches keep the most recent answers, count their bytes, and never exceed their limit."""

import gc
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headlight.analyses.analysis import Result
from headlight.model.trace import NamedArray, Trace
from headlight.problems import Problem
from headlight.schemas.traces import MAX_TILE_CELLS, TileRequest, TraceRequest
from headlight.serialization.trace import Answer
from headlight.tracing.batch import solve
from headlight.tracing.cache import KeptTiles, TraceCache, size_of, tile_answer
from headlight.tracing.jobs import trace_job


def answer(name, *arrays, text="a", analyses=()):
    tensors = {f"site.{n}": NamedArray(("query",), array) for n, array in enumerate(arrays)}
    trace = Trace(
        model="m", revision="r", precision="float32", text=text, tokens=(), tensors=tensors
    )
    results = {
        f"analysis {n}": Result(arrays={"x": NamedArray(("query",), array)}, metadata={})
        for n, array in enumerate(analyses)
    }
    return Answer(id=name, trace=trace, analyses=results)


def numbers(count):
    return np.zeros(count, dtype=np.float32)


EMPTY = size_of(answer("a"))


def test_an_answer_weighs_its_arrays_and_its_text():
    assert size_of(answer("a", numbers(100))) - size_of(answer("a", numbers(0))) == 400
    analysed = [size_of(answer("a", analyses=[numbers(count)])) for count in (0, 100)]
    assert analysed[1] - analysed[0] == 400
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
            ((_, solved),) = solve(tiny, [job], 10**6)
            cache.put(solved)

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
        assert cache.n_bytes == sum(size_of(cached) for cached in kept) <= max_bytes


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
    kept = [cached for n in range(40) if (cached := cache.get(str(n))) is not None]
    assert len(kept) == len(cache) > 1
    assert cache.n_bytes == sum(map(size_of, kept)) <= 20 * EMPTY


# --- queries and keys -----------------------------------------------------------------------------

PATH = "decoder.layers.0.self_attention"


def with_tiles(name, *sizes):
    """Return an answer whose attentions keep queries and keys of these sizes."""
    kept = {f"attention {n}": SimpleNamespace(n_bytes=size) for n, size in enumerate(sizes)}
    return replace(answer(name), trace=replace(answer(name).trace, kept=kept))


def test_queries_and_keys_leave_the_answer_and_are_kept_if_they_fit():
    tiles = KeptTiles(100)
    taken = tiles.take(with_tiles("a", 60, 40))
    assert (taken.tiles, taken.trace.kept) == (("attention 0", "attention 1"), {})
    assert (list(tiles.get("a")), tiles.n_bytes) == (list(taken.tiles), 100)
    refused = tiles.take(with_tiles("b", 60, 41))
    assert (refused.tiles, refused.trace.kept, tiles.get("b")) == ((), {}, None)
    assert tiles.take(answer("c")).tiles == ()
    assert tiles.get("c") is None


def test_the_queries_and_keys_used_longest_ago_make_room():
    tiles = KeptTiles(100)
    tiles.take(with_tiles("a", 50))
    tiles.take(with_tiles("b", 50))
    assert tiles.get("a")
    tiles.take(with_tiles("c", 50))
    assert [bool(tiles.get(name)) for name in "abc"] == [True, False, True]


@pytest.mark.parametrize(
    ("queries", "keys", "resolution", "actual"),
    [("0:1", "0:600", 512, 2 * 300), ("0:3", "4:10", 2, 2 * 2 * 2), ("5:9", "0:2", 9, 2 * 4 * 2)],
)
def test_the_numbers_of_a_tile_are_counted_before_it_is_computed(queries, keys, resolution, actual):
    request = TileRequest(attention=PATH, head=0, queries=queries, keys=keys, resolution=resolution)
    with pytest.raises(Problem) as caught:
        tile_answer("a", {PATH: None}, request, actual - 1)
    assert (caught.value.status_code, caught.value.kind) == (422, "too-many-cells")
    assert caught.value.members == {"limit": actual - 1, "actual": actual}
    with pytest.raises(AttributeError):  # there is nothing to compute it of
        tile_answer("a", {PATH: None}, request, actual)


def test_a_rectangle_of_too_many_weights_is_rejected():
    request = TileRequest(attention=PATH, head=0, queries="0:8192", keys="0:8193", resolution=1)
    with pytest.raises(Problem) as caught:
        tile_answer("a", {PATH: None}, request, 10**9)
    assert (caught.value.status_code, caught.value.kind) == (422, "too-many-tile-cells")
    assert caught.value.members == {"limit": MAX_TILE_CELLS, "actual": 8192 * 8193}
