"""Encodings of positions, by scheme and sizes or by model."""

from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from headlight.model.positions import alibi_encoding, rotary_encoding, sinusoidal_encoding
from headlight.model.trace import NamedArray
from headlight.models.model_registry import Registry
from headlight.problems import Problem, described, over_limit, too_many_elements
from headlight.schemas.traces import PositionalAnswer, PositionalRequest
from headlight.serialization.accept import negotiate_format
from headlight.serialization.entity_tags import NOT_MODIFIED, TAG, content_tag, not_modified
from headlight.serialization.formats import FILE
from headlight.serialization.trace import Arrays
from headlight.services import ServicesDep
from headlight.serving.concurrency import client_left
from headlight.settings import Settings

router = APIRouter(prefix="/api/v1", tags=["positional"])

_SIZE_OF = {"sinusoidal": "width", "rotary": "width", "alibi": "heads"}
_MEANING = {
    "sinusoidal": "an even number, the d_model of the encoding",
    "rotary": "an even number, the d_head of the queries and keys",
    "alibi": "the number of heads that have a slope each",
}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": PositionalAnswer,
        "description": "The encoding, as JSON or as one safetensors file.",
        "content": FILE,
        "headers": TAG,
    },
    304: NOT_MODIFIED,
    **described(404, 406, 422, 503, 504),
}


@router.get("/positional", response_class=Response, responses=_ANSWERS)
async def positional(
    query: Annotated[PositionalRequest, Query()], request: Request, services: ServicesDep
) -> Response:
    """Return a positional encoding, position by position.

    `scheme` with its sizes, or `model` alone: then scheme, width and heads are the model's.
    Equal `ETag`s are equal bytes; `If-None-Match` spares sending them again.
    """
    sent_as = negotiate_format(request.headers)
    compute = partial(_compute, query, services.registry, services.settings)
    with ExitStack() as stack:
        if query.model is not None:
            await services.use_model(query.model, stack, client_left(request))
        answer = await services.computations.run(compute, client_left(request))
    encoded = await services.traces.encode(answer, sent_as, client_left(request))
    try:
        tag = await services.in_thread(partial(content_tag, encoded.body), client_left(request))
    except BaseException:
        encoded.reservation.release()
        raise
    headers = {**encoded.sent_as.headers, "ETag": tag, "Cache-Control": "no-cache"}
    if known := not_modified(request, headers):
        encoded.reservation.release()
        return known
    return encoded.response(headers)


def _compute(request: PositionalRequest, registry: Registry, settings: Settings) -> Arrays:
    """Return the encoding that a request asks for; it blocks, so it belongs off the event loop.

    Raises:
        Problem: sizes that fit no scheme or are too large, a model that is unknown or encodes
            positions in another way, or a table with fewer positions.
    """
    whole = _of_model(request, registry) if request.model else _of_sizes(request)
    _check_elements(whole, settings.max_cells)
    return Arrays(tensors=_arrays(whole, registry), metadata=whole.model_dump())


def _of_sizes(request: PositionalRequest) -> PositionalRequest:
    """Check that the request has the size that its scheme needs, and no other."""
    scheme = request.scheme
    if scheme is None:
        raise _invalid("name a scheme, or a model to take it from")
    if scheme in ("learned", "relative"):
        raise _invalid(f"{scheme} positions are those of a model: name it")
    needed = _SIZE_OF[scheme]
    for size in ("width", "heads"):
        value = getattr(request, size)
        if size == needed and (value is None or (size == "width" and value % 2)):
            fault = "is missing" if value is None else f"({value}) is odd"
            raise _invalid(f"{size} {fault}; {scheme} positions need {_MEANING[scheme]}")
        if size != needed and value is not None:
            raise _invalid(f"{scheme} positions have no {size}, but {needed}; leave {size} out")
    return request


def _of_model(request: PositionalRequest, registry: Registry) -> PositionalRequest:
    """Return the request with the scheme and the sizes of its model."""
    description = registry.describe(request.model)
    config, name = description.config, description.id
    if config.positional == "none":
        raise Problem(422, "no-encoding", f"the model '{name}' has no positional encoding")
    if request.scheme not in (None, config.positional):
        raise _invalid(
            f"the positions of the model '{name}' are {config.positional}, not {request.scheme}; "
            "leave out the one or the other"
        )
    if request.width is not None or request.heads is not None:
        raise _invalid("width and heads are those of the model; leave them out")
    is_table = config.positional == "learned" or registry.is_foreign(name)
    if is_table and request.length > config.max_tokens:
        has = "has learned" if config.positional == "learned" else "has"
        way_out = f"the model '{name}' {has} no more"
        raise over_limit(
            "positions", limit=config.max_tokens, actual=request.length, way_out=way_out
        )
    width = config.d_head if config.positional == "rotary" else config.d_model
    is_bias = config.positional in ("alibi", "relative")
    sizes = {"heads": config.n_heads} if is_bias else {"width": width}
    return request.model_copy(update={"scheme": config.positional, **sizes})


def _check_elements(request: PositionalRequest, limit: int) -> None:
    """Reject an encoding of more numbers than one answer may hold, before computing it."""
    length, width, heads = request.length, request.width or 0, request.heads or 0
    cells = {
        "sinusoidal": length * width + width // 2,
        "learned": length * width,
        "rotary": 3 * length * (width // 2),
        "alibi": heads * (length**2 + 1),
        "relative": heads * length**2,
    }
    actual = cells[request.scheme or ""]
    if actual > limit:
        way_out = "ask for fewer positions, a smaller width or fewer heads"
        raise too_many_elements(limit=limit, actual=actual, way_out=way_out)


def _arrays(request: PositionalRequest, registry: Registry) -> Mapping[str, NamedArray]:
    length, width, heads = request.length, request.width or 0, request.heads or 0
    if request.model is not None and registry.is_foreign(request.model):
        try:
            return registry.checkpoint(request.model).positions(length)
        except ValueError as error:
            detail = f"the positions of the model '{request.model}' cannot be read: {error}"
            raise Problem(422, "no-encoding", detail) from error
    match request.scheme:
        case "sinusoidal":
            return sinusoidal_encoding(length, width)
        case "rotary":
            return rotary_encoding(length, width)
        case "alibi":
            return alibi_encoding(length, heads)
        case _:
            return registry.checkpoint(request.model).positions(length)


def _invalid(detail: str) -> Problem:
    return Problem(422, "invalid-request", detail)
