"""The progress of a pass over a long text: its share, the time that is left, and its maps so far.

The thread of the pass tells of it, the event loop sends it on as Server-Sent Events.
"""

import base64
from collections.abc import Iterator
from threading import Lock
from time import monotonic
from typing import Any

from headlight.model.attention.observer import PooledMap

EVENT_SECONDS = 0.25
"""The time between two events of progress, and between two looks at the map of a head."""

LEAST_SHARE, LEAST_SECONDS = 0.002, 0.5
"""Less of a pass says too little about the rest: 0.2 % are the first blocks of a book."""

BINS = 64
"""The most bins a side of a map that is shown while it is computed: 16 KB a head."""


class PassProgress:
    """The news of a pass while it runs; every method may be called on any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._began: float | None = None
        self._share = self._sent_share = 0.0
        self._looked = 0.0
        self._maps: dict[tuple[str, int], dict[str, Any]] = {}

    def note(self, share: float) -> None:
        """Take the share of the pass that is done; the clock starts at the first call."""
        with self._lock:
            self._began = monotonic() if self._began is None else self._began
            self._share = share

    def look(self, path: str, heads: slice, pooled: PooledMap, n_read: int) -> None:
        """Keep the maps of some heads for `news`: now and then, and when they are complete."""
        now, is_whole = monotonic(), n_read == pooled.n_queries
        if not is_whole and now - self._looked < EVENT_SECONDS:
            return
        self._looked = now
        maps = pooled.coarse(heads, BINS).cpu().numpy().astype("<f4")
        with self._lock:
            for head, mean in enumerate(maps, start=heads.start):
                self._maps[path, head] = {
                    "attention": path,
                    "head": head,
                    "tokens": [pooled.n_queries, pooled.n_keys],
                    "read": n_read,
                    "bins": list(mean.shape),
                    "mean": base64.b64encode(mean.tobytes()).decode(),
                }

    @property
    def seconds_left(self) -> float | None:
        """The time that the rest takes if it is as fast as what is done; None: not known yet."""
        if self._began is None:
            return None
        took = monotonic() - self._began
        if self._share < LEAST_SHARE or took < LEAST_SECONDS:
            return None
        return took * (1 - self._share) / self._share

    def news(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the names and the data of the events since the last call."""
        with self._lock:
            maps, self._maps = self._maps, {}
            share, left = self._share, self.seconds_left
        yield from (("map", each) for each in maps.values())
        if share > self._sent_share:
            self._sent_share = share
            yield (
                "progress",
                {
                    "share": round(share, 4),
                    "seconds_left": None if left is None else round(left, 1),
                },
            )
