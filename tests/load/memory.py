"""Measure a server's memory over ten thousand mixed requests, or over hours, a few at once.

    make soak                       # or: make soak REQUESTS=2000
    make soak MINUTES=120           # as many as there is time for; is the curve level?
    make soak MINUTES=120 PAUSE=0.2 SAMPLES=memory.csv    # next to other work; the curve so far

The requests are those of `make load`, and now and then one as large as a request may be.
A sample is taken when everything that was asked is answered; the first and the last one that count
are taken after a while of quiet, in which the server gives back what is free. The first requests
are one of every kind and as much as there is to ask for, so that every model is loaded and every
file is kept, and some that fill the cache of finished traces. The status is 0 where the memory
after the last request is within 50 MB of where it was after the first 500.

With MINUTES, samples are taken every ten seconds under load, and a line is fitted to the last half
of them. Samples that follow each other are alike, so the interval of its slope is widened by
(1 + r) / (1 - r), r the correlation of neighbours (Santer et al. 2000, section 2,
https://doi.org/10.1029/1999JD901105). The status is 0 where the slope is surely below 1 % of the
memory in the time of that half, or the interval holds zero.
"""

import argparse
import asyncio
import gc
import math
import random
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import httpx
import numpy as np
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
SAMPLE_SECONDS = 10.0
ROWS = 24
LEVEL = 0.01
FILLING = 40
# As much as one request may ask for: every weight and score of the longest text, and of the widest.
LARGE = [
    {"model": "stories", "text": "a b " * 120, "capture": ["*"]},
    {"model": "translate", "text": "the cat " * 60, "target": "le chat " * 60, "capture": ["*"]},
    {"model": "fill", "text": "a [MASK] " * 60, "capture": ["*attention*"]},
    {"model": "positions-alibi", "text": "one two " * 50, "capture": ["logits"]},
    {"model": "stories", "text": "the cat sat " * 2000, "resolution": 256},
]

console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)


class Point(NamedTuple):
    """The server's memory after so many requests, and what it keeps of traces and their tiles."""

    n_requests: int
    rss: int
    kept_bytes: float = 0.0
    second: float = 0.0


class Slope(NamedTuple):
    """The slope of the last half of a curve in bytes a second, with its 95 % interval."""

    value: float
    low: float
    high: float


