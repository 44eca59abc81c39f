"""Traces: one forward pass, with exactly the tensors asked for."""

from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response

from app.json_route import JsonRoute
from app.negotiation import negotiate
from app.problems import described
from app.schemas import TraceAnswer, TraceRequest
from app.state import Shared
from app.wire import MEDIA_TYPES, SAFETENSORS

router = APIRouter(prefix="/api/v1", tags=["traces"], route_class=JsonRoute)

_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": TraceAnswer,
        "description": "The trace, as JSON or as one safetensors file.",
        "content": {SAFETENSORS: {"schema": {"type": "string", "format": "binary"}}},
    },
    **described(400, 404, 406, 413, 415, 422, 503),
}


@router.post("/trace", response_class=Response, responses=_ANSWERS)
async def trace(order: TraceRequest, request: Request, state: Shared) -> Response:
    """Read a text and return what its forward pass computed.

    With `Accept: application/x-safetensors` the answer is one safetensors file: arrays by site
    name, everything else as JSON in its `__metadata__`.
    """
    media_type = negotiate(request.headers.get("accept", ""), MEDIA_TYPES)
    body = await state.run(request, partial(state.tracer.answer, order, media_type))
    return Response(body, media_type=media_type, headers={"Vary": "Accept"})
