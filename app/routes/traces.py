"""Tokens of a text, and forward passes with exactly the tensors asked for."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Query, Request, Response

from headlight.addresses import full_path
from headlight.model.trace import Token
from headlight.model.tracing import read_ids, require_known, typed_tokens
from headlight.models.model_registry import Registry
from headlight.problems import Problem, described, server_stopping
from headlight.routes.strict_json import JsonRoute
from headlight.schemas import EVENT_STREAM
from headlight.schemas.traces import (
    TileAnswer,
    TileRequest,
    TokenAnswer,
    TokenizeAnswer,
    TokenizeRequest,
    TraceAnswer,
    TraceFormat,
    TraceRequest,
    TracesAnswer,
    TracesRequest,
)
from headlight.serialization.accept import negotiate, negotiate_format
from headlight.serialization.entity_tags import NOT_MODIFIED, TAG, not_modified
from headlight.serialization.formats import FILE, MEDIA_TYPES, ResponseFormat
from headlight.serialization.sending import EVENTS, EventStream, encode_event
from headlight.services import Services, ServicesDep
from headlight.serving.concurrency import client_left
from headlight.tracing.cache import tile_answer
from headlight.tracing.jobs import TraceJob, check_texts, model_errors_as_problems
from headlight.tracing.progress import EVENT_SECONDS, PassProgress

router = APIRouter(prefix="/api/v1", route_class=JsonRoute)

QUICK_CHARACTERS = 500
"""A text of at most this length is tokenized on the event loop, in under a millisecond."""

TraceId = Annotated[
    str, Path(pattern="^[0-9a-f]{32}$", description="The `id` of a trace computed before.")
]
KEPT = "private, immutable, max-age=31536000"
"""A year: the trace of an id never changes. Private, as it holds a client's text."""

_TRACE: dict[str, Any] = {
    "model": TraceAnswer,
    "description": "The trace, as JSON or as one safetensors file.",
    "content": FILE,
}
_LOCATION = {
    "description": "The address of the trace, while it is kept.",
    "schema": {"type": "string"},
}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: _TRACE | {"headers": {"Content-Location": _LOCATION}, "content": FILE | EVENTS},
    **described(400, 404, 406, 413, 415, 422, 503, 504),
}
_SEVERAL: dict[int | str, dict[str, Any]] = {
    200: {
        "model": TracesAnswer,
        "description": "The traces, as JSON or as one safetensors file.",
        "content": FILE,
    },
    **described(400, 404, 406, 413, 415, 422, 503, 504),
}
_KEPT_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: _TRACE | {"headers": TAG},
    304: NOT_MODIFIED,
    **described(404, 406, 422, 503, 504),
}


_TILE: dict[int | str, dict[str, Any]] = {
    200: {
        "model": TileAnswer,
        "description": "The tile, as JSON or as one safetensors file.",
        "content": FILE,
    },
    **described(404, 406, 422, 503, 504),
}


@router.post("/trace", tags=["traces"], response_class=Response, responses=_ANSWERS)
async def trace(body: TraceRequest, request: Request, services: ServicesDep) -> Response:
    """Read a text and return what its forward pass computed.

    With `Accept: application/x-safetensors` the answer is one safetensors file: arrays by site
    name, everything else as JSON in its `__metadata__`. `dtype` and `triangle` make it smaller, and
    `Accept-Encoding` chooses zstd, br or gzip. A request that was computed before is answered
    without a pass, and without timings, while its trace is kept; `Content-Location` names it.

    With `resolution` or `queries` the text may be a book. `Accept: text/event-stream` then gives
    the progress as Server-Sent Events: `progress` several times, with the `share` that is read and
    the `seconds_left`, measured in this pass (null until they are known); with `resolution`, `map`
    with the mean map of a head so far: its `bins`, how many queries are `read`, and the `mean`
    weights as float32 in base64; and `end` with the address of the trace, or `error`. Closing the
    connection ends the pass.
    """
    if negotiate(request.headers.get("accept", ""), (*MEDIA_TYPES, EVENT_STREAM)) == EVENT_STREAM:
        with ExitStack() as stack:
            model = await services.use_model(body.model, stack, client_left(request))
            await services.read_messages(model, body, client_left(request))
            await services.fetch_sources(body.edits, client_left(request))
            job = services.traces.job(body.model_copy(update={"model": model}))
            return EventStream(_progress(services, job), stack.pop_all().close)
    sent_as = negotiate_format(request.headers, body.dtype, triangle=body.triangle)
    with ExitStack() as stack:
        model = await services.use_model(body.model, stack, client_left(request))
        await services.read_messages(model, body, client_left(request))
        await services.fetch_sources(body.edits, client_left(request))
        trace_id, encoded = await services.traces.trace(body, sent_as, client_left(request))
    headers = encoded.sent_as.headers
    if trace_id in services.traces.cache:
        headers |= {"Content-Location": _location(request, trace_id, sent_as)}
    return encoded.response(headers)


