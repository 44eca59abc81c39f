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
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from tests.load.people import ACTIONS, Person
from tests.load.report import MAX_GROWTH, MEGABYTE, Tally
from tests.load.run import rss_of
from tests.server_process import serving

SEED = 2
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


class Point(NamedTuple):
    """The server's memory after so many requests, and the part of it that is finished traces."""

    n_requests: int
    rss: int
    cache_bytes: float = 0.0


def main():
    """Ask, print the curve; 1 where memory grew too much or something else went wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--requests", type=int, default=10_000, help="how many")
    parser.add_argument("--people", type=int, default=3, help="who ask them, each one at a time")
    asked = parser.parse_args()
    tally = Tally()
    with serving() as server:
        curve = asyncio.run(ask(server, tally, asked.requests, asked.people))
    table = Table("requests", "memory, MB", "of it finished traces, MB", title="Memory")
    for n_requests, *sizes in curve:
        table.add_row(f"{n_requests:,}", *(f"{size / MEGABYTE:.0f}" for size in sizes))
    console.print(table)
    for surprise, count in tally.surprises.most_common(10):
        console.print(f"{count} × {surprise}", markup=False)
    figures = (growth(curve) / MEGABYTE, MAX_GROWTH / MEGABYTE)
    console.print("grown by {:.1f} MB; {:.0f} MB are allowed".format(*figures))
    return 1 if growth(curve) > MAX_GROWTH or tally.surprises else 0


def growth(curve):
    """Bytes that the last sample has above the first that was taken once things had settled."""
    settled = next(point for point in curve if point.n_requests >= SETTLED or point is curve[-1])
    return curve[-1].rss - settled.rss


async def ask(server, tally, n_requests, n_people):
    """Send the requests and return the curve."""
    chance, curve = random.Random(SEED), list[Point]()
    people = [Person(server.url, tally, random.Random(chance.random())) for _ in range(n_people)]
    if n_requests > SETTLED:
        await ask_everything(people[0])
    while tally.n_requests < n_requests:
        until = min(tally.n_requests + SAMPLE, n_requests)
        await asyncio.gather(*(keep_busy(person, until) for person in people))
        await people[0].post("trace, large", "trace", chance.choice(LARGE), (200, 422))
        counts = not curve or curve[-1].n_requests < SETTLED or tally.n_requests >= n_requests
        if counts and n_requests > SETTLED:
            await asyncio.sleep(QUIET_SECONDS)
        cached = await asyncio.to_thread(server.gauge, "cache_bytes")
        curve.append(Point(tally.n_requests, rss_of(server.process.pid), cached))
        gc.collect()
    for person in people:
        await person.http.aclose()
    return curve


async def ask_everything(person):
    """One of every kind, all that is large, and long texts that fill the cache."""
    for act in ACTIONS.values():
        await act(person)
    for request in LARGE:
        await person.post("trace, large", "trace", request, (200, 422))
    for number in range(FILLING):
        request = {"model": "stories", "text": f"{number} " + "a b " * 90}
        await person.post("trace, long", "trace", request)


async def keep_busy(person, until):
    while person.tally.n_requests < until:
        await person.act()


if __name__ == "__main__":
    sys.exit(main())
