"""One HTML file with a trace, the page's own view of it and Plotly, which opens without a server.

The modules of `static/js` that the view needs are embedded unchanged: an import map gives each of
their names a data URL.
"""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib.metadata import version
from pathlib import PurePosixPath
from typing import Any

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from headlight.client import Trace
from headlight.settings import HOME
from headlight.static_files import package_dir

ENTRY = "offline.js"
STYLES = ("page", "results")

# Markup below is only a file of ours, JSON without a `<`, or base64.
_SCRIPTS = HOME / "static" / "js"
_IMPORT = re.compile(
    r"""((?:^(?:import|export)(?:\b[^;'"=(]*\bfrom)? |\bawait import\()['"])(\.[^'"]+)(['"])""",
    re.MULTILINE,
)


def offline_page(
    answer: bytes,
    card: Mapping[str, Any],
    trace: Trace,
    edits: Sequence[Mapping[str, Any]] = (),
) -> str:
    """The page as HTML.

    `answer` is the trace as a safetensors file without packed triangles, and `card` the answer of
    `GET /api/v1/models/{id}`.
    """
    templates = Environment(loader=FileSystemLoader(HOME / "templates"), autoescape=True)
    return templates.get_template("offline.html").render(
        text=trace.text,
        model=trace.model,
        edits=json.dumps(edits) if edits else "",
        version=version("headlight"),
        styles=[_style(name) for name in STYLES],
        logo=_data_url((HOME / "static" / "logo.svg").read_text(), "image/svg+xml"),
        imports=_json({"imports": {name: _data_url(text) for name, text in modules().items()}}),
        card=_json(card),
        answer=Markup(base64.b64encode(answer).decode()),  # nosec B704
        plotly=_harmless((package_dir("plotly") / "package_data" / "plotly.min.js").read_text()),
    )


@cache
def modules() -> dict[str, str]:
    """The text of every module that the page needs, by its path in `static/js`.

    Imports are rewritten to these paths, because a data URL has no relative ones.
    """
    found: dict[str, str] = {}
    open_names = [ENTRY]
    while open_names:
        name = open_names.pop()
        if name in found:
            continue
        text = (_SCRIPTS / name).read_text()
        found[name] = _IMPORT.sub(partial(_by_path, importer=name), text)
        open_names += [_resolved(path, name) for _, path, _ in _IMPORT.findall(text)]
    return found


def _by_path(match: re.Match[str], importer: str) -> str:
    before, path, after = match.groups()
    return f"{before}{_resolved(path, importer)}{after}"


def _resolved(path: str, importer: str) -> str:
    """`../data/text.js`, imported by `plot/figure.js`, is `data/text.js`."""
    folder = _SCRIPTS / PurePosixPath(importer).parent
    return (folder / path).resolve().relative_to(_SCRIPTS.resolve()).as_posix()


def _data_url(text: str, media_type: str = "text/javascript") -> str:
    return f"data:{media_type};base64,{base64.b64encode(text.encode()).decode()}"


def _style(name: str) -> Markup:
    return Markup((HOME / "static" / "css" / f"{name}.css").read_text())  # nosec B704


def _json(value: Any) -> Markup:
    """JSON within a script element: nothing in it can end the element."""
    return Markup(json.dumps(value, ensure_ascii=False).replace("<", "\\u003c"))  # nosec B704


def _harmless(script: str) -> Markup:
    """A script within a script element."""
    return Markup(re.sub(r"<(?=/script|!--)", r"\\x3c", script, flags=re.IGNORECASE))  # nosec B704
