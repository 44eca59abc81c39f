"""The load test itself: a short run of it, and what it says when a promise is broken."""

import asyncio
import random

import pytest
from client import Broken, Connection, Reply
from memory import Point, growth
from people import ACTIONS, WEIGHTS, Person
from report import MEGABYTE, Run, Tally, promises
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
        log=log,
        stop_seconds=0.1,
        exit_status=exit_status,
    )


def tally_of(*replies, kind="trace"):
    tally = Tally()
    for each in replies:
        tally.add(kind, each)
    return tally


REFUSAL = reply(503, PROBLEM | {"retry-after": "1"})
ANSWERED = [reply()] * 20


@pytest.mark.parametrize(
    ("run", "what"),
    [
        (run_of(tally_of(*ANSWERED)), []),
        (
            run_of(tally_of(reply(500, PROBLEM))),
            ["no 5xx but deliberate 503", "no answer that surprises"],
        ),
        (run_of(tally_of(REFUSAL, *ANSWERED)), []),
        (run_of(tally_of(reply(503, PROBLEM), *ANSWERED)), ["no answer that surprises"]),
        (run_of(tally_of(REFUSAL, reply())), ["at most 10 % refused"]),
        (
            run_of(tally_of(reply(404, {"content-type": "text/plain"}))),
            ["no answer that surprises"],
        ),
        (run_of(memory=(100, *[400] * 19)), []),
        (run_of(memory=(*[400] * 19, 451)), ["memory flat after a tenth"]),
        (run_of(health=[2.0] * 10), ["/healthz within 500 ms (p99)"]),
        (run_of(health=[float("inf")] * 10), ["/healthz within 500 ms (p99)"]),
        (run_of(log="Traceback (most recent call last):"), ["no exception in the log"]),
        (run_of(exit_status=-9), ["stops when it is told to"]),
    ],
)
def test_each_promise_is_judged_by_its_own_figure(run, what):
    assert [promise.what for promise in promises(run) if not promise.is_kept] == what


def test_what_people_do_adds_up_to_a_hundred():
    assert sum(WEIGHTS) == 100


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
    assert growth(curve[:1]) == 0
