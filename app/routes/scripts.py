"""Plotly's script, from the installed package."""

from fastapi import APIRouter, Request, Response

from headlight.static_files import file_response, package_dir

router = APIRouter(include_in_schema=False)

_PLOTLY = package_dir("plotly") / "package_data" / "plotly.min.js"


@router.get("/static/plotly.min.js")
def plotly(request: Request) -> Response:
    """Plotly, compressed once; a plain function, so that this happens off the event loop."""
    return file_response(request, _PLOTLY, "public, max-age=86400")
