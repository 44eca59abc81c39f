"""The figures of a run: counted as they come, then printed, and each promise with its verdict."""

import signal
from collections import Counter, defaultdict
from dataclasses import dataclass, field

import numpy as np
from rich.table import Table
from service import Watch

PROBLEM = "application/problem+json"
REFUSED = 503

MAX_SURPRISES = 20


@dataclass
class Kind:
    """The requests of one kind."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    """Of those that were answered as they should be."""
    n_bytes: int = 0

    @property
    def n_requests(self):
        """How many there were, those that nobody waited for included."""
        return self.statuses.total()

    def milliseconds(self, percent):
        """A percentile of the durations."""
        return 1000 * float(np.percentile(self.seconds, percent)) if self.seconds else float("nan")


LEFT = 0
"""Counted as a status: the client left before the answer."""


@dataclass
class Tally:
    """Everything that a run's clients saw."""

    kinds: dict[str, Kind] = field(default_factory=lambda: defaultdict(Kind))
    surprises: Counter[str] = field(default_factory=Counter)
    """Unexpected answers, and how often they came."""
    n_checked: int = 0
    """Answers whose numbers and words were looked at."""

    def add(self, kind, reply, expected=(200,)):
        """Count an answer; True where it is one of those expected."""
        counted = self.kinds[kind]
        counted.statuses[reply.status] += 1
        counted.n_bytes += reply.n_bytes
        if reply.status in expected:
            counted.seconds.append(reply.seconds)
        elif not is_refusal(reply):
            self.surprise(f"{kind}: {reply.status} {reply.body[:200].decode(errors='replace')}")
        if reply.status >= 400 and reply.headers.get("content-type") != PROBLEM:
            self.surprise(f"{kind}: {reply.status} is no problem document")
        return reply.status in expected

    def left(self, kind):
        """Count a request whose client did not wait for the answer."""
        self.kinds[kind].statuses[LEFT] += 1

    def refused(self, kind):
        """Count a refusal that came after the answer had begun: as the last event of a stream."""
        self.kinds[kind].statuses[REFUSED] += 1

    def surprise(self, what):
        """Remember something that must not be."""
        if what in self.surprises or len(self.surprises) < MAX_SURPRISES:
            self.surprises[what] += 1
        else:
            self.surprises["and more"] += 1

    @property
    def n_requests(self):
        """Requests of all kinds."""
        return sum(kind.n_requests for kind in self.kinds.values())

    def n_with(self, status):
        """Answers with a status."""
        return sum(kind.statuses[status] for kind in self.kinds.values())

    @property
    def n_server_errors(self):
        """Answers of 500 and above that are no deliberate refusal."""
        return sum(
            n
            for kind in self.kinds.values()
            for status, n in kind.statuses.items()
            if status >= 500 and status != REFUSED
        )


def is_refusal(reply):
    """A deliberate refusal is a 503, a problem document, and has Retry-After."""
    return (
        reply.status == REFUSED
        and reply.headers.get("content-type") == PROBLEM
        and "retry-after" in reply.headers
    )


MEGABYTE = 10**6
MAX_GROWTH = 50 * MEGABYTE
MAX_REFUSED = 0.1
MAX_HEALTH_SECONDS = 0.5
MIN_SECONDS_FOR_MEMORY = 100
"""In a shorter run the first tenth is over before everything was in use once."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """Everything that is known after a run."""

    n_users: int
    seconds: float
    think: float
    tally: Tally
    watch: Watch
    log: str
    stop_seconds: float
    exit_status: int | None


@dataclass(frozen=True)
class Promise:
    """Something that must hold, and what was seen."""

    what: str
    seen: str
    is_kept: bool


def promises(run):
    """The promises of a run, each with its verdict."""
    tally = run.tally
    refused = tally.n_with(REFUSED) / max(1, tally.n_requests)
    health = 1000 * np.percentile(run.watch.health, 99, method="lower")
    faults = run.log.count("Traceback")
    return [
        Promise("no 5xx but deliberate 503", str(tally.n_server_errors), not tally.n_server_errors),
        Promise("no answer that surprises", str(tally.surprises.total()), not tally.surprises),
        Promise("at most 10 % refused", f"{refused:.2%}", refused <= MAX_REFUSED),
        Promise(
            f"/healthz within {1000 * MAX_HEALTH_SECONDS:g} ms (p99)",
            f"{health:.0f} ms",
            bool(health <= 1000 * MAX_HEALTH_SECONDS),
        ),
        *_memory_promise(run),
        Promise("no exception in the log", str(faults), not faults),
        Promise(
            "stops when it is told to",
            f"{run.stop_seconds:.1f} s, status {run.exit_status}",
            run.exit_status in (0, -signal.SIGTERM),
        ),
    ]


def _memory_promise(run):
    if run.seconds < MIN_SECONDS_FOR_MEMORY:
        return []
    growth = growth_of(run)
    seen = f"{growth / MEGABYTE:+.0f} MB"
    return [Promise("memory flat after a tenth", seen, growth <= MAX_GROWTH)]


def growth_of(run):
    """How far memory rose over where it was after the first tenth, in bytes."""
    later = [sample.rss for sample in run.watch.memory if sample.second >= run.seconds / 10]
    return max(later) - later[0] if later else 0


def print_report(console, run):
    """Print every figure, and the promises last."""
    console.print(_requests(run))
    for line in _sentences(run):
        console.print(line)
    for what, n in run.tally.surprises.most_common():
        console.print(f"surprise, {n} times: {what}", style="red", markup=False)
    table = Table("promise", "seen", "kept", box=None, pad_edge=False)
    for promise in promises(run):
        word = "yes" if promise.is_kept else "NO"
        table.add_row(promise.what, promise.seen, word, style="" if promise.is_kept else "red")
    console.print(table)


def _requests(run):
    table = Table("requests", box=None, pad_edge=False)
    for name in ("number", "p50 ms", "p95 ms", "p99 ms", "kB each", "statuses"):
        table.add_column(name, justify="left" if name == "statuses" else "right")
    for name, kind in sorted(run.tally.kinds.items()):
        statuses = ", ".join(
            f"{'left' if status == LEFT else status}: {n}"
            for status, n in sorted(kind.statuses.items())
        )
        times = [f"{kind.milliseconds(p):.0f}" if kind.seconds else "" for p in (50, 95, 99)]
        size = f"{kind.n_bytes / 1000 / max(1, kind.n_requests):.1f}"
        table.add_row(name, str(kind.n_requests), *times, size, statuses)
    return table


def _sentences(run):
    tally, memory = run.tally, run.watch.memory
    n_bytes = sum(kind.n_bytes for kind in tally.kinds.values())
    health = 1000 * np.percentile(run.watch.health, [50, 99, 100], method="lower")
    elapsed = memory[-1].second
    samples = " ".join(f"{sample.rss / MEGABYTE:.0f}" for sample in memory)
    return [
        f"{tally.n_requests} requests of {run.n_users} people in {elapsed:.0f} s, who think "
        f"{run.think:g} s on average: {tally.n_requests / elapsed:.0f} requests and "
        f"{n_bytes / elapsed / MEGABYTE:.1f} MB a second; {tally.n_with(REFUSED)} refused; "
        f"{tally.n_checked} answers looked at.",
        f"/healthz, {len(run.watch.health)} times: p50 {health[0]:.1f} ms, p99 {health[1]:.0f} ms, "
        f"slowest {health[2]:.0f} ms.",
        f"Memory in MB: {samples}.",
    ]
