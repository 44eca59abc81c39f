"""A load test on loopback: a thousand people for ten minutes, against a server that it starts.

    make load                       # or: make load USERS=100 SECONDS=60

Everybody has their own address and connection, comes within the first tenth of the time and
thinks between two things for a twentieth of it on average. The server is another process with
default settings. The status is 0 where every promise was kept.
"""

import argparse
import asyncio
import multiprocessing
import random
import resource
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import httpx
from rich.console import Console

from tests.load.people import Person, live
from tests.load.report import Run, Sample, Tally, Watch, print_report, promises
from tests.server_process import serving

SEED = 1
OTHER_FILES = 100
HEALTH_SECONDS = 0.25
SAMPLE_SECONDS = 10.0

console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)


def main():
    """Make the load, print the report; 1 where a promise was broken."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--users", type=int, default=1000, help="how many people")
    parser.add_argument("--seconds", type=float, default=600, help="for how long")
    asked = parser.parse_args()
    allow_open_files(asked.users)
    think, tally = asked.seconds / 20, Tally()
    # The watcher is another process, so that it measures the server and not the load's maker.
    fresh = multiprocessing.get_context("spawn")
    with serving() as server, ProcessPoolExecutor(1, fresh) as watcher:
        console.print(f"{asked.users} people ask {server.url}", markup=False)
        watched = watcher.submit(watch, server.url, server.process.pid, asked.seconds)
        asyncio.run(crowd(server.url, tally, asked.users, asked.seconds, think))
        seen = watched.result()
        status = server.stop()
        log = server.output + server.errors
    run = Run(
        n_users=asked.users,
        seconds=asked.seconds,
        think=think,
        tally=tally,
        watch=seen,
        log=log,
        exit_status=status,
    )
    print_report(console, run)
    return 0 if all(promise.is_kept for promise in promises(run)) else 1


async def crowd(url, tally, n_users, seconds, think):
    """Run everybody until the time is over."""
    loop, chance = asyncio.get_running_loop(), random.Random(SEED)
    first = Person(url, tally, chance)
    await first.visit()
    await first.http.aclose()
    began = loop.time()
    people = [
        live(
            Person(
                url,
                tally,
                random.Random(chance.random()),
                source=source(number),
                etags=first.etags if number % 2 else None,  # half have been here before
            ),
            arrival=began + chance.uniform(0, seconds / 10),
            think=think,
            until=began + seconds,
        )
        for number in range(n_users)
    ]
    await asyncio.gather(*people)


def source(number):
    """Return an address of one's own, where the system has all of 127.0.0.0/8."""
    return f"127.1.{number // 250}.{number % 250 + 1}" if sys.platform == "linux" else None


def watch(url, pid, seconds):
    """Ask /healthz four times a second and read the server's memory every ten seconds."""
    seen, began, next_sample = Watch(), time.monotonic(), 0.0
    while (second := time.monotonic() - began) < seconds:
        seen.health.append(health(url))
        if second >= next_sample:
            seen.memory.append(Sample(second, rss_of(pid)))
            next_sample += SAMPLE_SECONDS
        time.sleep(HEALTH_SECONDS)
    return seen


def health(url):
    """Return the seconds that /healthz took over a new connection."""
    began = time.perf_counter()
    try:
        is_alive = httpx.get(f"{url}/healthz", timeout=60, verify=False).status_code == 200
    except httpx.HTTPError:
        is_alive = False
    return time.perf_counter() - began if is_alive else float("inf")


def rss_of(pid):
    """Resident memory of a process, in bytes."""
    told = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, check=False)
    return 1024 * int(told.stdout or 0)


def allow_open_files(n_users):
    """Raise the limit of open files: every connection is one, here and in the server."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = n_users + OTHER_FILES
    if hard != resource.RLIM_INFINITY and hard < needed:
        sys.exit(f"{n_users} people need {needed} open files and {hard} are allowed (ulimit -n)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))


if __name__ == "__main__":
    sys.exit(main())
