"""Long texts: read on a thread of their own, and what is kept of them for tiles.

A book takes minutes, in which the inference thread goes on with short texts.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from threading import Lock
from time import monotonic
from typing import TypeVar

import anyio.to_thread
import numpy as np
from anyio import CapacityLimiter
from cachetools import LRUCache

from headlight.engine import ClientDisconnected, ClientLeft, unless_client_leaves
from headlight.errors import Problem, echo, over_limit, service_unavailable
from headlight.model.cancellation import Cancelled, cancellable
from headlight.model.observation import bin_width
from headlight.model.trace import NamedArray, Tiles
from headlight.schemas.traces import MAX_TILE_CELLS, TileRequest
from headlight.serialization.trace import Answer, Arrays

Result = TypeVar("Result")


class LongTexts:
    """Reads long texts one after another, beside the inference thread.

    Args:
        places: how many may be read or wait.
        seconds: how long one may take.
    """

    def __init__(self, places: int, seconds: float) -> None:
        self.places, self.seconds = places, seconds
        self.n_open = 0
        self._limiter = CapacityLimiter(1)

    async def run(self, work: Callable[[], Result], client_left: ClientLeft | None) -> Result:
        """The result of work that calls `cancellation.check` now and then.

        Raises:
            Problem: 503 with Retry-After, too many wait; 504, it took too long.
            ClientDisconnected: the client disconnected before it was done.
        """
        if self.n_open >= self.places:
            why = f"{self.n_open} long texts are being read already"
            raise service_unavailable(
                "too-many-long-texts", why, limit=self.places, actual=self.n_open
            )
        is_left = threading.Event()
        self.n_open += 1
        run = partial(self._cancellable, work, is_left)
        running = asyncio.ensure_future(anyio.to_thread.run_sync(run, limiter=self._limiter))
        running.add_done_callback(self._close)
        try:
            return await unless_client_leaves(running, client_left)
        finally:
            is_left.set()

    def _close(self, done: asyncio.Future[Result]) -> None:
        self.n_open -= 1
        if not done.cancelled():
            done.exception()  # retrieved

    def _cancellable(self, work: Callable[[], Result], is_left: threading.Event) -> Result:
        deadline = monotonic() + self.seconds
        try:
            with cancellable(lambda: is_left.is_set() or monotonic() > deadline):
                return work()
        except Cancelled:
            # Not chained: the traceback holds the arrays of the pass.
            problem = ClientDisconnected() if is_left.is_set() else self._too_slow()
        raise problem

    def _too_slow(self) -> Problem:
        took = f"this text took longer than the {self.seconds:g} s that are allowed"
        return Problem(504, "too-slow", f"{took}; send a shorter one, or ask for fewer layers")


class KeptTiles:
    """The queries and keys of traces by their ids; any thread may ask.

    Args:
        max_bytes: of all of them; the trace that was used least recently makes room.
    """

    def __init__(self, max_bytes: int) -> None:
        self._kept: LRUCache[str, Mapping[str, Tiles]] = LRUCache(max_bytes, getsizeof=_n_bytes)
        self._lock = Lock()

    @property
    def n_bytes(self) -> int:
        """The memory that they take."""
        return int(self._kept.currsize)

    def take(self, answer: Answer) -> Answer:
        """The answer without its queries and keys, which are kept if they fit."""
        kept = answer.trace.kept
        tiles: tuple[str, ...] = ()
        if kept and _n_bytes(kept) <= self._kept.maxsize:
            with self._lock:
                self._kept[answer.id] = kept
            tiles = tuple(kept)
        return replace(answer, trace=replace(answer.trace, kept={}), tiles=tiles)

    def get(self, trace_id: str) -> Mapping[str, Tiles] | None:
        """The attentions of a trace by path, if they are kept."""
        with self._lock:
            return self._kept.get(trace_id)


def _n_bytes(kept: Mapping[str, Tiles]) -> int:
    return sum(one.n_bytes for one in kept.values())


def tile_answer(
    trace_id: str, kept: Mapping[str, Tiles], request: TileRequest, max_elements: int
) -> Arrays:
    """A rectangle of one head's weights.

    Raises:
        Problem: 422, the trace has no such attention, head or place, or it is too much.
        Cancelled: the client left.
    """
    if request.attention not in kept:
        known = ", ".join(kept)
        detail = f"the trace has no attention {echo(request.attention)}; it has {known}"
        raise Problem(422, "unknown-site", detail)
    queries, keys = request.rectangle
    lengths = [end - begin for begin, end in (queries, keys)]
    if min(lengths) > 0:
        _require_few(lengths, request.resolution, max_elements)
    try:
        found = kept[request.attention].tile(request.head, queries, keys, request.resolution)
    except ValueError as error:
        kind = "unknown-head" if "head" in str(error) else "outside-map"
        raise Problem(422, kind, f"{error}") from error
    widths = [bin_width(length, request.resolution) for length in lengths]
    names = list(found)[:1] if widths == [1, 1] else list(found)
    axes = ("query_bin", "key_bin")
    return Arrays(
        tensors={
            name: NamedArray(axes, found[name].float().cpu().numpy().astype(np.float32, copy=False))
            for name in names
        },
        metadata={
            "id": trace_id,
            "attention": request.attention,
            "head": request.head,
            "queries": queries,
            "keys": keys,
            "tokens_per_bin": widths,
        },
    )


def _require_few(lengths: list[int], resolution: int, max_elements: int) -> None:
    n_cells, bins = lengths[0] * lengths[1], [-(-n // bin_width(n, resolution)) for n in lengths]
    if n_cells > MAX_TILE_CELLS:
        way_out = "ask for a smaller rectangle"
        raise over_limit("tile-cells", limit=MAX_TILE_CELLS, actual=n_cells, way_out=way_out)
    if (n_sent := 2 * bins[0] * bins[1]) > max_elements:
        way_out = "ask for a lower resolution"
        raise over_limit(
            "numbers", kind="too-many-cells", limit=max_elements, actual=n_sent, way_out=way_out
        )
