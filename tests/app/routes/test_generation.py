"""POST /api/v1/generate: a text written on, event by event."""

import asyncio
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest
from pydantic import TypeAdapter

from headlight.model.generation import sampling as generation
from headlight.model.generation.sampling import Sampling
from headlight.problems import Problem
from headlight.schemas.generation import GenerationEvent
from headlight.serialization.sending import EventStream
from headlight.serving.engine import Job
from headlight.tracing import generation as streaming
from tests.app.connections import connect, raw_post, wait_for
from tests.app.reading import events_of, written_tokens

TEXT = "the cat sat on the mat"
DECODERS = ["dense", "slanted", "tiny", "turning"]


def post(client, text=TEXT, n_tokens=6, **options):
    body = {"text": text, "n_tokens": n_tokens, **options}
    return client.post("/api/v1/generate", json=body)


def read(client, *args, **options):
    """Return the data of every token event, and of the end event."""
    answer = post(client, *args, **options)
    start, *tokens, end = events_of(answer)
    assert (start[0], end[0]) == ("start", "end")
    assert {name for name, _ in tokens} <= {"token"}
    return [data for _, data in tokens], end[1]


# --- what is written ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 0.0},
        {"temperature": 1.7, "top_k": 30, "seed": 5},
        {"top_p": 0.9, "seed": 2**63 - 1},
    ],
)
def test_the_tokens_are_those_of_a_direct_computation(client, tiny, options):
    tokens, end = read(client, n_tokens=10, **options)
    ids = [token.id for token in tiny.tokenizer.encode(TEXT)]
    how = {name: value for name, value in options.items() if name != "seed"}
    expected = list(
        generation.generate(
            tiny.model,
            ids,
            n_tokens=10,
            sampling=Sampling(**how),
            seed=options.get("seed", 0),
            stop_id=tiny.tokenizer.end_id,
        )
    )
    assert [token["id"] for token in tokens] == [token.id for token in expected]
    for token, told in zip(expected, tokens, strict=True):
        assert told["probability"] == pytest.approx(token.probability, abs=1e-6)
        assert told["model_probability"] == pytest.approx(token.model_probability, abs=1e-6)
        assert told["rank"] == token.rank
        assert told["text"] == tiny.tokenizer.text_of(token.id)
    assert end["n_tokens"] == len(tokens)
    assert end["text"] == tiny.tokenizer.decode(token.id for token in expected)


def test_layers_and_heads_narrow_what_is_told(client):
    every, _ = read(client)
    some, _ = read(client, layers=[0], heads=[2, 0])
    for token, full_token in zip(some, every, strict=True):
        assert token["id"] == full_token["id"]
        assert (token["attention"]["layers"], token["attention"]["heads"]) == ([0], [2, 0])
        expected = np.array(full_token["attention"]["data"])[:1, [2, 0]]
        np.testing.assert_allclose(token["attention"]["data"], expected, atol=1e-6)
        assert token["experts"] == [], "there are some, but not in layer 0"


def test_a_dense_model_has_no_experts(client):
    assert all(token["experts"] is None for token in read(client, model="dense")[0])


def test_alternatives_are_the_likeliest_tokens_with_both_probabilities(client):
    (token,), _ = read(client, n_tokens=1, n_alternatives=5, top_k=2, temperature=0.5)
    by_model, drawn = (
        [alternative[name] for alternative in token["alternatives"]]
        for name in ("model_probability", "probability")
    )
    assert by_model == sorted(by_model, reverse=True)
    assert drawn[2:] == [0, 0, 0], "cut off by top_k"
    squares = [probability**2 for probability in by_model[:2]]
    assert drawn[:2] == pytest.approx([square / sum(squares) for square in squares], abs=1e-5)
    chosen = token["alternatives"][token["rank"] - 1]
    assert (chosen["id"], chosen["text"]) == (token["id"], token["text"])
    assert read(client, n_tokens=1, n_alternatives=0)[0][0]["alternatives"] == []


