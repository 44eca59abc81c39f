"""What the routes share: settings, models, the inference thread, and whether it is warm."""

import logging
import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Annotated, TypeVar

from fastapi import Depends, Request

from app.encoder import Encoder
from app.engine import Engine
from app.form import Form
from app.generator import Generator
from app.metrics import Metrics
from app.problems import Problem
from app.registry import registry_of
from app.schemas import TraceRequest
from app.settings import Settings
from app.streams import Streams
from app.tracer import Tracer

Result = TypeVar("Result")

WARM_UP_TEXT = "Once upon a time there was a little light."

NO_LIMITS = {"max_characters": sys.maxsize, "max_cells": sys.maxsize}

logger = logging.getLogger(__name__)


class State:
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
        self.engine = Engine(
            queue_length=settings.queue_length,
            queue_seconds=settings.queue_seconds,
            retry_after_seconds=settings.retry_after_seconds,
        )
        self.encoder = Encoder()
        self.streams = Streams(
            limit=settings.max_streams, retry_after_seconds=settings.retry_after_seconds
        )
        self._measure()
        self.is_ready = False
        self.why_not_ready = "the default model is being loaded"

    def _measure(self) -> None:
        metrics = self.metrics
        metrics.watch(metrics.queue_length, lambda: self.engine.n_jobs)
        metrics.watch(metrics.streams_open, lambda: self.streams.n_open)
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

    async def warm_up(self) -> None:
        """Load the default model and trace once, so that no client waits for what is slow once."""
        # Not held to the limits for clients, which may be lower than a default trace needs.
        tracer = Tracer(self.registry, self.settings.model_copy(update=NO_LIMITS))
        request = TraceRequest(text=WARM_UP_TEXT)
        try:
            answer = await self.engine.run(partial(tracer.trace, request))
            await self.encoder.encode(answer, Form())
        except Problem as problem:
            logger.error("the default model did not start: %s", problem.detail)
            self.why_not_ready = f"the default model did not start: {problem.detail}"
        except Exception:
            logger.exception("the default model did not start")
            self.why_not_ready = "the default model did not start: the log says why"
        else:
            self.is_ready = True


async def _shared(request: Request) -> State:
    state: State = request.app.state.shared
    return state


async def _departure(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


Shared = Annotated[State, Depends(_shared)]
"""The state, as a route's parameter."""
