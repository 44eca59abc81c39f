"""Run experiments on separate threads, next to the inference thread.

An experiment computes frame by frame, and only as frames are asked for. A run that is estimated to
take long needs one of a few turns, and waits for it in the order of the requests; short ones wait
for each other on one thread. Both queues are short, and a request that finds its queue full is
rejected. A run ends between two of its steps if its client disconnects or its time is over.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import Thread
from time import monotonic
from typing import Any, TypeVar

import numpy as np
import orjson
from anyio import CapacityLimiter

from headlight.model.checkpoint.files import CheckpointError
from headlight.model.experiments.experiment import Experiment, Frame, Parameters, TooCostly, collect
from headlight.problems import Problem
from headlight.serving.concurrency import ClientLeft, Places, run_in_thread, unless_client_leaves

Result = TypeVar("Result")

QUICK_SECONDS = 3.0
"""Runs with a longer estimated time need a turn."""

MAX_QUEUED = 8
"""Long runs that may wait for their turn."""

MAX_WAITING = 8
"""Short runs that may be open at one time."""


class Turns:
    """Turns in the order in which they were asked for, a few at one time.

    Call it on the event loop. An `anyio.CapacityLimiter` has such a queue too, but does not say how
    many are ahead of one in it.

    Args:
        limit: how many there are at one time.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._queue: deque[Turn] = deque()
        self._n_taken = 0

    def ask(self) -> "Turn":
        """Return a turn, which has come if one is free; it has to be given back."""
        turn = Turn(self)
        self._queue.append(turn)
        self._grant()
        return turn

    def ahead(self, turn: "Turn") -> int:
        """Return how many runs have to end, or give up, before the turn comes."""
        return self._queue.index(turn) + 1 if turn in self._queue else 0

    def give_back(self, turn: "Turn") -> None:
        """End a turn, or give up waiting for it."""
        if turn in self._queue:
            self._queue.remove(turn)
        else:
            self._n_taken -= 1
        self._grant()

    def _grant(self) -> None:
        while self._queue and self._n_taken < self._limit:
            self._n_taken += 1
            self._queue.popleft().come()
        for turn in self._queue:
            turn.move()


