"""Metrics: what the server counts and measures of itself, for Prometheus."""

from typing import Any

from fastapi import APIRouter, Request, Response

from headlight.services import ServicesDep

router = APIRouter(tags=["health"])

_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Every series, in the text format or in OpenMetrics.",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    },
}


@router.get("/metrics", response_class=Response, responses=_ANSWERS)
def metrics(request: Request, services: ServicesDep) -> Response:
    """What the server counts and measures of itself, for Prometheus."""
    # A plain function, so that the series are read off the event loop.
    body, media_type = services.metrics.exposition(request.headers.get("accept", ""))
    return Response(body, headers={"Content-Type": media_type, "Cache-Control": "no-store"})
