"""Models: their list, their cards and their weights."""

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from math import prod
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Path, Query, Request, Response
from starlette.responses import StreamingResponse

from headlight.distribution import __version__
from headlight.forms import MAX_GLOBS, Glob
from headlight.model.served import Weight
from headlight.models.cards import model_answer, model_summary
from headlight.models.model_registry import Registry
from headlight.problems import Problem, described, echo, over_limit
from headlight.schemas import SAFETENSORS
from headlight.schemas.models import ModelAnswer, ModelsAnswer, UnavailableModel
from headlight.serialization.accept import negotiate
from headlight.serialization.entity_tags import NOT_MODIFIED, TAG, content_tag, not_modified
from headlight.serialization.formats import FILE
from headlight.serialization.trace import raw_chunks, safetensors_header
from headlight.services import ServicesDep
from headlight.serving.concurrency import client_left, in_daemon, unless_client_leaves

router = APIRouter(prefix="/api/v1", tags=["models"])


@router.get("/models")
async def models(request: Request, services: ServicesDep) -> ModelsAnswer:
    """Every model in short, and each folder that cannot be used with the reason."""
    registry = services.registry
    if registry.has_changed():
        refreshed = in_daemon(registry.refresh, "refresh")  # it reads what strangers made
        await unless_client_leaves(refreshed, client_left(request))
    return ModelsAnswer(
        default=registry.default,
        models=[
            model_summary(description, registry.status(description.id)).model_copy(
                update={"has_atlas": services.atlases.has(description.id)}
            )
            for description in registry.listed
        ],
        unavailable=[
            UnavailableModel(id=model, reason=reason)
            for model, reason in registry.unavailable.items()
        ],
        memory_bytes=registry.memory.limit,
    )


@router.get("/models/{model}", responses=described(404, 503))
async def model(
    model: Annotated[str, Path(description="The model's id.")], services: ServicesDep
) -> ModelAnswer:
    """One model's card, with its sites and figures."""
    description = await services.in_thread(partial(services.atlases.described, model), None)
    answer = model_answer(description, services.registry.status(description.id))
    return answer.model_copy(update={"has_atlas": services.atlases.has(description.id)})


_FILE: dict[int | str, dict[str, Any]] = {
    200: {"description": "One safetensors file.", "content": FILE, "headers": TAG},
    304: NOT_MODIFIED,
    **described(404, 406, 422, 503),
}


@router.get("/models/{model}/weights", response_class=Response, responses=_FILE)
async def weights(
    model: Annotated[str, Path(description="The model's id.")],
    name: Annotated[
        list[Glob],
        Query(
            min_length=1,
            max_length=MAX_GLOBS,
            description="Names or globs: `decoder.layers.0.self_attention.W_Q`, `*.W_O`, `W_U`.",
        ),
    ],
    request: Request,
    services: ServicesDep,
) -> Response:
    """Return trained matrices as one safetensors file of float32.

    By attention and head: `W_Q`, `W_K`, `W_V` (head, d_model, d_head), `W_O` (head, d_head,
    d_model), and their biases `b_Q`, `b_K`, `b_V` (head, d_head), `b_O` (d_model); keys and values
    that heads share are repeated; `norm_scale` and `norm_shift` (d_model) are those of the norm at
    the attention, and with the name of a stack those of its final norm.
    `{stack}.embedding.W_E` (vocab, d_model), `.W_pos` (position, d_model), and the output matrix
    `W_U` (vocab, d_model). `axes` in `__metadata__` names the axes.
    Equal `ETag`s are equal bytes.
    """
    negotiate(request.headers.get("accept", ""), (SAFETENSORS,))
    registry, limit = services.registry, services.settings.max_weights
    find = partial(_chosen_weights, registry, model, name, limit)
    with ExitStack() as stack:
        await services.use_model(model, stack, client_left(request))
        revision = registry.describe(model).revision
        chosen = await services.in_thread(find, client_left(request))
    named = "\n".join((__version__, revision, str(registry.precision), *chosen))
    headers = {"ETag": content_tag(named.encode()), "Cache-Control": "no-cache", "Vary": "Accept"}
    if known := not_modified(request, headers):
        return known
    axes = {name: weight.axes for name, weight in chosen.items()}
    members = {"model": model, "revision": revision, "axes": axes}
    header = safetensors_header(
        {name: ("float32", weight.shape) for name, weight in chosen.items()},
        {key: orjson.dumps(value).decode() for key, value in members.items()},
    )
    n_bytes = len(header) + 4 * sum(prod(weight.shape) for weight in chosen.values())
    headers["Content-Length"] = str(n_bytes)
    return StreamingResponse(_file_of(header, chosen), media_type=SAFETENSORS, headers=headers)


def _chosen_weights(
    registry: Registry, model: str, globs: Sequence[str], limit: int
) -> dict[str, Weight]:
    """Return the matrices that globs name; none is read yet.

    Raises:
        Problem: 422, the model does not offer them, or they are too many.
    """
    checkpoint = registry.checkpoint(model)
    try:
        known = checkpoint.weights()
    except ValueError as error:
        detail = f"the model '{model}' does not offer its weights: {error}"
        raise Problem(422, "no-weights", detail) from error
    chosen: dict[str, Weight] = {}
    for glob in globs:
        names = fnmatch.filter(known, glob)
        if not names:
            detail = f"no weight of the model '{model}' matches {echo(glob)}"
            kinds = dict.fromkeys(re.sub(r"\.\d+\.", ".*.", name) for name in known)
            raise Problem(422, "unknown-weight", f"{detail}; it has {', '.join(kinds)}")
        chosen |= {name: known[name] for name in names}
    actual = sum(prod(weight.shape) for weight in chosen.values())
    if actual > limit:
        raise over_limit("weights", limit=limit, actual=actual, way_out="name fewer matrices")
    return {name: weight for name, weight in known.items() if name in chosen}


def _file_of(header: bytes, weights: Mapping[str, Weight]) -> Iterator[bytes]:
    """Yield the file in pieces; each matrix is read when its turn comes."""
    yield header
    for weight in weights.values():
        yield from raw_chunks(weight.read())
