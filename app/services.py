"""The services that the routes share: settings, models, the inference engine, and readiness."""

import asyncio
import logging
import signal
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from importlib.metadata import version
from typing import Annotated, TypeVar

from anyio import CapacityLimiter
from fastapi import Depends, Request

from headlight.chapters.library import Library
from headlight.concurrency import (
    ClientLeft,
    Places,
    in_daemon,
    run_in_thread,
    settle,
    unless_client_leaves,
)
from headlight.engine import Engine, is_fatal
from headlight.errors import Problem, server_stopping
from headlight.experiment_runs import Experiments
from headlight.links import Links
from headlight.logs import TELLS_WHY
from headlight.metrics import Metrics
from headlight.model.served import Served
from headlight.models.atlases import Atlases
from headlight.models.registry import Registry, registry_of
from headlight.profiling import ProfileRuns
from headlight.replicas import Shared
from headlight.schemas.edits import EditRequest
from headlight.schemas.traces import TraceRequest
from headlight.serialization.formats import ResponseFormat
from headlight.serialization.sending import Outgoing
from headlight.serialization.trace import encode
from headlight.settings import (
    EXPERIMENT_SECONDS,
    MAX_EXPERIMENTS,
    MAX_OUTGOING_BYTES,
    MAX_SEARCHES,
    Settings,
)
from headlight.tracing.generation import Generator, Streams
from headlight.tracing.service import TraceService, trace_now

Result = TypeVar("Result")

WARM_UP_TEXT = "Once upon a time there was a little light."
NO_LIMITS = {"max_characters": sys.maxsize, "max_cells": sys.maxsize}
N_THREADS = 2
"""For what is too long for the event loop and is not a pass, such as encoding large answers."""

MAX_CIRCUITS = 4
"""Circuits that may be asked for at one time; one is computed at a time."""

N_PLACES = 4
"""Models that are loaded at one time."""

PLACE_SECONDS = 20.0
"""How long a load keeps its place: one that takes longer does not hold up the next."""

logger = logging.getLogger(__name__)


def terminate() -> None:
    """End this process in order, with a status that is not 0."""
    signal.raise_signal(signal.SIGTERM)


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


