"""What the routes share: settings, models, the inference thread, and whether it is warm."""

from collections.abc import AsyncIterator, Callable
from functools import partial
from importlib.metadata import version
from typing import Annotated, TypeVar

from fastapi import Depends, Request

from headlight.inference.engine import Engine
from headlight.metrics import Metrics
from headlight.readiness import Readiness
from headlight.registry import registry_of
from headlight.schemas.traces import TraceRequest
from headlight.serialization.encoder import Encoder
from headlight.serialization.formats import Form
from headlight.serialization.sending import Outgoing, Room
from headlight.serialization.trace import Answer, Sendable
from headlight.serialization.upper_bound import upper_bound
from headlight.settings import Settings
from headlight.tracing.generation import Generator
from headlight.tracing.service import Traces
from headlight.tracing.streams import Streams
from headlight.tracing.tracer import Tracer

Result = TypeVar("Result")


class Services:
    """Everything one server holds. Nobody's session is in it.

    Args:
        settings: what the server was told.

    Raises:
        ValueError: the device asked for is not there.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.registry = registry_of(settings)
        self.tracer = Tracer(self.registry, settings)
        self.generator = Generator(self.tracer)
        self.readiness = Readiness(self.registry, settings)
        self.engine = Engine(
            queue_length=settings.queue_length,
            queue_seconds=settings.queue_seconds,
            retry_after_seconds=settings.retry_after_seconds,
            work_seconds=settings.work_seconds,
            max_batch=settings.max_batch,
            prepare=self.readiness.prepare,
            on_death=self.readiness.lose,
            on_end=self.readiness.end,
            metrics=self.metrics,
        )
        self.traces = Traces(self.tracer, self.engine, self.metrics, on_end=self.readiness.end)
        self.encoder = Encoder(settings, on_end=self.readiness.end)
        self.outgoing = Outgoing(
            limit=settings.max_outgoing_bytes, retry_after_seconds=settings.retry_after_seconds
        )
        self.streams = Streams(
            limit=settings.max_streams, retry_after_seconds=settings.retry_after_seconds
        )
        self._thread_owners = (self.traces.planner, self.engine, self.encoder)
        self._measure()

    def _measure(self) -> None:
        metrics = self.metrics
        metrics.watch(metrics.queue_length, lambda: self.engine.n_jobs + self.traces.planner.n_jobs)
        metrics.watch(metrics.streams_open, lambda: self.streams.n_open)
        metrics.watch(metrics.outgoing_bytes, lambda: self.outgoing.n_bytes)
        metrics.describe(
            version=version("headlight"),
            model=self.registry.default,
            device=str(self.registry.device),
            precision=str(self.registry.precision).removeprefix("torch."),
        )

    async def run(self, request: Request, work: Callable[[], Result]) -> Result:
        """Run work on the inference thread while the client of that request waits.

        Raises:
            Problem: the queue is full or slow.
            ClientLeft: the client did not wait.
        """
        return await self.engine.run(work, client_left=partial(_departure, request))

    async def trace(self, request: Request, order: TraceRequest) -> Answer:
        """The trace that is asked for, while the client of that request waits.

        Raises:
            Problem, ClientLeft: as `run`; 422 where what is asked for cannot be had.
        """
        return await self.traces.answer(order, partial(_departure, request))

    async def tag(self, request: Request, answer: Answer, form: Form) -> str:
        """The entity tag of an answer in that form, while the client of that request waits.

        Raises:
            Problem, ClientLeft: as `run`.
        """
        return await self.encoder.tag(answer, form, client_left=partial(_departure, request))

    async def encode(self, request: Request, answer: Sendable, form: Form, room: Room) -> bytes:
        """Encode an answer off the event loop, while the client of that request waits.

        Args:
            request: what is answered.
            answer: what was computed.
            form: how it is sent.
            room: is made as large as the answer; whoever has it keeps it until all is sent.

        Raises:
            Problem, ClientLeft: as `run`; 503 where there is too little room, or the model's
                numbers are not finite.
        """
        room.reserve(upper_bound(answer, form))
        departure = partial(_departure, request)
        body = await self.encoder.encode(answer, form, client_left=departure)
        room.settle(len(body))
        return body

    @property
    def is_ready(self) -> bool:
        """Whether the default model is loaded and warm."""
        return self.readiness.is_ready

    @property
    def why_not_ready(self) -> str:
        """What `/readyz` says where it is not."""
        return self.readiness.why_not

    @property
    def n_workers(self) -> int:
        """How many threads are alive; some, where the engine is closed, where they hang."""
        return sum(each.n_workers for each in self._thread_owners)

    def start(self) -> None:
        """Begin to get ready, without waiting for it."""
        self.engine.start()

    def stop(self) -> None:
        """Refuse what is still open: the server's time is up."""
        for each in self._thread_owners:
            each.stop()

    def close(self) -> None:
        """Finish what runs and end every thread; it blocks."""
        for each in self._thread_owners:
            each.close()


async def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


async def _departure(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


ServicesDep = Annotated[Services, Depends(_services)]
"""The services, as a route's parameter."""


async def _room(services: ServicesDep) -> AsyncIterator[Room]:
    with services.outgoing.room() as room:
        yield room


OutgoingRoom = Annotated[Room, Depends(_room)]
"""Room for a route's answer, kept until all of it is sent or its client is gone."""
