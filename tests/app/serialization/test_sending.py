"""The memory of unread answers is bounded, and all of it is released."""

import asyncio
import random
import socket
import time
from contextlib import closing, suppress
from dataclasses import replace

import httpx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from headlight.analyses.analysis import Result
from headlight.model.trace import NamedArray, Token, Trace
from headlight.problems import Problem
from headlight.serialization import sending
from headlight.serialization.formats import MEDIA_TYPES, ResponseFormat
from headlight.serialization.sending import (
    CHUNK_BYTES,
    FRAME_BYTES,
    UNREAD_BYTES,
    ChunkedResponse,
    Outgoing,
    entity_tag,
    size_estimate,
)
from headlight.serialization.trace import Answer, Arrays, encode
from headlight.tracing import service
from tests.app.connections import wait_for

LARGE = "/api/v1/positional?scheme=sinusoidal&length=2000&width=100"
LARGE_CELLS = 200_000
BUDGET = 7_500_000
"""Two of the large answers, and what a third takes at most does not fit any more."""

KIND = "too-many-outgoing-bytes"
SIZES = st.integers(0, 150)


@pytest.fixture
def outgoing():
    return Outgoing(limit=100)


def test_a_reservation_that_does_not_fit_is_rejected_with_the_time_to_try_again(outgoing):
    outgoing.reserve(60)
    with pytest.raises(Problem) as caught:
        outgoing.reserve(41)
    assert outgoing.n_bytes == 60
    outgoing.reserve(40)
    problem = caught.value
    assert (problem.status_code, problem.kind) == (503, KIND)
    assert problem.headers == {"Retry-After": "1"}
    assert problem.members == {"limit": 100, "actual": 101}


def test_one_larger_than_the_limit_is_allowed_when_nothing_else_is_out(outgoing):
    first = outgoing.reserve(1000)
    with pytest.raises(Problem):
        outgoing.reserve(1)
    first.resize(99)
    second = outgoing.reserve(1)
    first.release()
    second.release()
    assert outgoing.n_bytes == 0


@given(st.lists(st.tuples(SIZES, SIZES, st.integers(0, 3))))
def test_the_sum_is_that_of_all_reservations_and_ends_at_nothing(steps):
    outgoing = Outgoing(limit=200)
    held = [outgoing.reserve(0) for _ in range(4)]
    for most, actual, place in steps:
        held[place].release()
        with suppress(Problem):
            held[place] = outgoing.reserve(most)
            held[place].resize(min(actual, most))
        sizes = [each.n_bytes for each in held]
        assert outgoing.n_bytes == sum(sizes)
        assert outgoing.n_bytes <= max(200, *sizes)
    for each in held:
        each.release()
    assert outgoing.n_bytes == 0


@pytest.fixture
def small(serving, settings):
    """Yield a server with little room for answers, which waits for slow readers."""
    with serving(settings.model_copy(update={"shutdown_seconds": 0})) as server:
        server.services.outgoing.limit = BUDGET
        yield server


