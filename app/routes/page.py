"""The page. Its whole view is in the URL's fragment, so no log of ours holds anybody's text."""

import re
from importlib.metadata import version
from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.templating import Jinja2Templates

from headlight.settings import HOME
from headlight.static_files import PLOTLY_URL

router = APIRouter(include_in_schema=False)

_templates = Jinja2Templates(HOME / "templates")

# The modules of the first drawing, so that a browser need not find them one by one.
_SCRIPTS = HOME / "static" / "js"
_ENTRIES = ("main.js", "views/attention/attention.js", "ui/heads_block.js")
_IMPORT = re.compile(r"""^(?:import|export)\b[^;'"(]*?['"](\.[^'"]+)['"]""", re.MULTILINE)


def _with_imports(path: Path, found: set[Path]) -> set[Path]:
    """The module at a path, what it imports, and what those import."""
    if path not in found:
        found.add(path)
        for name in _IMPORT.findall(path.read_text()):
            _with_imports((path.parent / name).resolve(), found)
    return found


_first = set[Path]()
for _entry in _ENTRIES:
    _with_imports((_SCRIPTS / _entry).resolve(), _first)
_MODULES = [
    f"/static/js/{path.relative_to(_SCRIPTS.resolve()).as_posix()}" for path in sorted(_first)
]


@router.get("/")
async def page(request: Request) -> Response:
    """The one page."""
    context = {"version": version("headlight"), "plotly_url": PLOTLY_URL, "modules": _MODULES}
    headers = {"Cache-Control": "no-cache"}
    return _templates.TemplateResponse(request, "index.html", context, headers=headers)
