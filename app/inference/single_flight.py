"""Equal questions asked at one time are computed once, for all who wait."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Generic, TypeVar

from headlight.errors import Problem
from headlight.inference.disconnects import Departure, watching
from headlight.inference.engine import ClientLeft

Result = TypeVar("Result")


class Sharing(Generic[Result]):
    """Computations that run, each under the name of what it computes.

    One goes on as long as anybody waits for it, whoever asked first; when the last has left, it is
    told so.

    Args:
        on_share: called whenever somebody joins a computation that runs already.
    """

    def __init__(self, on_share: Callable[[], object] = lambda: None) -> None:
        self._on_share = on_share
        self._running: dict[str, _Computation[Result]] = {}

    def __len__(self) -> int:
        return len(self._running)

    async def share(
        self, name: str, compute: Callable[[Departure], Awaitable[Result]], client_left: Departure
    ) -> Result:
        """What `compute` returns or raises, for this client and all others who ask for the name.

        Args:
            name: what is computed.
            compute: begun where nothing of the name runs; it is given what waits until nobody
                waits for its result any more.
            client_left: waits until this client does not wait any more.

        Raises:
            ClientLeft: this client left; the others go on waiting.
        """
        while True:
            running = self._running.get(name)
            computation = running or self._begin(name, compute)
            if running:
                self._on_share()
            try:
                return await computation.wait(client_left)
            except Problem as problem:
                # Who asked first has waited too long in the queue; who came later has not.
                if not running or problem.kind != "queue-timeout":
                    raise

    def _begin(
        self, name: str, compute: Callable[[Departure], Awaitable[Result]]
    ) -> "_Computation[Result]":
        computation = _Computation(compute, on_end=partial(self._forget, name))
        self._running[name] = computation
        return computation

    def _forget(self, name: str, computation: "_Computation[Result]") -> None:
        if self._running.get(name) is computation:
            del self._running[name]


class _Computation(Generic[Result]):
    """One computation and how many wait for it."""

    def __init__(
        self,
        compute: Callable[[Departure], Awaitable[Result]],
        on_end: Callable[["_Computation[Result]"], object],
    ) -> None:
        self._n_waiting = 0
        self._everyone_left = asyncio.Event()
        self._on_end = on_end
        self._result: asyncio.Future[Result] = asyncio.ensure_future(
            compute(self._everyone_left.wait)
        )
        self._result.add_done_callback(self._end)

    async def wait(self, client_left: Departure) -> Result:
        self._n_waiting += 1
        try:
            with watching(client_left) as departure:
                futures: set[asyncio.Future[Any]] = {self._result, departure}
                await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
            if not self._result.done():
                departure.result()  # raises what is wrong with the rest of the request
                raise ClientLeft
            return self._result.result()
        finally:
            self._n_waiting -= 1
            if not self._n_waiting:
                self._on_end(self)  # whoever asks from now on begins anew
                self._everyone_left.set()

    def _end(self, result: asyncio.Future[Result]) -> None:
        self._on_end(self)
        if not result.cancelled():
            result.exception()  # seen, though perhaps nobody is left to be told
