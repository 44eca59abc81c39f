"""Operations: health, limits and metrics."""

from dataclasses import asdict
from functools import partial
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request, Response

from headlight.problems import Problem, described
from headlight.schemas import HealthAnswer, LimitAnswer
from headlight.services import ServicesDep
from headlight.settings import limits_of

router = APIRouter()

_METRICS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Every series, in the text format or in OpenMetrics.",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
}


@router.get("/api/v1/limits", tags=["limits"])
async def limits(services: ServicesDep) -> dict[str, LimitAnswer]:
    """Every limit in force."""
    registry = services.registry
    by_name = limits_of(services.settings, registry.max_tokens, registry.memory.limit)
    return {name: LimitAnswer.model_validate(asdict(limit)) for name, limit in by_name.items()}


@router.get("/healthz", tags=["health"])
async def healthz() -> HealthAnswer:
    """Say that the process is alive."""
    return HealthAnswer(status="ok")


@router.get("/readyz", tags=["health"], responses=described(503))
async def readyz(services: ServicesDep) -> HealthAnswer:
    """Say whether the default model is loaded and warm."""
    if not services.is_ready:
        raise Problem(503, "not-ready", services.why_not_ready)
    return HealthAnswer(status="ready")


@router.get("/metrics", tags=["health"], response_class=Response, responses=_METRICS)
async def metrics(request: Request, services: ServicesDep) -> Response:
    """Counters and timings of the server, for Prometheus; over all replicas, if there are some."""
    others = await services.shared.others() if services.shared else ()
    read = partial(services.metrics.exposition, request.headers.get("accept", ""), others)
    body, media_type = await to_thread.run_sync(read)
    return Response(body, headers={"Content-Type": media_type, "Cache-Control": "no-store"})
