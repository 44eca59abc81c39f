"""Limits: every one in force, with its unit, its reason and what sets it."""

from dataclasses import asdict

from fastapi import APIRouter

from app import schemas
from app.schemas import LimitAnswer
from app.state import Shared, State

router = APIRouter(prefix="/api/v1", tags=["limits"])

_FIXED = {
    "max_globs": LimitAnswer(
        value=schemas.MAX_GLOBS,
        unit="globs",
        reason="More than a model has kinds of sites.",
        env=None,
    ),
    "max_glob_characters": LimitAnswer(
        value=schemas.MAX_GLOB_CHARACTERS,
        unit="characters",
        reason="Longer than any site's name.",
        env=None,
    ),
    "max_model_id_characters": LimitAnswer(
        value=schemas.MAX_MODEL_ID_CHARACTERS,
        unit="characters",
        reason="Longer than any model's id.",
        env=None,
    ),
    "max_analyses": LimitAnswer(
        value=schemas.MAX_ANALYSES,
        unit="analyses",
        reason="More than there are.",
        env=None,
    ),
    "max_numbers": LimitAnswer(
        value=schemas.MAX_NUMBERS,
        unit="layers or heads",
        reason="More than any model here has.",
        env=None,
    ),
}


@router.get("/limits")
async def limits(state: Shared) -> dict[str, LimitAnswer]:
    """Every limit in force."""
    from_settings = {
        name: LimitAnswer.model_validate(asdict(limit))
        for name, limit in state.settings.limits().items()
    }
    return from_settings | _FIXED | {"max_tokens": _max_tokens(state)}


def _max_tokens(state: State) -> LimitAnswer:
    found = state.registry.descriptions
    return LimitAnswer(
        value={model: description.config.max_tokens for model, description in found.items()},
        unit="tokens",
        reason="The longest text that each model was trained to read, start token included.",
        env=None,
    )
