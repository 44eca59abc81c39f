"""The load test itself: a short run of it, and what it says when a promise is broken."""

import asyncio
import random

import pytest
from client import Broken, Connection, Reply
from memory import Point, growth
from people import ACTIONS, WEIGHTS, Person
from report import MEGABYTE, Run, Tally, promises
from sentences import MODELS, sentence
from service import Sample, Watch

PROBLEM = {"content-type": "application/problem+json"}


def reply(status=200, headers=None, seconds=0.01):
    return Reply(status=status, headers=headers or {}, body=b"", seconds=seconds)


def run_of(tally=None, *, memory=(400, 410), health=(0.001,), log="", exit_status=0):
    seconds = 600.0
    samples = [
        Sample(second=seconds * (place + 1) / len(memory), rss=size * MEGABYTE)
        for place, size in enumerate(memory)
    ]
    return Run(
        n_users=1,
        seconds=seconds,
        think=20,
        tally=tally or Tally(),
        watch=Watch(health=list(health), memory=samples),
        metrics={},
        log=log,
        stop_seconds=0.1,
        exit_status=exit_status,
    )


def tally_of(*replies, kind="trace"):
    tally = Tally()
    for each in replies:
        tally.add(kind, each)
    return tally


def broken(run):
    return [promise.what for promise in promises(run) if not promise.is_kept]


def test_a_good_run_keeps_every_promise():
    assert broken(run_of(tally_of(reply(), reply(), reply()))) == []


def test_an_error_of_the_server_breaks_a_promise():
    assert "no 5xx but deliberate 503" in broken(run_of(tally_of(reply(500, PROBLEM))))


def test_a_refusal_on_purpose_breaks_none_and_one_without_retry_after_does():
    on_purpose = reply(503, PROBLEM | {"retry-after": "1"})
    answered = [reply()] * 20
    assert broken(run_of(tally_of(on_purpose, *answered))) == []
    assert broken(run_of(tally_of(reply(503, PROBLEM), *answered))) == ["no answer that surprises"]


def test_refusing_everybody_breaks_a_promise():
    refused = [reply(503, PROBLEM | {"retry-after": "1"})] * 5
    assert broken(run_of(tally_of(*refused, reply()))) == ["at most 10 % refused"]


def test_an_error_that_is_no_problem_document_breaks_a_promise():
    tally = Tally()
    tally.add("mistake", reply(404, {"content-type": "text/plain"}), (404,))
    assert broken(run_of(tally)) == ["no answer that surprises"]


def test_memory_may_grow_before_the_first_tenth_is_over_and_not_after_it():
    early = run_of(memory=(100, *[400] * 19))
    late = run_of(memory=(*[400] * 19, 451))
    assert broken(early) == []
    assert broken(late) == ["memory flat after a tenth"]


def test_slow_health_breaks_a_promise():
    assert broken(run_of(health=[2.0] * 10)) == ["/healthz within 500 ms (p99)"]
    assert broken(run_of(health=[float("inf")] * 10)) == ["/healthz within 500 ms (p99)"]


def test_an_exception_in_the_log_breaks_a_promise():
    assert broken(run_of(log="Traceback (most recent call last):")) == ["no exception in the log"]


def test_a_server_that_had_to_be_killed_breaks_a_promise():
    assert broken(run_of(exit_status=-9)) == ["stops when it is told to"]


def test_what_people_do_adds_up_to_a_hundred():
    assert sum(WEIGHTS) == 100


def test_sentences_are_peoples_own():
    chance = random.Random(1)
    for model in MODELS:
        assert len({sentence(chance, model) for _ in range(200)}) > 190


def test_an_answer_that_is_cut_is_broken():
    async def ask():
        async def serve(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
            await writer.drain()
            writer.close()
            await writer.wait_closed()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            host, port = server.sockets[0].getsockname()
            connection = Connection(f"http://{host}:{port}")
            try:
                await connection.ask("GET", "/")
            finally:
                await connection.close()

    with pytest.raises(Broken):
        asyncio.run(ask())


def test_a_person_meets_a_dead_server_with_a_surprise_and_goes_on():
    tally = Tally()
    person = Person(Connection("http://127.0.0.1:1"), tally, random.Random(1))
    asyncio.run(person.act())
    assert any("ConnectError" in what for what in tally.surprises)
    assert set(ACTIONS)


def curve_of(*points):
    return [Point(n_requests=n, rss=rss * MEGABYTE, cache_bytes=0) for n, rss in points]


def test_growth_counts_from_where_things_have_settled():
    curve = curve_of((250, 300), (510, 400), (760, 460), (1_000, 430))
    assert growth(curve) == 30 * MEGABYTE


def test_a_curve_too_short_to_settle_has_not_grown():
    assert growth(curve_of((250, 300))) == 0
