"""Encodings of positions: any scheme by length and width, without a text."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from headlight.errors import described
from headlight.schemas.traces import PositionalAnswer, PositionalRequest
from headlight.serialization.formats import SAFETENSORS
from headlight.serialization.negotiation import content_tag, is_known, negotiate_form
from headlight.serialization.sending import ChunkedResponse
from headlight.services import ServicesDep, client_left
from headlight.tracing.positional import positional_answer

router = APIRouter(prefix="/api/v1", tags=["positional"])

_TAG = {"ETag": {"description": "Strong: equal tags, equal bytes.", "schema": {"type": "string"}}}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": PositionalAnswer,
        "description": "The encoding, as JSON or as one safetensors file.",
        "content": {SAFETENSORS: {"schema": {"type": "string", "format": "binary"}}},
        "headers": _TAG,
    },
    304: {"description": "The client has it: If-None-Match names its tag.", "headers": _TAG},
    **described(404, 406, 422, 503, 504),
}


@router.get("/positional", response_class=Response, responses=_ANSWERS)
async def positional(
    order: Annotated[PositionalRequest, Query()], request: Request, services: ServicesDep
) -> Response:
    """Return a positional encoding, position by position.

    `scheme` with its sizes, or `model` alone: then scheme, width and heads are the model's.
    Equal `ETag`s are equal bytes; `If-None-Match` spares sending them again.
    """
    form = negotiate_form(request.headers)
    compute = partial(positional_answer, order, services.registry, services.settings)
    answer = await services.in_thread(compute, client_left(request))
    encoded = await services.traces.encode(answer, form, client_left(request))
    try:
        tag = await services.in_thread(partial(content_tag, encoded.body), client_left(request))
    except BaseException:
        encoded.reservation.release()
        raise
    headers = {**encoded.form.headers, "ETag": tag, "Cache-Control": "no-cache"}
    if is_known(tag, request.headers.getlist("if-none-match")):
        encoded.reservation.release()
        headers.pop("Content-Encoding", None)  # there is no content
        return Response(status_code=304, headers=headers)
    return ChunkedResponse(encoded.body, form.media_type, headers, encoded.reservation)
