"""The page. Its whole view is in the URL's fragment, so no log of ours holds anybody's text."""

from importlib.metadata import version

from fastapi import APIRouter, Request, Response
from fastapi.templating import Jinja2Templates

from headlight.settings import HOME
from headlight.static_files import PLOTLY_URL

router = APIRouter(include_in_schema=False)

_templates = Jinja2Templates(HOME / "templates")

# Modules import modules: told of all of them at once, a browser need not find them one by one.
_SCRIPTS = HOME / "static" / "js"
_MODULES = [
    f"/static/js/{path.relative_to(_SCRIPTS).as_posix()}"
    for path in sorted(_SCRIPTS.glob("*/**/*.js"))
]


@router.get("/")
async def page(request: Request) -> Response:
    """The one page."""
    context = {"version": version("headlight"), "plotly_url": PLOTLY_URL, "modules": _MODULES}
    headers = {"Cache-Control": "no-cache"}
    return _templates.TemplateResponse(request, "index.html", context, headers=headers)