async def _progress(services: Services, job: TraceJob) -> AsyncGenerator[bytes]:
    """Yield the events of a trace: `progress` and `map` as its share grows, and `end`."""
    progress = PassProgress()
    traces = services.traces
    reading: asyncio.Future[Any]
    if traces.cache.get(job.id) is None:
        never_left = asyncio.Event().wait  # leaving closes these events
        reading = asyncio.ensure_future(traces.compute(job, never_left, progress))
    else:
        reading = asyncio.ensure_future(asyncio.sleep(0))
    try:
        yield encode_event("progress", {"share": 0.0, "seconds_left": None})
        while not reading.done():
            await asyncio.wait([reading], timeout=EVENT_SECONDS)
            if services.streams.is_stopping:
                raise server_stopping()
            for name, event in progress.news():
                yield encode_event(name, event)
        reading.result()
        if job.id not in traces.cache:
            detail = "the trace is larger than cache_bytes; ask for less of it, or without events"
            raise Problem(422, "trace-not-kept", detail)
        location = f"{router.prefix}/traces/{job.id}"
        yield encode_event("progress", {"share": 1.0, "seconds_left": 0.0})
        yield encode_event("end", {"id": job.id, "location": location})
    finally:
        reading.cancel()


@router.post("/traces", tags=["traces"], response_class=Response, responses=_SEVERAL)
async def traces(body: TracesRequest, request: Request, services: ServicesDep) -> Response:
    """Read up to 64 texts alike; each trace is as if it were asked for alone.

    As JSON the traces are in `traces`. As one safetensors file the name of each array begins with
    the number of its text, `0.logits`, and `traces` in `__metadata__` has everything else. All of
    them together may hold as many numbers as one trace, and one that fails fails the request.
    """
    sent_as = negotiate_format(request.headers, body.dtype, triangle=body.triangle)
    with ExitStack() as stack:
        await services.use_model(body.model, stack, client_left(request))
        await services.fetch_sources(body.edits, client_left(request))
        encoded = await services.traces.traces(body, sent_as, client_left(request))
    return encoded.response(encoded.sent_as.headers)


@router.get(
    "/traces/{trace_id}",
    tags=["traces"],
    operation_id="trace_by_id",
    response_class=Response,
    responses=_KEPT_ANSWERS,
)
async def kept_trace(
    trace_id: TraceId,
    query: Annotated[TraceFormat, Query()],
    request: Request,
    services: ServicesDep,
) -> Response:
    """Return a trace that was computed before, while it is kept; nothing is computed.

    Each worker of a server keeps its own traces: with several, the one that answers may not hold
    this one, and answers 404. POST gives the same trace from each.

    Equal `ETag`s are equal bytes; `If-None-Match` spares sending them again.
    """
    sent_as = negotiate_format(request.headers, query.dtype, triangle=query.triangle)
    answer = services.traces.kept(trace_id)
    if answer is None and await services.recompute(trace_id, client_left(request)):
        answer = services.traces.cache.get(trace_id)
    if answer is None:
        other_workers = "with several workers another one may hold it; "
        other_workers = other_workers if services.settings.workers > 1 else ""
        detail = f"the trace '{trace_id}' is not kept here; {other_workers}POST it to {_POST} again"
        raise _unknown_trace(detail)
    sent_as = sent_as.sized(answer.n_bytes)
    tag = await services.traces.tag(answer, sent_as, client_left(request))
    headers = {**sent_as.headers, "ETag": tag, "Cache-Control": KEPT}
    if known := not_modified(request, headers):
        return known
    encoded = await services.traces.encode(answer, sent_as, client_left(request))
    return encoded.response(headers)


