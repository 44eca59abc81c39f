"""The services that the routes share: settings, models, the inference engine, and readiness."""

import logging
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from threading import Thread
from typing import Annotated, TypeVar

from anyio import CapacityLimiter
from fastapi import Depends, Request

from headlight.chapters.library import Library
from headlight.distribution import __version__
from headlight.models.atlases import Atlases
from headlight.models.loads import Loads
from headlight.models.model_registry import registry_of
from headlight.problems import Problem
from headlight.schemas.edits import EditRequest
from headlight.schemas.traces import TokenizeRequest, TraceRequest
from headlight.serialization.formats import ResponseFormat
from headlight.serialization.sending import Outgoing
from headlight.serialization.trace import encode
from headlight.serving.concurrency import ClientLeft, Desk, Places, run_in_thread
from headlight.serving.engine import Engine, is_fatal
from headlight.serving.experiment_runs import Experiments
from headlight.serving.links import Links
from headlight.serving.logs import TELLS_WHY
from headlight.serving.metrics import Metrics
from headlight.serving.profile_runs import ProfileRuns
from headlight.serving.replicas import Shared
from headlight.settings import (
    EXPERIMENT_SECONDS,
    MAX_EXPERIMENTS,
    MAX_OUTGOING_BYTES,
    MAX_SEARCHES,
    Settings,
)
from headlight.tracing.batch import require_small
from headlight.tracing.generation import Generator, Streams
from headlight.tracing.jobs import check_texts, model_errors_as_problems
from headlight.tracing.service import TraceService, trace_now

Result = TypeVar("Result")

WARM_UP_TEXT = "Once upon a time there was a little light."
NO_LIMITS = dict.fromkeys(("max_characters", "max_cells", "max_held"), sys.maxsize)
N_THREADS = 2
"""Of large answers that are encoded, and as many of what is soon read from a file."""

MAX_CIRCUITS = 4
"""Circuits that may be asked for at one time; one is computed at a time."""

MAX_READINGS = 4
"""Readings of the project's texts, for what a head does over them; one is computed at a time."""

MAX_FILES = 4
"""Chapters that readers drop, and their right answers; one is computed at a time."""

FILE_SECONDS = 10.0

MAX_COMPUTATIONS = 64
"""Short work that is no pass, on one thread: tokens, tiles, encodings, saved pages."""

MAX_PAGES = 4
"""Saved pages that may be made at one time, of 1 s and 2 MB each."""

MAX_CONVERSATIONS = 16
"""Conversations whose text a chat template makes, on one thread: it is a stranger's."""

logger = logging.getLogger(__name__)


def terminate() -> None:
    """End this process in order, with a status that is not 0."""
    signal.raise_signal(signal.SIGTERM)


def _desks(settings: Settings) -> Iterator[Desk]:
    """Yield the desks: circuits, texts, files, short work, searches of atlases, conversations."""
    for most, title, many, seconds, late in (
        (
            *(MAX_CIRCUITS, "too-many-circuits", "circuits are being looked for"),
            *(settings.long_seconds, "the circuit took longer than {} s; send fewer pairs"),
        ),
        (
            *(MAX_READINGS, "too-many-readings", "texts are being read"),
            *(settings.long_seconds, "the texts were not read within {} s; try it later"),
        ),
        (
            *(MAX_FILES, "too-many-files", "files of readers are being read"),
            *(FILE_SECONDS, "the file was not read within {} s; send a shorter one"),
        ),
        (
            *(MAX_COMPUTATIONS, "too-many-computations", "computations are waiting"),
            *(settings.work_seconds, "it took longer than {} s; ask for less"),
        ),
        (
            *(MAX_SEARCHES, "too-many-searches", "searches are running"),
            *(settings.search_seconds, "the search took longer than {} s; name fewer heads"),
        ),
        (
            *(MAX_CONVERSATIONS, "too-many-conversations", "chat templates are being read"),
            *(
                settings.work_seconds,
                "the chat template took longer than {} s; send fewer messages",
            ),
        ),
    ):
        yield Desk(most, title, many, seconds, late.format(f"{seconds:g}"))


