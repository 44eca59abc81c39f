"""Limits: every one in force, with its unit, its reason, its refusal and what sets it."""

from dataclasses import asdict

from fastapi import APIRouter

from headlight.limits import limits_of
from headlight.schemas.server import LimitAnswer
from headlight.services import ServicesDep

router = APIRouter(prefix="/api/v1", tags=["limits"])


@router.get("/limits")
async def limits(services: ServicesDep) -> dict[str, LimitAnswer]:
    """Every limit in force."""
    found = limits_of(services.settings, services.registry.max_tokens)
    return {name: LimitAnswer.model_validate(asdict(limit)) for name, limit in found.items()}
