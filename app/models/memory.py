"""Models in memory within a budget: the least recently used goes first, never one in use.

The budget holds the weights of all models, parameters × bytes of the precision, and the largest
pass of any of them: there is one pass at a time.
"""

import gc
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Lock

import torch

from headlight.model.checkpoint.files import memory_bytes
from headlight.model.config import Architecture
from headlight.model.served import Served

SHARE = 0.75
"""The part of the machine's memory that models and a pass may take: answers need the rest."""


class NoRoom(ValueError):
    """A model does not fit next to the models in use, or not at all.

    Args:
        needed: bytes of the model.
        limit: bytes of the budget.
        in_use: bytes of the budget that requests hold.
    """

    def __init__(self, needed: int, limit: int, in_use: int) -> None:
        used = f", {in_gb(in_use)} of them in use" if in_use else ""
        super().__init__(
            f"it needs {in_gb(needed)} of memory, and models may have {in_gb(limit)}{used}"
        )
        self.needed, self.limit, self.in_use = needed, limit, in_use


class ModelMemory:
    """Loaded models by id; any thread may ask.

    cachetools was considered: it evicts the least recent item even if a request uses it.

    Args:
        limit: bytes for all models together; None: any number.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self._models: OrderedDict[str, Served] = OrderedDict()
        self._bytes: dict[str, int] = {}
        self._passes: dict[str, int] = {}
        self._uses: Counter[str] = Counter()
        self._lock = Lock()

    def __contains__(self, model: object) -> bool:
        return model in self._models

    @property
    def n_bytes(self) -> int:
        """Bytes of all models and of a pass, with those that are being loaded."""
        return sum(list(self._bytes.values())) + max(list(self._passes.values()), default=0)

    def get(self, model: str) -> Served | None:
        """Return a model that is loaded; it counts as used now."""
        with self._lock:
            if model in self._models:
                self._models.move_to_end(model)
            return self._models.get(model)

    def reserve(self, model: str, n_bytes: int, pass_bytes: int = 0) -> None:
        """Make room for a model that is about to be loaded: unused ones may go.

        Raises:
            NoRoom: the model does not fit; then none goes.
        """
        with self._lock:
            going = self._going(n_bytes, pass_bytes)
            for unloaded in going:
                self._drop(unloaded)
            self._bytes[model], self._passes[model] = n_bytes, pass_bytes
        if going:
            collect()

    def put(self, model: str, served: Served) -> None:
        """Keep a model that was loaded into the room reserved for it."""
        with self._lock:
            self._models[model] = served

    def drop(self, model: str) -> None:
        """Forget a model, or the room reserved for it."""
        with self._lock:
            self._drop(model)

    @contextmanager
    def using(self, model: str) -> Iterator[None]:
        """Keep a model in memory for the block, from when it is loaded."""
        with self._lock:
            self._uses[model] += 1
        try:
            yield
        finally:
            with self._lock:
                self._uses[model] -= 1
                if not self._uses[model]:
                    del self._uses[model]

    def _drop(self, model: str) -> None:
        self._models.pop(model, None)
        self._bytes.pop(model, None)
        self._passes.pop(model, None)

    def _going(self, n_bytes: int, pass_bytes: int) -> list[str]:
        """Return the models that have to go for another one, the least recently used first."""
        if self.limit is None:
            return []
        idle = [model for model in self._models if model not in self._uses]
        staying = dict.fromkeys(self._bytes)
        for going in range(len(idle) + 1):
            needed = self._needed(staying, n_bytes, pass_bytes)
            if needed <= self.limit:
                return idle[:going]
            if going < len(idle):
                del staying[idle[going]]
        own_bytes = n_bytes + pass_bytes
        in_use = needed - own_bytes if own_bytes <= self.limit else 0
        raise NoRoom(own_bytes, self.limit, in_use)

    def _needed(self, staying: Iterable[str], n_bytes: int, pass_bytes: int) -> int:
        """Return the bytes of some models and of another one, with the largest pass of any."""
        models = list(staying)
        weights = sum(self._bytes[model] for model in models)
        passes = [self._passes[model] for model in models]
        return weights + n_bytes + max([pass_bytes, *passes])


def pass_bytes_of(
    config: Architecture, n_tokens: int, max_elements: int, max_held: int, itemsize: int
) -> int:
    """Return the bytes that the largest pass over a text takes in addition to the weights.

    It holds the captured numbers, and the larger of two: the logits, or one layer with the scores,
    the mask and the weights of its heads in float32.

    Args:
        config: of the model.
        n_tokens: of the longest text.
        max_elements: the numbers that an answer may send.
        max_held: the numbers that a pass may hold: more weights or logits are refused.
        itemsize: bytes of a number of the weights.
    """
    layer = 12 * min(config.n_heads * n_tokens**2, max_held)
    layer += itemsize * n_tokens * (4 * config.d_model + 3 * config.d_ff)
    logits = (4 + itemsize) * min(n_tokens * config.vocab_size, max_held)
    return 4 * max_elements + max(layer, logits)


def budget_of(device: torch.device, *, limit: int = 0, workers: int = 1) -> int | None:
    """Return the bytes that the models of one worker may take on a device; None: it is not known.

    Args:
        device: of the weights.
        limit: of the settings; 0: three quarters of the device's memory, shared by the workers.
        workers: the number of processes, each of which loads its own models.
    """
    if limit:
        return limit
    if device.type == "cuda":
        _, whole = torch.cuda.mem_get_info(device)
    else:
        machine_bytes = memory_bytes()
        if machine_bytes is None:
            return None
        whole = machine_bytes
    return int(SHARE * whole) // workers


def collect() -> None:
    """Collect the garbage of dropped models, whose hooks make reference cycles."""
    was_frozen = gc.get_freeze_count() > 0  # as a server is after its start
    gc.unfreeze()
    gc.collect()
    if was_frozen:
        gc.freeze()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def in_gb(n_bytes: int) -> str:
    """Return a number of bytes for a sentence."""
    return f"{n_bytes / 1e9:,.2f} GB" if n_bytes >= 1e8 else f"{n_bytes / 1e6:,.2f} MB"