class Turn:
    """One turn of `Turns`, which others may be ahead of."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._moved = asyncio.Event()
        self.has_come = False

    @property
    def ahead(self) -> int:
        """How many runs have to end, or give up, before it comes."""
        return self._turns.ahead(self)

    def come(self) -> None:
        """Let the waiting run begin."""
        self.has_come = True
        self._moved.set()

    def move(self) -> None:
        """Tell the waiting run that fewer may be ahead."""
        self._moved.set()

    async def moved(self) -> None:
        """Wait until the turn has come, or fewer runs may be ahead of it."""
        await self._moved.wait()
        self._moved.clear()


class Experiments:
    """The experiments that are running.

    Args:
        places: how many long runs there may be at one time; others wait for their turn.
        seconds: how long a run may take before it is stopped.
    """

    def __init__(self, places: int, seconds: float) -> None:
        self.seconds = seconds
        self.long, self._long_threads = _places(places + MAX_QUEUED), CapacityLimiter(places)
        self._turns = Turns(places)
        self.quick, self._quick_thread = _places(MAX_WAITING), CapacityLimiter(1)
        self._importing: Thread | None = None

    def prepare(self) -> None:
        """Import in the background what training needs; the page calls it before it asks for runs.

        A process imports PyTorch's compiler with its first optimizer, which takes longer than all
        other work of a first step: 2.4 s of 3.1 s of processor time.
        """
        if self._importing is None:
            self._importing = Thread(
                target=import_module, args=("torch._dynamo",), name="import", daemon=True
            )
            self._importing.start()

    @contextmanager
    def run(self, experiment: Experiment, parameters: Parameters) -> Iterator["Run"]:
        """Begin a run, which ends with the block.

        Raises:
            Problem: 422, it would cost too much; 503 with Retry-After, too many are running.
        """
        try:
            experiment.validate(parameters)
        except TooCostly as error:
            kind = f"too-many-{error.what}"
            raise Problem(422, kind, str(error), limit=error.limit, actual=error.actual) from error
        is_long = experiment.cost(parameters).seconds > QUICK_SECONDS
        places = self.long if is_long else self.quick
        threads = self._long_threads if is_long else self._quick_thread
        with places.place():
            turn = self._turns.ask() if is_long else None
            run = Run(experiment, parameters, threads, self.seconds, turn)
            try:
                yield run
            finally:
                run.close()
                if turn is not None:
                    self._turns.give_back(turn)


def _places(limit: int) -> Places:
    return Places(limit, "too-many-experiments", "experiments are running")


class Run:
    """One run of an experiment."""

    def __init__(
        self,
        experiment: Experiment,
        parameters: Parameters,
        threads: CapacityLimiter,
        seconds: float,
        turn: Turn | None,
    ) -> None:
        self.experiment = experiment
        self.parameters = parameters
        self.n_frames = 0
        self._frames = experiment.start(parameters)
        self._threads = threads
        self._seconds = seconds
        self._deadline = monotonic() + seconds
        self._turn = turn

    @property
    def is_waiting(self) -> bool:
        """Whether other runs have to end before this one begins."""
        return self._turn is not None and not self._turn.has_come

    async def queue(self) -> AsyncIterator[bytes]:
        """Yield the data of a `waiting` event, as JSON, whenever other runs are still ahead."""
        told = 0
        while self._turn is not None and not self._turn.has_come:
            if (ahead := self._turn.ahead) != told:
                told = ahead
                yield _encoded({"ahead": ahead})
            await self._turn.moved()
        self._deadline = monotonic() + self._seconds  # waiting is not computing

    async def begin(self, client_left: ClientLeft | None = None) -> None:
        """Wait until the run may begin.

        Raises:
            ClientDisconnected: the client disconnected before.
        """
        await unless_client_leaves(asyncio.ensure_future(self._until_its_turn()), client_left)

    async def _until_its_turn(self) -> None:
        async for _ in self.queue():
            pass

    async def frame(self, client_left: ClientLeft | None = None) -> bytes | None:
        """Return the data of the next `frame` event as JSON, or None after the last frame.

        Raises:
            Problem: 504, the time is over; 499, the client disconnected.
        """
        return await self._in_thread(self._encoded_frame, client_left)

    async def result(self, client_left: ClientLeft | None = None) -> bytes:
        """Return the whole result as JSON; errors are those of `frame`."""
        return await self._in_thread(self._encoded_result, client_left)

    def close(self) -> None:
        """Free what the experiment holds: at once, or when the computation of a frame ends."""
        with suppress(ValueError):  # the generator is running
            self._frames.close()

    async def _in_thread(
        self, work: Callable[[], Result], client_left: ClientLeft | None
    ) -> Result:
        too_slow = f"the experiment took longer than {self._seconds:g} s; {self.experiment.way_out}"
        seconds = self._deadline - monotonic()
        try:
            return await run_in_thread(
                work, self._threads, client_left, seconds=seconds, too_slow=too_slow
            )
        except CheckpointError as error:  # of a model that is not installed
            raise Problem(404, "unknown-model", str(error)) from error

    def _encoded_frame(self) -> bytes | None:
        frame = next(self._frames, None)
        if frame is None:
            return None
        self.n_frames += 1
        return _encoded({"index": self.n_frames - 1, "arrays": _described(frame)})

    def _encoded_result(self) -> bytes:
        return encoded_result(self.experiment, self.parameters, collect(self._frames))


def description(experiment: Experiment, parameters: Parameters) -> dict[str, Any]:
    """Return the members that name an experiment and its parameters."""
    return {"experiment": experiment.id, "parameters": parameters.model_dump()}


def encoded_result(experiment: Experiment, parameters: Parameters, result: Frame) -> bytes:
    """Return a whole result as JSON."""
    members = description(experiment, parameters)
    return _encoded({**members, "arrays": _described(result)})


def encoded_frame(frame: Frame) -> bytes:
    """Return the arrays of a frame as JSON."""
    return _encoded(_described(frame))


def _described(frame: Frame) -> dict[str, Any]:
    """Return the arrays of a frame as `ArrayAnswer` has them."""
    arrays = {}
    for name, array in frame.items():
        is_text = array.data.dtype.kind == "U"
        arrays[name] = {
            "axes": array.axes,
            "shape": array.data.shape,
            "dtype": "string" if is_text else str(array.data.dtype),
            "data": array.data.tolist() if is_text else np.ascontiguousarray(array.data),
        }
        if array.data.ndim == 0:  # which NumPy's contiguous arrays never are
            arrays[name]["data"] = array.data.item()
    return arrays


def _encoded(answer: Mapping[str, Any]) -> bytes:
    return orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)
