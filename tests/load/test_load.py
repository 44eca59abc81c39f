"""The load test itself: a short run of it, and what it says when a promise is broken."""

import asyncio
import io
import os
import random
from datetime import timedelta
from types import SimpleNamespace

import httpx
import pytest

from tests.load import memory
from tests.load.memory import Point, ask_for, growth, is_level, slope_of
from tests.load.people import WEIGHTS, Person
from tests.load.report import MEGABYTE, Run, Sample, Tally, Watch, promises

PROBLEM = {"content-type": "application/problem+json"}


def reply(status=200, headers=None):
    response = httpx.Response(status, headers=headers, content=b"")
    response.elapsed = timedelta(milliseconds=10)
    return response


def run_of(*replies, memory=(400, 410), health=(0.001,), log="", exit_status=0):
    tally, seconds = Tally(), 600.0
    for each in replies:
        tally.add("trace", each)
    samples = [
        Sample(seconds * (place + 1) / len(memory), size * MEGABYTE)
        for place, size in enumerate(memory)
    ]
    return Run(
        n_users=1,
        seconds=seconds,
        think=20,
        tally=tally,
        watch=Watch(health=list(health), memory=samples),
        log=log,
        exit_status=exit_status,
    )


REFUSAL = reply(503, PROBLEM | {"retry-after": "1"})
ANSWERED = [reply()] * 20
SURPRISE = "no answer that surprises"


@pytest.mark.parametrize(
    ("run", "what"),
    [
        (run_of(*ANSWERED), []),
        (run_of(reply(500, PROBLEM)), ["no 5xx but deliberate 503", SURPRISE]),
        (run_of(REFUSAL, *ANSWERED), []),
        (run_of(reply(503, PROBLEM), *ANSWERED), [SURPRISE]),
        (run_of(REFUSAL, reply()), ["at most 10 % refused"]),
        (run_of(reply(404, {"content-type": "text/plain"})), [SURPRISE]),
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


def test_a_person_meets_a_dead_server_with_a_surprise_and_goes_on():
    tally = Tally()
    asyncio.run(Person("http://127.0.0.1:1", tally, random.Random(1)).act())
    assert any("ConnectError" in what for what in tally.surprises)


def test_growth_counts_from_where_things_have_settled():
    curve = [Point(250, 300), Point(510, 400), Point(760, 460), Point(1_000, 430)]
    assert growth(curve) == 30
    assert growth(curve[:1]) == 0


@pytest.mark.parametrize(("rise", "level"), [(0.0, True), (0.01, True), (1.0, False)])
def test_a_curve_is_level_if_its_last_half_surely_hardly_rises(rise, level):
    noise = [3, -2, 1, -3, 2, -1]
    curve = [Point(n, (600 + rise * n + noise[n % 6]) * MEGABYTE, 0.0, 10.0 * n) for n in range(90)]
    assert is_level(curve) is level
    assert slope_of(curve).low < rise * MEGABYTE / 10 < slope_of(curve).high


class Hasty:
    """A person who is answered at once, and counts how often they were told to wait."""

    def __init__(self, address, tally, chance):
        self.tally = tally
        self.http, self.chance = SimpleNamespace(aclose=self.post), SimpleNamespace()
        self.chance.expovariate = self.wait

    async def act(self):
        self.tally.count("act", 200)
        await asyncio.sleep(0)

    async def post(self, *_):
        pass

    def wait(self, rate):
        self.tally.count("wait", rate)
        return 0.0


@pytest.mark.parametrize(("pause", "rates"), [(0.0, set()), (0.25, {4.0})])
def test_people_pause_for_as_long_as_asked_and_samples_are_written(monkeypatch, pause, rates):
    async def ask_nothing(person):
        pass

    monkeypatch.setattr(memory, "Person", Hasty)
    monkeypatch.setattr(memory, "ask_everything", ask_nothing)
    monkeypatch.setattr(memory, "SAMPLE_SECONDS", 0.01)
    server = SimpleNamespace(url="", process=SimpleNamespace(pid=os.getpid()), gauge=lambda _: 12.0)
    tally, file = Tally(), io.StringIO()
    curve = asyncio.run(ask_for(server, tally, 0.1, 2, pause=pause, file=file))
    assert tally.kinds["act"].statuses[200] > 0
    assert set(tally.kinds["wait"].statuses) == rates
    rows = [tuple(map(float, line.split(","))) for line in file.getvalue().splitlines()]
    assert rows == [tuple(point) for point in curve] != []
