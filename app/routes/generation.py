"""Generate text, one Server-Sent Event for each token."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import ExitStack
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from headlight.problems import described
from headlight.routes.strict_json import JsonRoute
from headlight.schemas import EVENT_STREAM
from headlight.schemas.generation import GenerateRequest, GenerationEvent
from headlight.serialization.accept import negotiate
from headlight.serialization.sending import EVENTS, EventStream
from headlight.services import Services, ServicesDep
from headlight.serving.concurrency import client_left
from headlight.tracing.generation import Generation

router = APIRouter(prefix="/api/v1", tags=["generation"], route_class=JsonRoute)

_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": GenerationEvent,
        "description": "Server-Sent Events: one `start`, a `token` for each token, and one `end` "
        "or `error`. `data` is one line of JSON.",
        "content": EVENTS,
    },
    **described(400, 404, 406, 413, 415, 422, 503, 504),
}


async def _place(services: ServicesDep) -> AsyncIterator[ExitStack]:
    """Yield a place for the stream, kept until the last event or until the client left."""
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
    model = await services.use_model(body.model, place, client_left(request))
    await services.read_messages(model, body, client_left(request))
    if body.reward is not None and body.best_of > 1:
        await services.use_model(body.reward, place, client_left(request))
    await services.fetch_sources(body.edits, client_left(request))
    begin = partial(services.generator.begin, body)
    generation, first = await services.engine.run(begin, client_left(request))
    return EventStream(_events(services, generation, first))


async def _events(
    services: Services, generation: Generation, first: bytes
) -> AsyncGenerator[bytes]:
    """Yield the first event, and then one from every turn on the worker thread."""
    event: bytes | None = first
    engine = services.engine
    while event is not None and not services.streams.is_stopping:
        services.metrics.tokens_written.inc()
        yield event
        event = await engine.result(engine.submit(generation.next_job()))
    yield (event or b"") + generation.end(is_stopping=event is not None)
