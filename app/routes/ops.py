"""Operations: health, limits, metrics, and the documentation of the API."""

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from headlight.errors import Problem, described
from headlight.schemas.server import HealthAnswer, LimitAnswer
from headlight.services import ServicesDep
from headlight.settings import limits_of
from headlight.static_files import DOCS_URL

router = APIRouter()

_METRICS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Every series, in the text format or in OpenMetrics.",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    },
}

# FastAPI's own page loads Swagger UI from a CDN, and starts it inline, which the content security
# policy forbids.
_DOCS = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Headlight API</title>
<link rel="icon" href="{DOCS_URL}/favicon-32x32.png">
<link rel="stylesheet" href="{DOCS_URL}/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="{DOCS_URL}/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
"""
_START = """SwaggerUIBundle({
  url: '/openapi.json', dom_id: '#swagger-ui', deepLinking: true, validatorUrl: null,
});
"""


@router.get("/api/v1/limits", tags=["limits"])
async def limits(services: ServicesDep) -> dict[str, LimitAnswer]:
    """Every limit in force."""
    found = limits_of(services.settings, services.registry.max_tokens)
    return {name: LimitAnswer.model_validate(asdict(limit)) for name, limit in found.items()}


@router.get("/healthz", tags=["health"])
async def healthz() -> HealthAnswer:
    """The process is alive."""
    return HealthAnswer(status="ok")


@router.get("/readyz", tags=["health"], responses=described(503))
async def readyz(services: ServicesDep) -> HealthAnswer:
    """The default model is loaded and warm."""
    if not services.is_ready:
        raise Problem(503, "not-ready", services.why_not_ready)
    return HealthAnswer(status="ready")


@router.get("/metrics", tags=["health"], response_class=Response, responses=_METRICS)
def metrics(request: Request, services: ServicesDep) -> Response:
    """Counters and timings of the server, for Prometheus."""
    # A plain function, so that the series are read off the event loop.
    body, media_type = services.metrics.exposition(request.headers.get("accept", ""))
    return Response(body, headers={"Content-Type": media_type, "Cache-Control": "no-store"})


@router.get("/docs", include_in_schema=False)
async def docs() -> Response:
    """Swagger UI, served from an installed package."""
    return HTMLResponse(_DOCS)


@router.get("/docs/start.js", include_in_schema=False)
async def start() -> Response:
    """The script that opens Swagger UI on its page."""
    return Response(_START, media_type="text/javascript")
