"""Limits: every one in force, with its unit, its reason and what sets it."""

from dataclasses import asdict

from fastapi import APIRouter

from app import edits, generation_schemas, schemas
from app.schemas import LimitAnswer
from app.state import Shared, State

router = APIRouter(prefix="/api/v1", tags=["limits"])

_OF_REQUESTS = {
    "max_globs": (schemas.MAX_GLOBS, "globs", "More than a model has kinds of sites."),
    "max_glob_characters": (
        schemas.MAX_GLOB_CHARACTERS,
        "characters",
        "Longer than any site's name.",
    ),
    "max_model_id_characters": (
        schemas.MAX_MODEL_ID_CHARACTERS,
        "characters",
        "Longer than any model's id.",
    ),
    "max_analyses": (schemas.MAX_ANALYSES, "analyses", "More than there are."),
    "max_positional_size": (
        schemas.MAX_POSITIONAL_SIZE,
        "positions, dimensions or heads",
        "Longer and wider than any encoding in use; max_cells limits their product.",
    ),
    "max_alternatives": (
        generation_schemas.MAX_ALTERNATIVES,
        "tokens",
        "More than anybody looks through at one step.",
    ),
    "max_numbers": (edits.MAX_NUMBERS, "layers, heads or experts", "More than any model here has."),
    "max_edits": (edits.MAX_EDITS, "edits", "More than a pass has kinds of parts to change."),
}


@router.get("/limits")
async def limits(state: Shared) -> dict[str, LimitAnswer]:
    """Every limit in force."""
    from_settings = {
        name: LimitAnswer.model_validate(asdict(limit))
        for name, limit in state.settings.limits().items()
    }
    of_requests = {
        name: LimitAnswer(value=value, unit=unit, reason=reason, env=None)
        for name, (value, unit, reason) in _OF_REQUESTS.items()
    }
    return from_settings | of_requests | {"max_tokens": _max_tokens(state)}


def _max_tokens(state: State) -> LimitAnswer:
    found = state.registry.descriptions
    return LimitAnswer(
        value={model: description.config.max_tokens for model, description in found.items()},
        unit="tokens",
        reason="The longest text that each model reads, start token included.",
        env=None,
    )