def main():
    """Ask, print the curve; 1 where memory grew too much or something else went wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--requests", type=int, default=10_000, help="how many")
    parser.add_argument("--minutes", type=float, default=0.0, help="for how long instead")
    parser.add_argument("--people", type=int, default=3, help="who ask them, each one at a time")
    parser.add_argument(
        "--pause", type=float, default=0.0, help="seconds a person waits between two, with minutes"
    )
    parser.add_argument("--samples", help="a CSV file to add each sample to, with minutes")
    asked = parser.parse_args()
    tally = Tally()
    with serving() as server:
        if asked.minutes:
            seconds, n_people = 60 * asked.minutes, asked.people
            with Path(asked.samples).open("w") if asked.samples else nullcontext() as file:
                curve = asyncio.run(
                    ask_for(server, tally, seconds, n_people, pause=asked.pause, file=file)
                )
        else:
            curve = asyncio.run(ask(server, tally, asked.requests, asked.people))
    table = Table("s", "requests", "memory, MB", "of it kept, MB", title="Memory")
    for point in curve[:: math.ceil(len(curve) / ROWS)]:
        sizes = (f"{size / MEGABYTE:.0f}" for size in (point.rss, point.kept_bytes))
        table.add_row(f"{point.second:.0f}", f"{point.n_requests:,}", *sizes)
    console.print(table)
    for surprise, count in tally.surprises.most_common(10):
        console.print(f"{count} × {surprise}", markup=False)
    if asked.minutes:
        half, slope = last_half(curve), slope_of(last_half(curve))
        a_minute = [60 * figure / MEGABYTE for figure in slope]
        console.print(
            "the last half, from {:.0f} s on: mean {:.0f} MB, {:.0f} to {:.0f} MB; slope "
            "{:+.2f} MB a minute, 95 % interval {:+.2f} to {:+.2f}".format(
                half[0].second,
                *(
                    figure([point.rss for point in half]) / MEGABYTE
                    for figure in (np.mean, min, max)
                ),
                *a_minute,
            )
        )
        return 0 if is_level(curve) and not tally.surprises else 1
    figures = (growth(curve) / MEGABYTE, MAX_GROWTH / MEGABYTE)
    console.print("grown by {:.1f} MB; {:.0f} MB are allowed".format(*figures))
    return 1 if growth(curve) > MAX_GROWTH or tally.surprises else 0


def growth(curve):
    """Return the growth in bytes from the first sample after things had settled to the last."""
    settled = next(point for point in curve if point.n_requests >= SETTLED or point is curve[-1])
    return curve[-1].rss - settled.rss


def last_half(curve):
    """Return the samples of the last half of the time."""
    return [point for point in curve if point.second >= curve[-1].second / 2]


def slope_of(points):
    """Fit a line to the memory of some samples."""
    seconds = np.array([point.second for point in points])
    memory = np.array([point.rss for point in points], dtype=float)
    centred = seconds - seconds.mean()
    value = float(centred @ memory / (centred @ centred))
    rest = memory - memory.mean() - value * centred
    spread = float(rest @ rest)
    alike = max(0.0, float(rest[1:] @ rest[:-1]) / spread) if spread else 0.0
    n_independent = max(3.0, len(points) * (1 - alike) / (1 + alike))
    error = 1.96 * math.sqrt(spread / (n_independent - 2) / (centred @ centred))
    return Slope(value, value - error, value + error)


def is_level(curve):
    """Return True if the last half surely rises by less than 1 %, or may not rise at all."""
    half = last_half(curve)
    slope, seconds = slope_of(half), half[-1].second - half[0].second
    is_flat = slope.high * seconds < LEVEL * np.mean([point.rss for point in half])
    return bool(is_flat or slope.low <= 0)


async def ask_for(server, tally, seconds, n_people, *, pause=0.0, file=None):
    """Ask for so many seconds, large requests among the others, and return the curve.

    Args:
        server: that answers.
        tally: where everything is counted.
        seconds: for how long.
        n_people: who ask, each one at a time.
        pause: seconds between two things that a person does, on average.
        file: to which each sample is written as it is taken; None: none.
    """
    chance, curve, began = random.Random(SEED), list[Point](), time.monotonic()
    people = [
        Person(server.url, tally, random.Random(chance.random())) for _ in range(n_people + 1)
    ]
    greedy = people.pop()  # has a connection that nobody closes while its answer is awaited
    await ask_everything(greedy)

    async def live(person):
        while time.monotonic() - began < seconds:
            await person.act()
            if pause:
                await asyncio.sleep(person.chance.expovariate(1 / pause))

    async def watch():
        while (second := time.monotonic() - began) < seconds:
            kept = await kept_bytes(server)
            curve.append(Point(tally.n_requests, rss_of(server.process.pid), kept, second))
            if file:
                print(*curve[-1], sep=",", file=file, flush=True)
            large = chance.choice(LARGE)
            large = {**large, "text": f"{second:.0f} {large['text']}"}  # whose tiles are new
            try:
                await greedy.post("trace, large", "trace", large, (200, 422))
            except httpx.HTTPError as error:
                tally.surprise(f"trace, large: {type(error).__name__}")
            await asyncio.sleep(max(0.0, SAMPLE_SECONDS - (time.monotonic() - began - second)))

    await asyncio.gather(watch(), *map(live, people))
    for person in [greedy, *people]:
        await person.http.aclose()
    return curve


async def ask(server, tally, n_requests, n_people):
    """Send the requests and return the curve."""
    chance, curve, began = random.Random(SEED), list[Point](), time.monotonic()
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
        kept = await kept_bytes(server)
        second = time.monotonic() - began
        curve.append(Point(tally.n_requests, rss_of(server.process.pid), kept, second))
        gc.collect()
    for person in people:
        await person.http.aclose()
    return curve


async def kept_bytes(server):
    gauges = [asyncio.to_thread(server.gauge, name) for name in ("cache_bytes", "tile_bytes")]
    return sum(await asyncio.gather(*gauges))


async def ask_everything(person):
    """Ask one of every kind, all that is large, and long texts that fill the cache."""
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
