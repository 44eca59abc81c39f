"""Load models, each on its own daemon thread, for a limited time."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from headlight.model.served import Served
from headlight.models.model_registry import Registry
from headlight.problems import Problem, server_stopping
from headlight.serving.concurrency import ClientLeft, in_daemon, settle, unless_client_leaves

N_PLACES = 4
"""Models that are loaded at one time."""

PLACE_SECONDS = 20.0
"""How long a load keeps its place: one that takes longer does not hold up the next."""


class Loads:
    """Loads models, each on its own daemon thread, for a limited time; used on the event loop.

    The files may be a stranger's: a load may hang in a file system or in a library, and a thread
    cannot be ended from outside. So nothing waits for its thread: not another load, not the
    inference thread, and not the end of the process. A load that is given up ends at its next step.

    Args:
        registry: loads the models.
        seconds: how long a load may take before it is given up.
    """

    def __init__(self, registry: Registry, seconds: float) -> None:
        self.registry = registry
        self.seconds = seconds
        self.is_stopping = False
        self._open: dict[str, asyncio.Future[None]] = {}
        self._waiting: deque[Callable[[], None]] = deque()
        self._placed: set[asyncio.Future[None]] = set()

    async def load(self, model: str, client_left: ClientLeft) -> None:
        """Load a model, or wait for its load that has begun.

        Raises:
            Problem: as `Registry.checkpoint`; 504, it takes too long; 503, the server stops.
            ClientDisconnected: the client disconnected before it was loaded, which goes on.
        """
        if self.is_stopping:
            raise server_stopping()
        if (future := self._open.get(model)) is None:
            future = self._open[model] = asyncio.get_running_loop().create_future()
            future.add_done_callback(partial(self._close, model))
            self._waiting.append(partial(self._start, model, future))
            self._begin()
        await unless_client_leaves(future, client_left)

    def stop(self) -> None:
        """Reject all that wait for a load: the server stops. Any thread may call it."""
        self.is_stopping = True
        for future in list(self._open.values()):
            with suppress(RuntimeError):  # the event loop is closed
                future.get_loop().call_soon_threadsafe(settle, future, server_stopping())

    def _begin(self) -> None:
        """Start the loads that wait, as long as there are places."""
        while self._waiting and len(self._placed) < N_PLACES:
            self._waiting.popleft()()

    def _start(self, model: str, future: asyncio.Future[None]) -> None:
        if future.done():
            return
        self._placed.add(future)
        loop = asyncio.get_running_loop()
        place = loop.call_later(PLACE_SECONDS, self._leave, future)
        limit = loop.call_later(self.seconds, self._give_up, model, future)
        load = in_daemon(partial(self.registry.checkpoint, model), "load")

        def finish(_: asyncio.Future[None]) -> None:
            place.cancel()
            limit.cancel()
            load.cancel()  # the thread ends at its next step

        def finished(load: asyncio.Future[Served]) -> None:
            if not load.cancelled():
                settle(future, load.exception())

        future.add_done_callback(finish)
        load.add_done_callback(finished)

    def _close(self, model: str, future: asyncio.Future[None]) -> None:
        future.exception()  # retrieved, even if no client is left
        del self._open[model]
        self._leave(future)

    def _leave(self, future: asyncio.Future[None]) -> None:
        self._placed.discard(future)
        self._begin()

    def _give_up(self, model: str, future: asyncio.Future[None]) -> None:
        self.registry.give_up(model, f"it was not loaded within {self.seconds:g} s")
        detail = (
            f"the model '{model}' was not loaded within the {self.seconds:g} s that are allowed; "
            "choose a smaller one, or raise HEADLIGHT_LOAD_SECONDS"
        )
        settle(future, Problem(504, "model-too-slow", detail))
