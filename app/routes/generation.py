"""Generate text, one Server-Sent Event for each token."""

import logging
from collections.abc import AsyncIterator
from contextlib import ExitStack
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from headlight.errors import Problem, described, unexpected
from headlight.routes import JsonRoute
from headlight.schemas.generation import GenerateRequest, GenerationEvent
from headlight.serialization.negotiation import negotiate
from headlight.services import Services, ServicesDep, client_left
from headlight.tracing.generation import EVENT_STREAM, EventStream, Generation, encode_event

logger = logging.getLogger(__name__)

STREAM_READ_SECONDS = 30.0
"""How long a client may leave an event unread before its stream is cut: it holds a place."""

router = APIRouter(prefix="/api/v1", tags=["generation"], route_class=JsonRoute)

_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": GenerationEvent,
        "description": "Server-Sent Events: one `start`, a `token` for each token, and one `end` "
        "or `error`. `data` is one line of JSON.",
        "content": {EVENT_STREAM: {"schema": {"type": "object", "title": "An event"}}},
    },
    **described(400, 404, 406, 413, 415, 422, 503, 504),
}


async def _place(services: ServicesDep) -> AsyncIterator[ExitStack]:
    """A place for the stream, kept with its model until the last event or until the client left."""
    with services.streams.place(), ExitStack() as stack:
        yield stack


@router.post("/generate", status_code=200, response_class=EventStream, responses=_ANSWERS)
async def generate(
    body: GenerateRequest,
    request: Request,
    services: ServicesDep,
    place: Annotated[ExitStack, Depends(_place)],
) -> Response:
    """Continue a text, token by token.

    Each event is sent as soon as its token is generated; the tokens of all open streams share
    passes. Closing the connection ends the work. Only decoders generate.
    """
    negotiate(request.headers.get("accept", ""), (EVENT_STREAM,))
    await services.use_model(body.model, place, client_left(request))
    begin = partial(services.generator.begin, body)
    generation, first = await services.engine.run(begin, client_left(request))
    return EventStream(_events(services, generation, first), STREAM_READ_SECONDS)


async def _events(services: Services, generation: Generation, first: bytes) -> AsyncIterator[bytes]:
    """The first event, and then one from every turn on the worker thread."""
    event: bytes | None = first
    engine = services.engine
    try:
        while event is not None and not services.streams.is_stopping:
            services.metrics.tokens_written.inc()
            yield event
            event = await engine.result(engine.submit(generation.next_job()))
        yield (event or b"") + generation.end(is_stopping=event is not None)
    except Problem as problem:
        yield encode_event("error", problem.document())
    except Exception:
        logger.exception("a stream broke off")
        yield encode_event("error", unexpected().document())
