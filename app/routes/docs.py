"""The documentation of the API: Swagger UI, served from an installed package."""

from fastapi import APIRouter, Response
from fastapi.responses import HTMLResponse

router = APIRouter(include_in_schema=False)

# The content security policy allows no inline script, so the call is a file of its own.
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Headlight API</title>
<link rel="icon" href="/docs/files/favicon-32x32.png">
<link rel="stylesheet" href="/docs/files/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="/docs/files/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
"""
_START = """SwaggerUIBundle({
  url: '/openapi.json', dom_id: '#swagger-ui', deepLinking: true, validatorUrl: null,
});
"""


@router.get("/docs")
async def docs() -> Response:
    """The page."""
    return HTMLResponse(_PAGE)


@router.get("/docs/start.js")
async def start() -> Response:
    """What opens Swagger UI on the page."""
    return Response(_START, media_type="text/javascript")
