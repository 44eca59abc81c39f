"""What happened, counted as it happens: statuses, durations, refusals, and what should not be."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import numpy as np

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
    """What no client may see, with how often it was seen."""
    n_checked: int = 0
    """Answers whose numbers and words were looked at."""

    def add(self, kind, reply, expected=(200,)):
        """Count an answer; True where it is one of those expected."""
        counted = self.kinds[kind]
        counted.statuses[reply.status] += 1
        counted.n_bytes += len(reply.body)
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
    """Whether a server said no on purpose: 503, a problem, and when to come again."""
    return (
        reply.status == REFUSED
        and reply.headers.get("content-type") == PROBLEM
        and "retry-after" in reply.headers
    )
