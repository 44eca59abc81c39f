"""Traces: one forward pass, with exactly the tensors asked for."""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Query, Request, Response

from headlight.errors import Problem, described
from headlight.json_route import JsonRoute
from headlight.schemas.traces import TraceAnswer, TraceForm, TraceRequest
from headlight.serialization.formats import MEDIA_TYPES, SAFETENSORS, Form
from headlight.serialization.negotiation import is_known, negotiate, negotiate_coding
from headlight.serialization.pieced_response import PiecedResponse
from headlight.serialization.trace import Answer
from headlight.services import OutgoingRoom, ServicesDep

router = APIRouter(prefix="/api/v1", tags=["traces"], route_class=JsonRoute)

TraceId = Annotated[
    str, Path(pattern="^[0-9a-f]{32}$", description="The `id` of a trace computed before.")
]
KEPT = "private, immutable, max-age=31536000"
"""A year: what a trace's name stands for never changes. Private, as it holds somebody's text."""

_TRACE: dict[str, Any] = {
    "model": TraceAnswer,
    "description": "The trace, as JSON or as one safetensors file.",
    "content": {SAFETENSORS: {"schema": {"type": "string", "format": "binary"}}},
}
_LOCATION = {
    "description": "Where the same trace can be had again, while it is kept.",
    "schema": {"type": "string"},
}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: _TRACE | {"headers": {"Content-Location": _LOCATION}},
    **described(400, 404, 406, 413, 415, 422, 503, 504),
}
_TAG = {"ETag": {"description": "Strong: equal tags, equal bytes.", "schema": {"type": "string"}}}
_KEPT_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: _TRACE | {"headers": _TAG},
    304: {"description": "The client has it: If-None-Match names its tag.", "headers": _TAG},
    **described(404, 406, 422, 503, 504),
}


@router.post("/trace", response_class=Response, responses=_ANSWERS)
async def trace(
    order: TraceRequest, request: Request, services: ServicesDep, room: OutgoingRoom
) -> Response:
    """Read a text and return what its forward pass computed.

    With `Accept: application/x-safetensors` the answer is one safetensors file: arrays by site
    name, everything else as JSON in its `__metadata__`. `dtype` and `triangle` make it smaller, and
    `Accept-Encoding` chooses zstd, br or gzip. What was asked before is answered without a pass
    while it is kept, and the answer has no timings then; `Content-Location` names it.
    """
    media_type = negotiate(request.headers.get("accept", ""), MEDIA_TYPES)
    form = Form(media_type=media_type, dtype=order.dtype, triangle=order.triangle)
    answer = await services.trace(request, order)
    form = form.coded(negotiate_coding(request.headers, answer.n_bytes))
    body = await services.encode(request, answer, form, room)
    headers = form.headers
    if services.traces.is_kept(answer.id):
        headers |= {"Content-Location": _location(request, answer, form)}
    return PiecedResponse(body, media_type=form.media_type, headers=headers)


@router.get(
    "/traces/{trace_id}",
    operation_id="trace_by_id",
    response_class=Response,
    responses=_KEPT_ANSWERS,
)
async def kept_trace(
    trace_id: TraceId,
    query: Annotated[TraceForm, Query()],
    request: Request,
    services: ServicesDep,
    room: OutgoingRoom,
) -> Response:
    """Return a trace that was computed before, while it is kept; nothing is computed.

    Equal `ETag`s are equal bytes; `If-None-Match` spares sending them again.
    """
    media_type = negotiate(request.headers.get("accept", ""), MEDIA_TYPES)
    answer = services.traces.kept(trace_id)
    if answer is None:
        detail = f"the trace '{trace_id}' is not kept here; ask for it again with POST {_POST}"
        raise Problem(404, "unknown-trace", detail, headers={"Cache-Control": "no-store"})
    form = Form(media_type=media_type, dtype=query.dtype, triangle=query.triangle)
    form = form.coded(negotiate_coding(request.headers, answer.n_bytes))
    tag = await services.tag(request, answer, form)
    headers = {**form.headers, "ETag": tag, "Cache-Control": KEPT}
    if is_known(tag, request.headers.getlist("if-none-match")):
        headers.pop("Content-Encoding", None)  # there is no content
        return Response(status_code=304, headers=headers)
    body = await services.encode(request, answer, form, room)
    return PiecedResponse(body, media_type=form.media_type, headers=headers)


_POST = f"{router.prefix}/trace"


def _location(request: Request, answer: Answer, form: Form) -> str:
    """The address of a kept trace, in the form that it was just sent in."""
    path = request.app.url_path_for("kept_trace", trace_id=answer.id)
    asked: dict[str, str] = {}
    if form.dtype != "float32":
        asked["dtype"] = form.dtype
    if form.triangle:
        asked["triangle"] = "true"
    return f"{path}?{urlencode(asked)}" if asked else str(path)
