"""Metrics: what the server counts and measures of itself, for Prometheus."""

from fastapi import APIRouter, Request, Response

from app.problems import Problem
from app.state import Shared

router = APIRouter(include_in_schema=False)


@router.get("/metrics", response_class=Response)
def metrics(request: Request, state: Shared) -> Response:
    """Every series; a plain function, so that they are read off the event loop."""
    if not state.settings.metrics:
        raise Problem(404, "not-found", "metrics are switched off; HEADLIGHT_METRICS=true has them")
    body, media_type = state.metrics.exposition(request.headers.get("accept", ""))
    return Response(body, headers={"Content-Type": media_type, "Cache-Control": "no-store"})
