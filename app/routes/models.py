"""Models: the cards of what can be asked."""

from typing import Annotated

from fastapi import APIRouter, Path

from headlight.errors import described
from headlight.model.card import Example
from headlight.model.served import Description
from headlight.schemas.models import (
    ExampleAnswer,
    ExpertsAnswer,
    ModelAnswer,
    ModelsAnswer,
    ModelSummary,
    SiteAnswer,
    UnavailableModel,
)
from headlight.services import ServicesDep
from headlight.tracing.analyses import available

router = APIRouter(prefix="/api/v1", tags=["models"])


@router.get("/models")
async def models(services: ServicesDep) -> ModelsAnswer:
    """Every model in short, and each folder that cannot be used with the reason."""
    registry = services.registry
    return ModelsAnswer(
        default=registry.default,
        models=[model_summary(found) for found in registry.descriptions.values()],
        unavailable=[
            UnavailableModel(id=model, reason=reason)
            for model, reason in registry.unavailable.items()
        ],
    )


@router.get("/models/{model}", responses=described(404, 503))
async def model(
    model: Annotated[str, Path(description="The model's id.")], services: ServicesDep
) -> ModelAnswer:
    """One model's card, with its sites and figures."""
    return model_answer(services.registry.describe(model))


def model_summary(description: Description) -> ModelSummary:
    """A model's card without its sites, sources and figures."""
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
        positional=config.positional,
        n_kv_heads=config.n_groups,
        norm=config.norm,
        norm_place=config.norm_place,
        activation=config.activation,
        has_mask=config.kind == "encoder",
        moe=ExpertsAnswer.model_validate(config.moe, from_attributes=True) if config.moe else None,
        parameters=description.n_parameters,
        revision=description.revision,
        licence=card.licence,
        analyses=available(description),
        examples=[example_answer(title, found) for title, found in card.examples.items()],
    )


def model_answer(description: Description) -> ModelAnswer:
    """A model's card as it is sent; sites have no batch axis, as a trace is of one text."""
    card = description.card
    facts = dict(model_summary(description)) | {
        "trained_on": card.trained_on,
        "attribution": card.attribution,
        "normalization": {
            "replacements": [found._asdict() for found in description.normalization.replacements],
            "lowers_capitals": description.normalization.lowers_capitals,
        },
        "metrics": card.metrics,
        "expert_tokens": card.expert_tokens or None,
        "sites": [
            SiteAnswer(name=site.name, axes=[axis for axis in site.axes if axis != "batch"])
            for site in description.sites
        ],
    }
    return ModelAnswer.model_validate(facts)


def example_answer(title: str, example: str | Example) -> ExampleAnswer:
    """An example of a card, and where to look."""
    if isinstance(example, str):
        return ExampleAnswer(title=title, text=example, opens={})
    return ExampleAnswer(title=title, text=example.text, opens=example.opens)
