"""Health: whether the server is alive, and whether it is ready to answer."""

from fastapi import APIRouter

from headlight.errors import Problem, described
from headlight.schemas.server import HealthAnswer
from headlight.services import ServicesDep

router = APIRouter(tags=["health"])


@router.get("/healthz")
async def healthz() -> HealthAnswer:
    """The process is alive."""
    return HealthAnswer(status="ok")


@router.get("/readyz", responses=described(503))
async def readyz(services: ServicesDep) -> HealthAnswer:
    """The default model is loaded and warm."""
    if not services.is_ready:
        raise Problem(503, "not-ready", services.why_not_ready)
    return HealthAnswer(status="ready")
