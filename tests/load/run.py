"""A load test on loopback: a thousand people for ten minutes, against a server that it starts.

    make load                       # or: make load USERS=100 SECONDS=60

Everybody has an address and a connection of their own, comes within the first tenth of the time and
thinks between two things for a twentieth of it on average. The server is a process of its own with
default settings. The status is 0 where every promise was kept.
"""

import argparse
import asyncio
import random
import resource
import sys
import tempfile
from pathlib import Path

from client import Connection
from people import Person, live
from report import REFUSED, Run, Tally, print_report, promises
from rich.console import Console
from service import SAMPLE_SECONDS, Watcher, rss_of, service

SEED = 1
FILES_BESIDE_CONNECTIONS = 100

console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)


def main():
    """Make the load, print the report; 1 where a promise was broken."""
    asked = _arguments()
    _allow_open_files(asked.users)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "server.log"
        think = asked.seconds / 20
        with service(log) as running:
            console.print(f"{asked.users} people ask {running.address}", markup=False)
            tally, watch = asyncio.run(_crowd(running, asked.users, asked.seconds, think))
        run = Run(
            n_users=asked.users,
            seconds=asked.seconds,
            think=think,
            tally=tally,
            watch=watch,
            log=log.read_text(errors="replace"),
            stop_seconds=running.stop_seconds,
            exit_status=running.process.returncode,
        )
    print_report(console, run)
    return 0 if all(promise.is_kept for promise in promises(run)) else 1


async def _crowd(running, n_users, seconds, think):
    """Everybody, until the time is over; what they and the watcher saw."""
    loop, tally, chance = asyncio.get_running_loop(), Tally(), random.Random(SEED)
    watcher = Watcher(running)
    first = Person(_line(running, n_users), tally, chance)
    await first.visit()
    await first.line.close()
    began = loop.time()
    people = [
        live(
            Person(
                _line(running, number),
                tally,
                random.Random(chance.random()),
                etags=dict(first.etags) if number % 2 else {},  # half have been here before
            ),
            arrival=began + chance.uniform(0, seconds / 10),
            think=think,
            until=began + seconds,
        )
        for number in range(n_users)
    ]
    teller = asyncio.create_task(_tell(running, tally))
    try:
        await asyncio.gather(*people)
    finally:
        teller.cancel()
        watch = await asyncio.to_thread(watcher.stop)
    return tally, watch


def _line(running, number):
    """A connection from an address of its own, where the system has all of 127.0.0.0/8."""
    source = f"127.1.{number // 250}.{number % 250 + 1}" if sys.platform == "linux" else None
    return Connection(running.address, source)


async def _tell(running, tally):
    """A line every ten seconds."""
    began, before, told = asyncio.get_running_loop().time(), 0, 0
    while True:
        await asyncio.sleep(SAMPLE_SECONDS)
        rss = await asyncio.to_thread(rss_of, running.process.pid)
        now = asyncio.get_running_loop().time() - began
        rate = (tally.n_requests - before) / SAMPLE_SECONDS
        before = tally.n_requests
        for what in [*tally.surprises][told:]:
            console.print(f"       surprise: {what}", style="red", markup=False)
        told = len(tally.surprises)
        console.print(
            f"{now:4.0f} s  {before:7} requests  {rate:5.0f} a second  "
            f"{tally.n_with(REFUSED):5} refused  {tally.surprises.total():3} surprises  "
            f"{rss / 1e6:5.0f} MB"
        )


def _allow_open_files(n_users):
    """Every connection is an open file, here and in the server."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = n_users + FILES_BESIDE_CONNECTIONS
    if hard != resource.RLIM_INFINITY and hard < needed:
        sys.exit(f"{n_users} people need {needed} open files and {hard} are allowed (ulimit -n)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))


def _arguments():
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--users", type=int, default=1000, help="how many people")
    parser.add_argument("--seconds", type=float, default=600, help="for how long")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
