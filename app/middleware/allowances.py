"""How often a client may still ask: an allowance that refills steadily.

The generic cell rate algorithm: of each client one number is kept, the moment at which its
allowance will be whole again. As many requests as a minute allows may come at once; after that one
for each 1/n of a minute. https://en.wikipedia.org/wiki/Generic_cell_rate_algorithm
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

MINUTE = 60.0


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """What a client has left after it asked.

    `wait` is how many seconds it must wait, 0 where it need not; in `full_after` seconds its
    allowance will be whole again.
    """

    n_left: int
    wait: float
    full_after: float


class Allowances:
    """The allowances of the clients that asked last.

    Args:
        per_minute: how many requests each has.
        max_clients: how many are remembered.
        clock: seconds that never go back.
    """

    def __init__(
        self, per_minute: int, max_clients: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.per_minute = per_minute
        self.max_clients = max_clients
        self.clock = clock
        self._whole_at: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._whole_at)

    def take(self, client: str) -> Allowance:
        """Take one request off a client's allowance, where it has one left."""
        now, each = self.clock(), MINUTE / self.per_minute
        whole_at = max(self._whole_at.get(client, now), now)
        wait = max(0.0, whole_at + each - now - MINUTE)
        if wait <= 0:
            whole_at += each
            self._remember(client, whole_at)
        full_after = whole_at - now
        # Rounded, as a sum of many thirds of a second is not quite what it should be.
        n_left = max(0, math.floor(round((MINUTE - full_after) / each, 6)))
        return Allowance(n_left=n_left, wait=wait, full_after=full_after)

    def _remember(self, client: str, whole_at: float) -> None:
        self._whole_at[client] = whole_at
        self._whole_at.move_to_end(client)
        if len(self._whole_at) > self.max_clients:
            self._whole_at.popitem(last=False)
