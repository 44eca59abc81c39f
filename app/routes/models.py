"""Models: their list, their cards and their weights."""

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from importlib.metadata import version
from math import prod
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Path, Query, Request, Response
from starlette.responses import StreamingResponse

from headlight.forms import MAX_GLOBS, Glob
from headlight.model.checkpoint.card import CLAIMS, ModelCard, aligner_of, measured_claim
from headlight.model.description import Description
from headlight.model.profiles.profile import head_labels
from headlight.model.served import Weight
from headlight.models.registry import ModelStatus, Registry
from headlight.problems import Problem, described, echo, over_limit
from headlight.schemas import SAFETENSORS
from headlight.schemas.models import (
    AlignerAnswer,
    ClaimAnswer,
    ExampleAnswer,
    ExpertsAnswer,
    ModelAnswer,
    ModelsAnswer,
    ModelSummary,
    NormalizationAnswer,
    ReplacementAnswer,
    SiteAnswer,
    SoftmaxAnswer,
    UnavailableModel,
)
from headlight.serialization.accept import negotiate
from headlight.serialization.entity_tags import NOT_MODIFIED, TAG, content_tag, not_modified
from headlight.serialization.formats import FILE
from headlight.serialization.trace import raw_chunks, safetensors_header
from headlight.services import ServicesDep
from headlight.serving.concurrency import client_left, in_daemon, unless_client_leaves
from headlight.tracing.results import available

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
            for description in registry.descriptions.values()
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
    description = services.registry.describe(model)
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
    named = "\n".join((version("headlight"), revision, str(registry.precision), *chosen))
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
            raise Problem(422, "unknown-weight", f"{detail}; it has {_kinds(known)}")
        chosen |= {name: known[name] for name in names}
    actual = sum(prod(weight.shape) for weight in chosen.values())
    if actual > limit:
        raise over_limit("weights", limit=limit, actual=actual, way_out="name fewer matrices")
    return {name: weight for name, weight in known.items() if name in chosen}


def _kinds(names: Iterable[str]) -> str:
    """Join the names of weights by commas, each once for all layers."""
    return ", ".join(dict.fromkeys(re.sub(r"\.\d+\.", ".*.", name) for name in names))


def _file_of(header: bytes, weights: Mapping[str, Weight]) -> Iterator[bytes]:
    """Yield the file in pieces; each matrix is read when its turn comes."""
    yield header
    for weight in weights.values():
        yield from raw_chunks(weight.read())


def model_summary(description: Description, status: ModelStatus) -> ModelSummary:
    """Return a model's card without its sites, sources and figures."""
    config, card = description.config, description.card
    return ModelSummary(
        id=description.id,
        title=card.title,
        kind=config.kind,
        n_layers=config.n_layers,
        n_heads=config.n_heads,
        d_model=config.d_model,
        d_ff=config.d_ff,
        vocab_size=config.vocab_size,
        max_tokens=config.max_tokens,
        trained_tokens=description.trained_tokens,
        longest_text=description.longest_text,
        is_endless=description.is_endless,
        positional=config.positional,
        n_kv_heads=config.n_groups,
        norm=config.norm,
        norm_place=config.norm_place,
        activation=config.activation,
        has_mask=config.kind == "encoder",
        moe=ExpertsAnswer.model_validate(config.moe, from_attributes=True) if config.moe else None,
        parameters=description.n_parameters,
        architecture=description.architecture,
        **status._asdict(),
        revision=description.revision,
        licence=card.licence,
        normalization=NormalizationAnswer(
            replacements=[
                ReplacementAnswer(**replacement._asdict())
                for replacement in description.normalization.replacements
            ],
            lowers_capitals=description.normalization.lowers_capitals,
        ),
        analyses=available(description),
        head_labels=head_labels(description.heads) if description.heads else {},
        aligner=AlignerAnswer(**aligner) if (aligner := aligner_of(card)) else None,
        examples=[example_answer(card, title) for title in card.examples],
    )


def model_answer(description: Description, status: ModelStatus) -> ModelAnswer:
    """Return a model's card as it is sent; sites have no batch axis."""
    card = description.card
    facts = dict(model_summary(description, status)) | {
        "trained_on": card.trained_on,
        "began_from": str(card.training.get("began_from", "")).rpartition("/")[2] or None,
        "attribution": card.attribution,
        "corpus": card.corpus,
        "metrics": card.metrics,
        "expert_tokens": card.expert_tokens or None,
        "heads": _heads(description),
        "curves": (description.curves or {}).get("pictures", []),
        "sites": [
            SiteAnswer(name=site.name, axes=[axis for axis in site.axes if axis != "batch"])
            for site in description.sites
        ],
        "attentions": [
            SoftmaxAnswer.model_validate(facts, from_attributes=True)
            for facts in description.attentions
        ],
        "rotation": description.rotation and vars(description.rotation),
        "features": sorted(description.features),
        "checks": description.checks,
        "omitted": description.omitted,
    }
    return ModelAnswer.model_validate(facts)


def _heads(description: Description) -> dict[str, Any] | None:
    profile = description.heads
    return None if profile is None else {k: v for k, v in profile.items() if k != "revision"}


def example_answer(card: ModelCard, title: str) -> ExampleAnswer:
    """Return an example of a card, where to look, and its claim as it was measured."""
    example = card.examples[title]
    if isinstance(example, str):
        return ExampleAnswer(title=title, text=example, claim=None, opens={})
    figures = measured_claim(card, title)
    measure, against = CLAIMS[figures["claim"]] if figures else ("", "")
    return ExampleAnswer(
        title=title,
        text=example.text,
        claim=ClaimAnswer(**figures, measure=measure, against=against) if figures else None,
        opens=example.opens,
    )
