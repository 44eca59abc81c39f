"""Limits: every one in force, with its unit, its reason, its refusal and what sets it."""

from dataclasses import asdict

from fastapi import APIRouter

from headlight.limits import limits_of
from headlight.schemas import LimitAnswer
from headlight.services import Shared

router = APIRouter(prefix="/api/v1", tags=["limits"])


@router.get("/limits")
async def limits(state: Shared) -> dict[str, LimitAnswer]:
    """Every limit in force."""
    found = limits_of(state.settings, state.registry.descriptions)
    return {name: LimitAnswer.model_validate(asdict(limit)) for name, limit in found.items()}
