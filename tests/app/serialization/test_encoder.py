"""Answers become bytes beside the event loop and the inference thread, and only while wanted."""

import asyncio
import threading
import time

import numpy as np
import pytest

import headlight.serialization.trace
from headlight.errors import Problem
from headlight.inference.engine import ClientLeft
from headlight.model.trace import NamedArray
from headlight.serialization.encoder import LARGE_BYTES, Encoder
from headlight.serialization.formats import JSON, MEDIA_TYPES, Form
from headlight.serialization.trace import Arrays, encode

SMALL, LARGE = 10, LARGE_BYTES


async def never():
    await asyncio.Event().wait()


def arrays_of(n_cells):
    numbers = np.random.default_rng(0).random((n_cells // 10, 10), dtype=np.float32)
    return Arrays(tensors={"numbers": NamedArray(("query", "key"), numbers)}, beside={})


@pytest.fixture
def encoder(settings):
    encoder = Encoder(settings)
    yield encoder
    encoder.close()


@pytest.fixture
def watch_pieces(monkeypatch):
    """Calls back at every piece that is written, on the thread that writes it."""

    def watch(on_piece):
        real = headlight.serialization.trace.compressed

        def compressed(pieces, coding):
            for piece in real(pieces, coding):
                on_piece()
                yield piece

        monkeypatch.setattr(headlight.serialization.trace, "compressed", compressed)

    return watch


@pytest.mark.parametrize(("n_cells", "thread"), [(SMALL, "small"), (LARGE, "large")])
def test_an_answer_is_encoded_on_a_thread_for_its_size(encoder, watch_pieces, n_cells, thread):
    names = set()
    watch_pieces(lambda: names.add(threading.current_thread().name))
    answer = arrays_of(n_cells)
    body = asyncio.run(encoder.encode(answer, Form(), client_left=never))
    assert names == {f"{thread} encoder"}
    assert body == encode(answer, Form())


def test_a_small_answer_does_not_wait_for_a_large_one(encoder, watch_pieces):
    may_go_on = threading.Event()
    watch_pieces(lambda: threading.current_thread().name == "small encoder" or may_go_on.wait(10))

    async def encode_both():
        large = asyncio.ensure_future(encoder.encode(arrays_of(LARGE), Form(), client_left=never))
        await asyncio.sleep(0.05)
        assert await encoder.encode(arrays_of(SMALL), Form(), client_left=never)
        assert not large.done()
        may_go_on.set()
        assert len(await large) > LARGE

    asyncio.run(encode_both())


def test_an_answer_is_dropped_between_two_pieces_when_its_client_left(encoder, watch_pieces):
    n_pieces, left, has_left = 0, asyncio.Event(), threading.Event()

    def on_piece():
        nonlocal n_pieces
        n_pieces += 1
        if n_pieces == 3:
            loop.call_soon_threadsafe(left.set)
            assert has_left.wait(10)

    async def encode_and_leave():
        nonlocal loop
        loop = asyncio.get_running_loop()
        with pytest.raises(ClientLeft):
            await encoder.encode(arrays_of(LARGE), Form(), client_left=left.wait)
        has_left.set()

    loop = None
    watch_pieces(on_piece)
    asyncio.run(encode_and_leave())
    encoder.close()
    assert n_pieces == 3


def test_numbers_that_are_not_finite_are_a_problem(encoder):
    broken = Arrays(tensors={"a": NamedArray(("query",), np.array([np.nan]))}, beside={})
    with pytest.raises(Problem, match="a holds nan") as caught:
        asyncio.run(encoder.encode(broken, Form(), client_left=never))
    assert caught.value.status_code == 503


def test_whoever_comes_after_the_stop_is_refused(encoder):
    encoder.stop()
    with pytest.raises(Problem) as caught:
        asyncio.run(encoder.encode(arrays_of(SMALL), Form(), client_left=never))
    assert caught.value.status_code == 503


@pytest.mark.parametrize("media_type", MEDIA_TYPES)
def test_the_event_loop_has_its_turn_while_the_largest_answer_is_encoded(
    encoder, settings, media_type
):
    """A share of the time, as on a busy machine everything takes longer."""
    answer = arrays_of(settings.max_cells // (1 if media_type != JSON else 2))
    longest = 0.0

    async def encode_and_watch():
        nonlocal longest
        began = time.perf_counter()
        job = asyncio.ensure_future(
            encoder.encode(answer, Form(media_type=media_type, coding="zstd"), client_left=never)
        )
        while not job.done():
            before = time.perf_counter()
            await asyncio.sleep(0)
            longest = max(longest, time.perf_counter() - before)
        return time.perf_counter() - began

    took = asyncio.run(encode_and_watch())
    assert longest < max(took / 4, 0.05), f"{longest:.3f} of {took:.3f} s"