@router.get("/traces/{trace_id}/tile", tags=["traces"], response_class=Response, responses=_TILE)
async def tile(
    trace_id: TraceId,
    query: Annotated[TileRequest, Query()],
    request: Request,
    services: ServicesDep,
) -> Response:
    """Return a rectangle of one head's weights, exact or pooled, of a trace with a resolution.

    It is computed from the trace's queries and keys while these are kept, without a new pass. A
    bin has ceil(length / resolution) tokens on each side; `tokens_per_bin` [1, 1] is exact.
    """
    sent_as = negotiate_format(request.headers)
    kept = services.traces.tiles.get(trace_id)
    if kept is None and await services.recompute(trace_id, client_left(request)):
        kept = services.traces.tiles.get(trace_id)
    if kept is None:
        detail = f"the queries and keys of the trace '{trace_id}' are not kept here"
        way_out = f"POST it to {_POST} again with a resolution"
        raise _unknown_trace(f"{detail}; {way_out}")
    compute = partial(tile_answer, trace_id, kept, query, services.settings.max_cells)
    answer = await services.computations.run(compute, client_left(request))
    encoded = await services.traces.encode(answer, sent_as, client_left(request))
    return encoded.response({**encoded.sent_as.headers, "Cache-Control": KEPT})


_POST = f"{router.prefix}/trace"


def _unknown_trace(detail: str) -> Problem:
    """Return the problem of a trace that is not kept: it may be a moment later."""
    return Problem(404, "unknown-trace", detail, headers={"Cache-Control": "no-store"})


def _location(request: Request, trace_id: str, sent_as: ResponseFormat) -> str:
    """Return the address of a kept trace, in the format that it was just sent in."""
    path = full_path(request, "kept_trace", trace_id=trace_id)
    asked: dict[str, str] = {}
    if sent_as.dtype != "float32":
        asked["dtype"] = sent_as.dtype
    if sent_as.triangle:
        asked["triangle"] = "true"
    return f"{path}?{urlencode(asked)}" if asked else str(path)


@router.post("/tokenize", tags=["tokens"], responses=described(400, 404, 413, 415, 422, 503, 504))
async def tokenize(
    body: TokenizeRequest, request: Request, services: ServicesDep
) -> TokenizeAnswer:
    """Cut a text into a model's tokens, each with its place in the text."""
    check_texts(body, services.settings.max_characters)
    with ExitStack() as stack:
        model = await services.use_model(body.model, stack, client_left(request))
        cut = partial(_cut, services.registry, model, body)
        n_read = len(body.text or body.ids or ())
        await services.read_messages(model, body, client_left(request))
        if n_read <= QUICK_CHARACTERS and services.registry.is_loaded(model):
            tokens = cut()
        else:
            tokens = await services.computations.run(cut, client_left(request))
    answers = [TokenAnswer.model_validate(token, from_attributes=True) for token in tokens]
    return TokenizeAnswer(model=model, tokens=answers)


def _cut(registry: Registry, model: str, body: TokenizeRequest) -> Sequence[Token]:
    checkpoint = registry.checkpoint(model)
    with model_errors_as_problems():
        if body.ids is not None:
            return read_ids(checkpoint, body.ids)[1]
        if (said := body.said) is not None:
            tokens = checkpoint.tokenizer.encode_messages(said)[1]
        elif body.read_special_tokens:
            tokens = checkpoint.tokenizer.encode_read(body.text or "")
        else:
            tokens = checkpoint.tokenizer.encode(body.text or "")
        require_known(checkpoint, tokens)
        return tokens if body.special_tokens else typed_tokens(tokens)