def test_the_end_says_why(client, tiny):
    assert read(client)[1]["reason"] == "length"
    tokens, end = read(client, forced=[70, tiny.tokenizer.end_id])
    assert (len(tokens), end["reason"], end["n_tokens"]) == (2, "end_of_text", 2)
    assert (tokens[-1]["text"], tokens[-1]["is_special"]) == ("</s>", True)
    tokens, end = read(client, text="z" * 61, n_tokens=9)
    assert (len(tokens), end["reason"]) == (2, "max_tokens")
    nothing = {"reason": "max_tokens", "n_tokens": 0, "text": ""}
    assert read(client, text="z" * 63) == ([], nothing), "the text fills the model"


def test_events_are_what_the_documentation_says(client):
    event = TypeAdapter(GenerationEvent)
    events = events_of(post(client))
    assert {name for name, _ in events} == {"start", "token", "end"}
    for name, data in events:
        text = json.dumps({"event": name, "data": data})
        event.validate_json(text, strict=True, extra="forbid")


def test_no_cache_keeps_a_stream(client):
    answer = post(client)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"


# --- problems -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "kind", "members"),
    [
        ({"model": "filler"}, "no-generation", {"available": DECODERS}),
        ({"n_tokens": 257}, "too-many-new-tokens", {"limit": 256, "actual": 257}),
        ({"n_tokens": 2, "forced": [1] * 3}, "too-many-forced-tokens", {"limit": 2, "actual": 3}),
        ({"forced": [1, 2], "skip": 3}, "too-many-skipped-tokens", {"limit": 2, "actual": 3}),
        ({"forced": [5, 300]}, "unknown-token", {}),
        ({"layers": [2]}, "unknown-layer", {}),
        ({"heads": [4]}, "unknown-head", {}),
        ({"heads": [1, 1]}, "unknown-head", {}),
        ({"text": "zq" * 50}, "too-many-tokens", {"limit": 64, "actual": 101}),
    ],
)
def test_an_impossible_request_is_rejected(client, problem, options, kind, members):
    body = problem(post(client, **options), 422, kind)
    assert body | members == body


def test_damaged_weights_are_a_problem_before_the_first_token(client, problem, monkeypatch):
    def damaged(*_):
        raise generation.NonFiniteLogits("the logits hold NaN")

    monkeypatch.setattr(generation.Continuation, "take", damaged)
    problem(post(client), 503, "model-unavailable")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (generation.NonFiniteLogits("the logits hold NaN"), "model-unavailable"),
        (Problem(503, "queue-full", "come back"), "queue-full"),
        (ZeroDivisionError(), "internal-error"),
    ],
)
def test_what_goes_wrong_later_is_an_event(client, monkeypatch, error, kind):
    real = generation.Continuation.take

    def break_off(text, *arguments):
        if text.step == 2:
            raise error
        return real(text, *arguments)

    monkeypatch.setattr(generation.Continuation, "take", break_off)
    events = events_of(post(client))
    assert [name for name, _ in events] == ["start", "token", "token", "error"]
    assert events[-1][1]["type"] == f"urn:headlight:problem:{kind}"
    TypeAdapter(GenerationEvent).validate_python({"event": "error", "data": events[-1][1]})


# --- turns, places, and clients that leave --------------------------------------------------------


@pytest.fixture
def hold_tokens(monkeypatch):
    """Yield permits, for which every token after the first waits, and a count."""
    begun, permits = [], threading.Semaphore(0)
    real = streaming.advance

    def advance(generations):
        for each in generations:
            begun.append(each.request.text)
            if each.written:
                assert permits.acquire(timeout=20)
        return real(generations)

    monkeypatch.setattr(streaming, "advance", advance)
    yield begun, permits
    for _ in range(1000):
        permits.release()


def open_stream(server, text=TEXT, n_tokens=200):
    """Return a connection on which a stream was asked for."""
    connection = connect(server)
    connection.sendall(raw_post("generate", text=text, n_tokens=n_tokens))
    return connection


def receive(connection, what, count=1, received=b""):
    """Receive bytes until they hold `what` `count` times, and return them."""
    while received.count(what) < count:
        received += connection.recv(100_000)
    return received