class Services:
    """Everything that one server holds; it has no sessions.

    `on_fatal` is called once the engine has failed for good; by default it ends the process, for
    the container to restart. `on_stop` is called when the server is asked to stop.

    Raises:
        ValueError: the device asked for does not exist.
    """

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics | None = None,
        shared: Shared | None = None,
        on_fatal: Callable[[], object] = terminate,
    ) -> None:
        self.settings = settings
        self.shared = shared
        self.on_fatal = on_fatal
        self.on_stop: Callable[[], object] = lambda: None
        self.is_ready = False
        self.has_failed = False
        self.why_not_ready = "the default model is being loaded"
        self.metrics = metrics or Metrics(is_shared=shared is not None)
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
            threads=CapacityLimiter(N_THREADS),
            shared=shared,
        )
        self.generator = Generator(self.registry, settings, self.traces.cache.get)
        self.streams = Streams(settings.max_streams)
        self.experiments = Experiments(MAX_EXPERIMENTS, EXPERIMENT_SECONDS)
        self.links = Links(settings)
        self.chapters = Library(settings.chapters_dir)
        self.profiles = ProfileRuns(
            settings.profile_seconds,
            settings.device,
            for_visitors=settings.visitors_profile or bool(settings.api_keys),
        )
        self.circuits, self.readings, *desks = _desks(settings)
        self.files, self.computations, self.searches, self.chats = desks
        self.pages = Places(MAX_PAGES, "too-many-pages", "pages are being made")
        self.atlases = Atlases(self.registry, settings.atlas_dir)
        self.loads = Loads(self.registry, settings.load_seconds)
        metrics = self.metrics
        metrics.watch(metrics.queue_length, lambda: self.engine.n_jobs)
        metrics.watch(metrics.streams_open, lambda: self.streams.n_open)
        metrics.watch(metrics.outgoing_bytes, lambda: self.outgoing.n_bytes)
        metrics.describe(
            version=__version__,
            model=self.registry.default,
            device=str(self.registry.device),
            precision=str(self.registry.precision).removeprefix("torch."),
        )

    async def in_thread(self, work: Callable[[], Result], client_left: ClientLeft | None) -> Result:
        """Read something on another thread; the client that disconnects gets an error.

        What a client can make long is work for a `Desk`: this has to answer.
        """
        return await run_in_thread(work, self._threads, client_left)

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
            model = await self.use_model(request.model, stack, client_left)
            await self.read_messages(model, request, client_left)
            await self.fetch_sources(request.edits, client_left)
            job = self.traces.job(request)
            if job.id != trace_id:  # its model has changed meanwhile
                return False
            await self.traces.compute(job, client_left)
        return True

    async def read_messages(
        self, model: str, request: TokenizeRequest, client_left: ClientLeft
    ) -> None:
        """Have the messages of a request rendered, which a template may take seconds for.

        The thread that computes passes then finds their text among those that are kept.

        Raises:
            Problem: 422, the messages are too long, or the model's template rejects them.
            ClientDisconnected: the client disconnected meanwhile.
        """
        if (said := request.said) is None:
            return
        check_texts(request, self.settings.max_characters)

        def read() -> None:
            checkpoint, settings = self.registry.checkpoint(model), self.settings
            with model_errors_as_problems():
                checkpoint.tokenizer.encode_messages(said)
            if isinstance(request, TraceRequest):
                job = self.traces.job(request.model_copy(update={"model": model}))
                require_small(checkpoint, job, settings.max_cells, settings.max_held)

        await self.chats.run(read, client_left)

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
        self.on_stop()

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
            Thread(target=self.registry.refresh, name="refresh", daemon=True).start()

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
