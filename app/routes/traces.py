"""Traces: one forward pass, with exactly the tensors asked for."""

from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response

from app.form import MEDIA_TYPES, SAFETENSORS, Form
from app.json_route import JsonRoute
from app.negotiation import negotiate, negotiate_coding
from app.problems import described
from app.schemas import TraceAnswer, TraceRequest
from app.state import Shared

router = APIRouter(prefix="/api/v1", tags=["traces"], route_class=JsonRoute)

_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": TraceAnswer,
        "description": "The trace, as JSON or as one safetensors file.",
        "content": {SAFETENSORS: {"schema": {"type": "string", "format": "binary"}}},
    },
    **described(400, 404, 406, 413, 415, 422, 503, 504),
}


@router.post("/trace", response_class=Response, responses=_ANSWERS)
async def trace(order: TraceRequest, request: Request, state: Shared) -> Response:
    """Read a text and return what its forward pass computed.

    With `Accept: application/x-safetensors` the answer is one safetensors file: arrays by site
    name, everything else as JSON in its `__metadata__`.
    """
    media_type = negotiate(request.headers.get("accept", ""), MEDIA_TYPES)
    form = Form(media_type=media_type, dtype=order.dtype, triangle=order.triangle)
    answer = await state.run(request, partial(state.tracer.trace, order))
    form = form.coded(negotiate_coding(request.headers, answer.n_bytes))
    body = await state.encode(request, answer, form)
    return Response(body, media_type=form.media_type, headers=form.headers)