def is_idle(server):
    return server.services.engine.n_jobs == 0 and server.services.streams.n_open == 0


def test_who_leaves_ends_the_work_after_the_token_in_progress(server, hold_tokens):
    begun, permits = hold_tokens
    with open_stream(server) as connection:
        receive(connection, b"event: token")
        wait_for(lambda: len(begun) == 2)
        assert server.services.streams.n_open == 1
    wait_for(lambda: server.services.streams.n_open == 0)
    permits.release()
    wait_for(lambda: is_idle(server))
    assert len(begun) == 2


def test_each_token_is_sent_as_soon_as_it_is_written(server, hold_tokens):
    _, permits = hold_tokens
    with open_stream(server, n_tokens=3) as connection:
        received = b""
        for count in (1, 2, 3):
            received = receive(connection, b"event: token", count, received)
            assert received.count(b"event: token") == count
            permits.release()
        receive(connection, b"event: end", received=received)
    wait_for(lambda: is_idle(server))


def test_a_refused_request_gives_its_place_back(client, problem):
    for _ in range(20):
        problem(post(client, model="filler"), 422, "no-generation")
    assert client.app.state.services.streams.n_open == 0
    assert len(read(client)[0]) == 6


def test_a_client_that_reads_nothing_is_cut_off_and_logged(serving, settings, monkeypatch, caplog):
    monkeypatch.setattr(EventStream, "read_seconds", 0.3)
    with serving(settings) as server:
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        url = httpx.URL(server.url)
        connection.connect((url.host, url.port))
        with connection:
            forever(server, connection)
            wait_for(lambda: server.services.streams.n_open == 1)
            wait_for(lambda: is_idle(server), seconds=20)
    warned = [each.name for each in caplog.records if each.levelname == "WARNING"]
    assert warned == ["headlight.serialization.sending"]


def forever(server, connection):
    """Ask for a stream that never ends by itself and fills every buffer on its way."""
    server.services.generator.begin = lambda _: (Flood(), b"event: token\n\n")
    connection.sendall(raw_post("generate", text="a", n_tokens=2))


class Flood:
    """Events as large as buffers."""

    def next_job(self):
        return Job(None, lambda _: iter([(0, b"data: " + b"z" * 1_000_000 + b"\n\n")]))


def test_streams_end_by_themselves_when_the_server_is_told_to_stop(serving, settings, hold_tokens):
    begun, permits = hold_tokens
    with ThreadPoolExecutor() as pool:
        with serving(settings) as server:
            body = {"text": TEXT, "n_tokens": 200}
            url = f"{server.url}/api/v1/generate"
            answer = pool.submit(httpx.post, url, json=body, timeout=20)
            wait_for(lambda: len(begun) == 2)
            pool.submit(release_when_stopping, server.services.streams, permits)
        *_, token, end = events_of(answer.result())
    assert token[0] == "token"
    assert end == ("end", {**end[1], "reason": "server_stopping", "n_tokens": 2})


def release_when_stopping(streams, permits):
    wait_for(lambda: streams.is_stopping)
    permits.release()


def test_open_streams_share_a_pass(server, monkeypatch):
    """Streams that wait for the worker thread at the same time are continued together."""
    engine, real = server.services.engine, streaming.advance
    sizes, go, gate = [], threading.Event(), threading.Event()

    def n_waiting():
        return len(engine._waiting) + len(engine._continuing)

    def advance(generations):
        if any(each.written for each in generations):
            sizes.append(len(generations))
            assert go.wait(20)
        return real(generations)

    monkeypatch.setattr(streaming, "advance", advance)
    with ThreadPoolExecutor() as pool:
        streams = [pool.submit(read_slowly, server, text) for text in ("the cat", "a small light")]
        wait_for(lambda: sizes and sizes[0] + n_waiting() == 2)  # one, or both, are at the second
        n_before = n_waiting()
        held = pool.submit(lambda: asyncio.run(engine.run(lambda: gate.wait(20))))
        wait_for(lambda: n_waiting() == n_before + 1)
        go.set()
        wait_for(lambda: len(engine._continuing) == 2)  # while the job that holds the gate runs
        gate.set()
        assert held.result()
        assert [len(stream.result()) for stream in streams] == [20, 20]
    assert 2 in sizes


