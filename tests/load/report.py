"""The figures of a run: counted as they come, then printed, and each promise with its verdict."""

import signal
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from rich.table import Table

PROBLEM = "application/problem+json"
REFUSED = 503
LEFT = 0
"""Counted as a status: the client left before the answer."""

MAX_SURPRISES = 20
MEGABYTE = 10**6
MAX_GROWTH = 50 * MEGABYTE
MAX_REFUSED = 0.1
MAX_HEALTH_SECONDS = 0.5
MIN_SECONDS_FOR_MEMORY = 100
"""In a shorter run the first tenth is over before everything was in use once."""


@dataclass
class Kind:
    """The requests of one kind."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    """Of those that were answered as they should be."""
    n_bytes: int = 0


@dataclass
class Tally:
    """Everything that a run's clients saw."""

    kinds: dict[str, Kind] = field(default_factory=lambda: defaultdict(Kind))
    surprises: Counter[str] = field(default_factory=Counter)
    """Unexpected answers, and how often they came."""
    n_checked: int = 0
    """Answers whose numbers and words were looked at."""

    def count(self, kind, status, seconds=None, n_bytes=0):
        """Count a request."""
        counted = self.kinds[kind]
        counted.statuses[status] += 1
        counted.n_bytes += n_bytes
        if seconds is not None:
            counted.seconds.append(seconds)

    def add(self, kind, response, expected=(200,), body=None):
        """Count an answer, of which `body` was read; a surprise if it should not be."""
        status, is_expected = response.status_code, response.status_code in expected
        seconds = response.elapsed.total_seconds() if is_expected else None
        self.count(kind, status, seconds, response.num_bytes_downloaded)
        is_problem = response.headers.get("content-type") == PROBLEM
        is_refusal = status == REFUSED and is_problem and "retry-after" in response.headers
        if not is_expected and not is_refusal:
            said = (response.content if body is None else body)[:200].decode(errors="replace")
            self.surprise(f"{kind}: {status} {said}")
        if status >= 400 and not is_problem:
            self.surprise(f"{kind}: {status} is no problem document")

    def surprise(self, what):
        """Remember something that must not be."""
        is_kept = what in self.surprises or len(self.surprises) < MAX_SURPRISES
        self.surprises[what if is_kept else "and more"] += 1

    @property
    def statuses(self):
        """How often each status came, of all kinds."""
        return sum((kind.statuses for kind in self.kinds.values()), Counter[int]())

    @property
    def n_requests(self):
        """Requests of all kinds, those that nobody waited for included."""
        return self.statuses.total()


class Sample(NamedTuple):
    """The server's memory at a moment, in bytes."""

    second: float
    rss: int


@dataclass
class Watch:
    """Health and memory of the server during a run."""

    health: list[float] = field(default_factory=list)
    """Seconds that each /healthz took; infinity for one that was not answered."""
    memory: list[Sample] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Run:
    """Everything that is known after a run."""

    n_users: int
    seconds: float
    think: float
    tally: Tally
    watch: Watch
    log: str
    exit_status: int


class Promise(NamedTuple):
    """Something that must hold, and what was seen."""

    what: str
    seen: str
    is_kept: bool


def promises(run):
    """Return the promises of a run, each with its verdict."""
    statuses, surprises = run.tally.statuses, run.tally.surprises.total()
    errors = sum(n for status, n in statuses.items() if status >= 500 and status != REFUSED)
    refused = statuses[REFUSED] / max(1, statuses.total())
    health = float(np.percentile(run.watch.health, 99, method="lower"))
    faults = run.log.count("Traceback")
    checks = [
        Promise("no 5xx but deliberate 503", str(errors), not errors),
        Promise("no answer that surprises", str(surprises), not surprises),
        Promise("at most 10 % refused", f"{refused:.2%}", refused <= MAX_REFUSED),
        Promise(
            f"/healthz within {1000 * MAX_HEALTH_SECONDS:g} ms (p99)",
            f"{1000 * health:.0f} ms",
            health <= MAX_HEALTH_SECONDS,
        ),
        Promise("no exception in the log", str(faults), not faults),
        Promise(
            "stops when it is told to",
            f"status {run.exit_status}",
            run.exit_status in (0, -signal.SIGTERM),
        ),
    ]
    if run.seconds >= MIN_SECONDS_FOR_MEMORY:
        later = [rss for second, rss in run.watch.memory if second >= run.seconds / 10]
        growth = max(later) - later[0] if later else 0
        seen = f"{growth / MEGABYTE:+.0f} MB"
        checks.append(Promise("memory flat after a tenth", seen, growth <= MAX_GROWTH))
    return checks


def print_report(console, run):
    """Print every figure, and the promises last."""
    table = Table("requests", box=None, pad_edge=False)
    for name in ("number", "p50 ms", "p95 ms", "p99 ms", "kB each", "statuses"):
        table.add_column(name, justify="left" if name == "statuses" else "right")
    for name, kind in sorted(run.tally.kinds.items()):
        n_requests = kind.statuses.total()
        statuses = (f"{status or 'left'}: {n}" for status, n in sorted(kind.statuses.items()))
        times = [f"{1000 * np.percentile(kind.seconds or np.nan, p):.0f}" for p in (50, 95, 99)]
        size = f"{kind.n_bytes / 1000 / n_requests:.1f}"
        table.add_row(name, str(n_requests), *times, size, ", ".join(statuses))
    console.print(table)
    n_requests = run.tally.n_requests
    n_bytes = sum(kind.n_bytes for kind in run.tally.kinds.values())
    health = 1000 * np.percentile(run.watch.health, [50, 99, 100], method="lower")
    console.print(
        f"{n_requests} requests of {run.n_users} people in {run.seconds:.0f} s, who think "
        f"{run.think:g} s on average: {n_requests / run.seconds:.0f} requests and "
        f"{n_bytes / run.seconds / MEGABYTE:.1f} MB a second; {run.tally.n_checked} answers "
        f"looked at.\n/healthz, {len(run.watch.health)} times: p50 {health[0]:.1f} ms, "
        f"p99 {health[1]:.0f} ms, slowest {health[2]:.0f} ms.\nMemory in MB: "
        f"{' '.join(f'{sample.rss / MEGABYTE:.0f}' for sample in run.watch.memory)}."
    )
    for what, n in run.tally.surprises.most_common():
        console.print(f"surprise, {n} times: {what}", style="red", markup=False)
    table = Table("promise", "seen", "kept", box=None, pad_edge=False)
    for what, seen, is_kept in promises(run):
        table.add_row(what, seen, "yes" if is_kept else "NO", style="" if is_kept else "red")
    console.print(table)
