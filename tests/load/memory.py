"""Measure a server's memory over ten thousand mixed requests, a few at once.

    make soak                       # or: make soak REQUESTS=2000

What is asked is what people ask in `make load`, and now and then as much as a request may ask for.
A sample is taken when everything that was asked is answered; the first and the last one that count
are taken after a while of quiet, in which the server gives back what is free. The first requests
are one of every kind and as much as there is to ask for, so that every model is loaded and every
file is kept, and some that fill the cache of finished traces. The status is 0 where the memory
after the last request is within 50 MB of where it was after the first 500.
"""

import argparse
import asyncio
import gc
import random
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import orjson
from client import Connection
from people import ACTIONS, Person
from report import Tally
from rich.console import Console
from rich.table import Table
from service import metrics, rss_of, service

SEED = 2
MEGABYTE = 10**6
MOST_GROWTH = 50 * MEGABYTE
SETTLED = 500
SAMPLE = 250
QUIET_SECONDS = 12.0
FILLING = 40
# As much as one request may ask for: every weight and score of the longest text, and of the widest.
LARGE = [
    {"model": "stories", "text": "a b " * 120, "capture": ["*"]},
    {"model": "translate", "text": "the cat " * 60, "target": "le chat " * 60, "capture": ["*"]},
    {"model": "fill", "text": "a [MASK] " * 60, "capture": ["*attention*"]},
    {"model": "positions-alibi", "text": "one two " * 50, "capture": ["logits"]},
]

console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)


@dataclass(frozen=True, kw_only=True)
class Point:
    """The server's memory after so many requests."""

    n_requests: int
    rss: int
    cache_bytes: float


def main():
    """Ask, print the curve; 1 where memory grew too much or something else went wrong."""
    asked = _arguments()
    with tempfile.TemporaryDirectory() as folder, service(Path(folder) / "server.log") as running:
        tally, curve = asyncio.run(_ask(running, asked.requests, asked.people))
    _print(curve, tally)
    return 1 if growth(curve) > MOST_GROWTH or tally.surprises else 0


def growth(curve):
    """Bytes that the last sample has above the first that was taken once things had settled."""
    settled = next(point for point in curve if point.n_requests >= SETTLED or point is curve[-1])
    return curve[-1].rss - settled.rss


async def _ask(running, n_requests, n_people):
    tally, chance = Tally(), random.Random(SEED)
    people = [
        Person(
            Connection(running.address),
            tally,
            random.Random(chance.random()),
        )
        for _ in range(n_people)
    ]
    curve: list[Point] = []
    if n_requests > SETTLED:
        await _ask_everything(people[0])
    while tally.n_requests < n_requests:
        until = min(tally.n_requests + SAMPLE, n_requests)
        await asyncio.gather(*(_busy(person, until) for person in people))
        await _ask_much(people[0], chance.choice(LARGE))
        counts = not curve or curve[-1].n_requests < SETTLED or tally.n_requests >= n_requests
        if counts and n_requests > SETTLED:
            await asyncio.sleep(QUIET_SECONDS)
        curve.append(await asyncio.to_thread(_sample, running, tally.n_requests))
        gc.collect()
    for person in people:
        await person.line.close()
    return tally, curve


async def _ask_everything(person):
    """One of every kind, all that is large, and long texts that fill the cache."""
    for act in ACTIONS.values():
        await act(person)
    for order in LARGE:
        await _ask_much(person, order)
    for number in range(FILLING):
        order = {"model": "stories", "text": f"{number} " + "a b " * 90}
        reply = await person.line.ask("POST", "/api/v1/trace", body=orjson.dumps(order))
        person.tally.add("trace, long", reply)


async def _busy(person, until):
    while person.tally.n_requests < until:
        await person.act()


async def _ask_much(person, order):
    reply = await person.line.ask("POST", "/api/v1/trace", body=orjson.dumps(order))
    person.tally.add("trace, large", reply, (200, 422))


def _sample(running, n_requests):
    cached = metrics(running).get("headlight_cache_bytes", 0.0)
    return Point(n_requests=n_requests, rss=rss_of(running.process.pid), cache_bytes=cached)


def _print(curve, tally):
    table = Table("requests", "memory, MB", "of it finished traces, MB", title="Memory")
    for point in curve:
        cached = f"{point.cache_bytes / MEGABYTE:.0f}"
        table.add_row(f"{point.n_requests:,}", f"{point.rss / MEGABYTE:.0f}", cached)
    console.print(table)
    for surprise, count in tally.surprises.most_common(10):
        console.print(f"{count} × {surprise}", markup=False)
    least = MOST_GROWTH / MEGABYTE
    console.print(f"grown by {growth(curve) / MEGABYTE:.1f} MB; {least:.0f} MB are allowed")


def _arguments():
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=10_000, help="how many")
    parser.add_argument("--people", type=int, default=3, help="who ask them, each one at a time")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