def read_slowly(server, text):
    body = {"text": text, "n_tokens": 20}
    return written_tokens(httpx.post(f"{server.url}/api/v1/generate", json=body, timeout=60))


# --- stops, penalties and searches ----------------------------------------------------------------


def test_a_stop_string_ends_the_text_before_it(client):
    tokens, end = read(client, n_tokens=12, temperature=0.0)
    stop = end["text"][2:5]
    stopped, last = read(client, n_tokens=12, temperature=0.0, stop=[stop])
    assert last["reason"] == "stop"
    assert last["text"] == end["text"][: end["text"].index(stop)]
    assert [token["id"] for token in stopped] == [token["id"] for token in tokens[: len(stopped)]]
    assert 0 < len(stopped) < len(tokens)
    assert last["n_tokens"] == len(stopped)


def test_a_beam_writes_the_text_of_the_search(client, tiny):
    from headlight.model.generation.search import beam_search

    ids = [token.id for token in tiny.tokenizer.encode(TEXT)]
    found = beam_search(tiny.writer(), ids, n_tokens=5, width=3, stop_ids=tiny.end_ids)
    answer = post(client, n_tokens=5, beams=3)
    (_, start), *tokens, (_, end) = events_of(answer)
    assert [data["id"] for _, data in tokens] == found[0].ids
    assert [each["score"] for each in start["candidates"]] == pytest.approx(
        [each.score for each in found], abs=1e-4
    )
    assert start["candidates"][0]["text"] == end["text"]


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"best_of": 2}, "no-reward"),
        ({"best_of": 2, "reward": "tiny"}, "no-reward"),
        ({"best_of": 2, "beams": 2}, "no-reward"),
        ({"best_of": 17}, "validation"),
        ({"beams": 0}, "validation"),
        ({"stop": [""]}, "validation"),
        ({"repetition_penalty": 0}, "validation"),
    ],
)
def test_a_search_that_cannot_be_made_is_refused(client, problem, options, kind):
    answer = post(client, **options)
    assert answer.status_code == 422
    if kind != "validation":
        problem(answer, 422, kind)


def test_special_tokens_can_be_left_out_of_the_text_that_is_written_on(client, tiny):
    (_, start), *_ = events_of(post(client, n_tokens=1, special_tokens=False))
    (_, whole), *_ = events_of(post(client, n_tokens=1))
    assert not any(token["is_special"] for token in start["tokens"])
    assert [token["is_special"] for token in whole["tokens"]].count(True) == 1


def test_skipped_tokens_have_no_event_and_count(client):
    tokens, end = read(client, n_tokens=8, seed=4)
    forced = [token["id"] for token in tokens[:6]]
    rest, same_end = read(client, n_tokens=8, seed=4, forced=forced, skip=6)
    assert [token["index"] for token in rest] == [6, 7]
    assert [token["id"] for token in rest] == [token["id"] for token in tokens[6:]]
    assert [token["position"] for token in rest] == [token["position"] for token in tokens[6:]]
    assert same_end == end
    assert read(client, n_tokens=6, seed=4, forced=forced, skip=6)[0] == []


def test_a_penalty_changes_what_is_written(client):
    plain, _ = read(client, n_tokens=12, temperature=0.0)
    tokens, _ = read(client, n_tokens=12, temperature=0.0, repetition_penalty=10.0)
    ids = [token["id"] for token in tokens]
    assert ids != [token["id"] for token in plain]
    assert len(set(ids)) == len(ids)


def test_a_penalty_changes_what_a_beam_writes(client):
    def written(**options):
        return [token["id"] for token in read(client, n_tokens=12, beams=2, **options)[0]]

    assert len(set(written(repetition_penalty=5.0))) > len(set(written()))