class Services:
    """Everything that one server holds; it has no sessions.

    `on_fatal` is called once the engine has failed for good; by default it ends the process, for
    the container to restart.

    Raises:
        ValueError: the device asked for does not exist.
    """

    def __init__(
        self,
        settings: Settings,
        on_fatal: Callable[[], object] = terminate,
        shared: Shared | None = None,
    ) -> None:
        self.settings = settings
        self.shared = shared
        self.on_fatal = on_fatal
        self.is_ready = False
        self.has_failed = False
        self.why_not_ready = "the default model is being loaded"
        self.metrics = Metrics(is_shared=shared is not None)
        self.registry = registry_of(settings)
        self.engine = Engine(
            queue_length=settings.queue_length,
            queue_seconds=settings.queue_seconds,
            work_seconds=settings.work_seconds,
            prepare=self._warm_up,
            on_fatal=self._fail,
            metrics=self.metrics,
        )
        self._threads = CapacityLimiter(N_THREADS)
        self.outgoing = Outgoing(MAX_OUTGOING_BYTES)
        self.traces = TraceService(
            self.registry,
            settings,
            engine=self.engine,
            outgoing=self.outgoing,
            metrics=self.metrics,
            threads=self._threads,
            shared=shared,
        )
        self.generator = Generator(self.registry, settings, self.traces.cache.get)
        self.streams = Streams(settings.max_streams)
        self.experiments = Experiments(MAX_EXPERIMENTS, EXPERIMENT_SECONDS)
        self.links = Links(settings)
        self.chapters = Library(settings.chapters_dir)
        self.profiles = ProfileRuns(settings.profile_seconds, settings.device)
        self.circuits = Places(MAX_CIRCUITS, "too-many-circuits", "circuits are being looked for")
        self.circuit_thread = CapacityLimiter(1)
        self.atlases = Atlases(self.registry, settings.atlas_dir)
        self.searches = Places(MAX_SEARCHES, "too-many-searches", "searches are running")
        self._search_thread = CapacityLimiter(1)
        self.loads = Loads(self.registry, settings.load_seconds)
        metrics = self.metrics
        metrics.watch(metrics.queue_length, lambda: self.engine.n_jobs)
        metrics.watch(metrics.streams_open, lambda: self.streams.n_open)
        metrics.watch(metrics.outgoing_bytes, lambda: self.outgoing.n_bytes)
        metrics.describe(
            version=version("headlight"),
            model=self.registry.default,
            device=str(self.registry.device),
            precision=str(self.registry.precision).removeprefix("torch."),
        )

    async def in_thread(self, work: Callable[[], Result], client_left: ClientLeft | None) -> Result:
        """Run work on another thread; it is cancelled, with an error, if the client disconnects."""
        return await run_in_thread(work, self._threads, client_left)

    async def search_in_thread(self, work: Callable[[], Result], client_left: ClientLeft) -> Result:
        """Run work that may take seconds on the thread of searches, as `in_thread`."""
        return await run_in_thread(work, self._search_thread, client_left)

    async def use_model(self, model: str | None, stack: ExitStack, left: ClientLeft) -> str:
        """Keep a model in memory until the stack is closed, and return its id.

        It is loaded first, on a separate thread: that may take seconds or hang, and meanwhile the
        worker thread serves other models.

        Raises:
            Problem: the model is unknown, cannot be used, does not fit into the memory, or takes
                too long; or the server is stopping.
            ClientDisconnected: the client disconnected before it was loaded, which goes on.
        """
        model_id = stack.enter_context(self.registry.using(model))
        if not self.registry.is_loaded(model_id):
            await self.loads.load(model_id, left)
        return model_id

    async def recompute(self, trace_id: str, client_left: ClientLeft) -> bool:
        """Compute a trace that another server of the service has; return True if it is kept now.

        Raises:
            Problem: it cannot be computed now.
            ClientDisconnected: the client disconnected before it was computed.
        """
        content = await self.shared.request_of(trace_id) if self.shared else None
        if content is None:
            return False
        request = TraceRequest.model_validate_json(content)
        with ExitStack() as stack:
            await self.use_model(request.model, stack, client_left)
            await self.fetch_sources(request.edits, client_left)
            job = self.traces.job(request)
            if job.id != trace_id:  # its model has changed meanwhile
                return False
            await self.traces.compute(job, client_left)
        return True

    async def fetch_sources(
        self, edits: Sequence[EditRequest] | None, client_left: ClientLeft
    ) -> None:
        """Compute the traces that edits take values from and that another server has.

        Raises:
            Problem, ClientDisconnected: as `recompute`.
        """
        if self.shared is None:
            return
        for edit in edits or ():
            taken = edit.taken()
            trace_id = taken.source.trace if taken else None
            if trace_id is not None and trace_id not in self.traces.cache:
                await self.recompute(trace_id, client_left)

    def stop(self) -> None:
        """End the streams and loads when the server stops. Any thread may call it."""
        self.streams.stop()
        self.loads.stop()
        self.profiles.stop()

    def _warm_up(self) -> None:
        """Load the default model and trace once, so that no client waits for the slow first pass.

        Without a usable default model the server is alive but not ready: clients can ask for the
        other models. A fatal error is raised.
        """
        # The limits are those of clients, and may be lower than a default trace needs.
        settings = self.settings.model_copy(update=NO_LIMITS)
        try:
            encode(
                trace_now(TraceRequest(text=WARM_UP_TEXT), self.registry, settings),
                ResponseFormat(),
            )
        except Exception as error:
            if is_fatal(error):
                raise
            self.why_not_ready = f"the default model did not start: {_reason(error)}"
        else:
            self.is_ready = True

    def _fail(self, why: str) -> None:
        self.why_not_ready = f"the inference engine failed ({why}); the server ends"
        self.is_ready = False
        self.has_failed = True
        self.on_fatal()


def _reason(error: Exception) -> str:
    if isinstance(error, Problem):
        logger.error("the default model did not start: %s", error.detail)
        return error.detail
    logger.error("the default model did not start", exc_info=error, extra=TELLS_WHY)
    return "the log says why"


async def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


ServicesDep = Annotated[Services, Depends(_services)]
"""The services, as a route's parameter."""