def reader(server, path=LARGE, method="GET", more=""):
    """Return a client that asks and then reads no more than the head of its answer."""
    url = httpx.URL(server.url)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(20)
    connection.connect((url.host, url.port))
    connection.sendall(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n".encode())
    return connection


def length_of(connection):
    """Return the Content-Length of an answer."""
    head = b""
    while b"\r\n\r\n" not in head:
        head += connection.recv(512)
    assert head.startswith(b"HTTP/1.1 200"), head
    (line,) = (line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    return int(line.split(b":")[1])


def get(server, path=LARGE, **headers):
    return httpx.get(server.url + path, headers={"accept-encoding": "identity", **headers})


def gauge(server):
    lines = get(server, "/metrics").text.splitlines()
    (line,) = (line for line in lines if line.startswith("headlight_outgoing_bytes "))
    return float(line.split()[1])


def test_slow_readers_fill_the_room_and_leave_it_as_it_was(small, problem):
    outgoing = small.services.outgoing
    with closing(reader(small)) as first, closing(reader(small)) as second:
        lengths = length_of(first) + length_of(second)
        wait_for(lambda: outgoing.n_bytes == lengths)
        assert gauge(small) == lengths

        refused = get(small)
        assert len(refused.content) < 2000
        body = problem(refused, 503, KIND)
        assert refused.headers["retry-after"] == "1"
        assert (body["limit"], body["actual"] > BUDGET) == (BUDGET, True)
        asked = {"text": "the cat", "capture": ["logits"]}
        assert httpx.post(f"{small.url}/api/v1/trace", json=asked).status_code == 200
        wait_for(lambda: outgoing.n_bytes == lengths)  # what was read holds nothing any more

        first.close()
        wait_for(lambda: outgoing.n_bytes < lengths)
        assert get(small).status_code == 200
    wait_for(lambda: outgoing.n_bytes == 0)
    assert gauge(small) == 0


def test_an_answer_is_held_until_nearly_all_of_it_is_read(small):
    with closing(reader(small)) as connection:
        left = length_of(connection)
        while left > 2**19:
            left -= len(connection.recv(2**16))
            assert small.services.outgoing.n_bytes > 0
        while left > 2**10:
            left -= len(connection.recv(2**16))
        wait_for(lambda: small.services.outgoing.n_bytes == 0)


def test_answers_count_as_large_as_they_may_become_while_they_wait(small, problem, monkeypatch):
    seen = []
    encode = service.encode

    def encode_seen(*asked):
        seen.append(small.services.outgoing.n_bytes)
        return encode(*asked)

    monkeypatch.setattr(service, "encode", encode_seen)
    assert len(get(small).content) < seen[0] <= 20 * LARGE_CELLS
    wait_for(lambda: small.services.outgoing.n_bytes == 0)


def test_an_answer_that_breaks_off_leaves_nothing_behind(small, problem, monkeypatch):
    def fail(*_):
        assert small.services.outgoing.n_bytes > 0
        raise Problem(503, "model-unavailable", "its numbers are not finite")

    monkeypatch.setattr(service, "encode", fail)
    problem(get(small), 503, "model-unavailable")
    assert small.services.outgoing.n_bytes == 0


def test_clients_that_leave_at_any_moment_take_nothing_along(small):
    moments = random.Random(0)
    for _ in range(40):
        path = LARGE.replace("2000", str(moments.choice([20, 500, 2000])))
        with closing(reader(small, path, more="Accept-Encoding: gzip\r\n")) as connection:
            time.sleep(moments.choice([0, 0.005, 0.03, 0.08]))
            if moments.random() < 0.5:
                connection.recv(2**16)
    wait_for(lambda: small.services.outgoing.n_bytes == 0)
    assert get(small).status_code == 200


def test_sending_that_the_server_cuts_short_leaves_nothing_behind(client):
    outgoing = client.app.state.services.outgoing
    path, _, query = LARGE.partition("?")
    scope = {"type": "http", "method": "GET", "path": path, "query_string": query.encode()}
    scope["headers"] = [(b"host", b"localhost")]

    async def send_and_cut():
        is_sending, never = asyncio.Event(), asyncio.Event()

        async def send(message):
            if message["type"] == "http.response.body":
                is_sending.set()
                await never.wait()

        answering = asyncio.ensure_future(client.app(scope, never.wait, send))
        await is_sending.wait()
        assert outgoing.n_bytes > LARGE_CELLS
        answering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await answering

    asyncio.run(send_and_cut())
    assert outgoing.n_bytes == 0


AXES = ("layer", "head", "query", "key")
SHAPES = arrays.array_shapes(max_dims=4, max_side=5)
# Down to a millionth numbers are written without an exponent.
LONGEST = -0.0000010000001
FLOATS = arrays.arrays(
    np.float32, SHAPES, elements=st.just(np.float32(LONGEST)) | st.floats(width=32, allow_nan=False)
)
INTEGERS = arrays.arrays(np.int64, SHAPES, elements=st.integers(-(2**31), 2**31 - 1))
UNITS = arrays.arrays(np.float32, SHAPES, elements=st.floats(0, 1, width=32))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
FORMS = st.builds(
    ResponseFormat,
    media_type=st.sampled_from(MEDIA_TYPES),
    dtype=st.sampled_from(["float32", "uint16"]),
    triangle=st.booleans(),
    coding=st.sampled_from(["identity", "zstd", "br", "gzip"]),
)


def named(array):
    return NamedArray(AXES[-array.ndim :], array)


def answer_of(text, numbers, integers, units):
    numbers = np.nan_to_num(numbers, posinf=1, neginf=-1)
    trace = Trace(
        model="tiny",
        revision="r",
        precision="float32",
        text=text,
        tokens=tuple(
            Token(id=n, text=mark, start=n, end=n + 1, word=None, is_special=False)
            for n, mark in enumerate(text)
        ),
        tensors={
            "decoder.layers.0.self_attention.weights": named(units),
            "logits": named(numbers),
            "decoder.layers.0.experts": named(integers),
        },
        heads=(0, 1),
        timings={"pass": 1.0},
    )
    result = Result(arrays={"scores": named(numbers)}, metadata={"texts": [text]})
    return Answer(id="0" * 32, trace=trace, analyses={"next_token": result})


@settings(max_examples=150, deadline=None)
@given(TEXTS, FLOATS, INTEGERS, UNITS, FORMS)
def test_no_answer_is_larger(text, numbers, integers, units, form):
    answer = answer_of(text, numbers, integers, units)
    assert len(encode(answer, form)) <= size_estimate(answer, form)


def test_only_what_is_compressed_may_grow():
    plain, coded = (
        size_estimate(ANSWER, ResponseFormat(coding=name)) for name in ("identity", "br")
    )
    assert plain < coded < 2 * plain + FRAME_BYTES


@pytest.mark.parametrize("media_type", MEDIA_TYPES)
def test_the_texts_of_an_analysis_count(media_type):
    result = Result(arrays={}, metadata={"texts": ['"'] * 10_000})
    answer, form = replace(ANSWER, analyses={"a": result}), ResponseFormat(media_type=media_type)
    assert len(encode(answer, form)) <= size_estimate(answer, form)


@pytest.mark.parametrize("media_type", MEDIA_TYPES)
def test_it_is_enough_for_the_longest_numbers_and_hardly_more(media_type):
    numbers = np.full((8, 8, 40, 40), LONGEST, np.float32)
    answer, form = (
        Arrays(tensors={"numbers": named(numbers)}, metadata={}),
        ResponseFormat(media_type=media_type),
    )
    n_bytes = len(encode(answer, form))
    assert n_bytes <= size_estimate(answer, form) < 1.05 * n_bytes


def sent(response):
    messages = []

    async def send(message):
        messages.append(message)

    asyncio.run(response({"type": "http"}, None, send))
    return messages


@pytest.mark.parametrize(
    ("n_bytes", "n_pieces"),
    [(0, 1), (1, 1), (UNREAD_BYTES, 1), (CHUNK_BYTES, 2), (CHUNK_BYTES + 1, 3), (2**20, 5)],
)
def test_pieces_follow_each_other_and_the_last_one_says_so(n_bytes, n_pieces):
    content = bytes(range(256)) * (n_bytes // 256) + b"x" * (n_bytes % 256)
    outgoing = Outgoing(limit=2**21)
    reservation = outgoing.reserve(n_bytes)
    start, *pieces = sent(ChunkedResponse(content, "application/json", {}, reservation))
    assert outgoing.n_bytes == 0
    assert (start["status"], len(pieces)) == (200, n_pieces)
    assert (b"content-length", str(n_bytes).encode()) in start["headers"]
    assert b"".join(piece["body"] for piece in pieces) == content
    assert [piece["more_body"] for piece in pieces] == [True] * (n_pieces - 1) + [False]
    assert n_bytes <= UNREAD_BYTES or pieces[-1]["body"] == b"", "which waits for what is unread"


WEIGHTS = NamedArray(("query", "key"), np.eye(3, dtype=np.float32))


TRACE = Trace(
    model="m", revision="r", precision="float32", text="a", tokens=(), tensors={"w": WEIGHTS}
)


ANSWER = Answer(id="id", trace=TRACE, analyses={})


def test_another_release_of_a_compressor_has_its_own_tags(monkeypatch):
    """Replicas that were built at different times may stand behind one address."""
    plain, coded = ResponseFormat(), ResponseFormat(coding="zstd")
    before = {form: entity_tag(ANSWER, form) for form in (plain, coded)}
    monkeypatch.setattr(sending, "LIBRARIES", "others")
    assert entity_tag(ANSWER, plain) == before[plain]
    assert entity_tag(ANSWER, coded) != before[coded]
