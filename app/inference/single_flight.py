"""Single flight: equal jobs asked for at the same time are computed once.

https://pkg.go.dev/golang.org/x/sync/singleflight. async-lru shares a call too, but goes on with it
when every caller has left, and fails all of them with the first.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any

from headlight.errors import Problem
from headlight.inference.engine import ClientLeft, Engine, Job, unless_client_leaves


@dataclass
class _Flight:
    """A job in the engine and how many clients wait for its result."""

    job: Job
    n_waiting: int = 0


class SingleFlight:
    """The jobs that are in the engine, by the key of what they compute.

    A job is withdrawn when the last of its clients disconnects.

    Args:
        engine: runs the jobs.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._flights: dict[Hashable, _Flight] = {}

    def __len__(self) -> int:
        return len(self._flights)

    async def run(
        self,
        key: Hashable,
        make_job: Callable[[], Job],
        join: Callable[[Job], object],
        client_left: ClientLeft | None,
    ) -> Any:
        """The result of the job under that key, for this client and all others who ask for it.

        Args:
            key: what is computed.
            make_job: makes the job if none is in the engine.
            join: called with the job if one is.
            client_left: waits until this client disconnects.

        Raises:
            Problem, ClientDisconnected: as `Engine.run`.
        """
        while True:
            flight = self._flights.get(key)
            has_joined = flight is not None
            if flight is None:
                flight = self._flights[key] = _Flight(self._engine.submit(make_job()))
                flight.job.future.add_done_callback(partial(self._forget, key))
            else:
                join(flight.job)
            flight.n_waiting += 1
            try:
                return await unless_client_leaves(flight.job.future, client_left)
            except Problem as problem:
                # The first client has waited too long in the queue; one that joined has not.
                if not has_joined or problem.kind != "queue-timeout":
                    raise
            finally:
                flight.n_waiting -= 1
                if not flight.n_waiting:
                    if self._flights.get(key) is flight:
                        del self._flights[key]
                    self._engine.withdraw(flight.job)

    def _forget(self, key: Hashable, future: object) -> None:
        flight = self._flights.get(key)
        if flight is not None and flight.job.future is future:
            del self._flights[key]
