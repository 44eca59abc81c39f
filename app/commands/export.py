"""A trace as a table in long format, and as an HTML page that opens without a server.

The table has one line for each number, for pandas, R or a spreadsheet:

    site,head,query,query_token,key,key_token,position,position_token,d_model,value
    decoder.layers.0.self_attention.weights,0,0,<s>,0,<s>,,,,1.0

An axis that an array does not have is empty. The `_token` column of an axis has the text of the
token there; the column `token` has the likely token whose id or probability is in `value`. Masked
numbers are `-inf`. The csv module of Python 3.11 does not quote a carriage return, which a token
may be.

The page holds the trace, its own view of it and Plotly. The modules of `static/js` that the view
needs are embedded: an import map gives each of their names a data URL.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib.metadata import version
from itertools import product, repeat
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from headlight.client import NamedArray, Trace
from headlight.model.sites import tokens_along
from headlight.settings import HOME
from headlight.static_files import modules_of, package_dir, resolved

AXES = ("layer", "head", "query", "key", "position", "d_model", "d_head", "d_ff", "expert")
"""The order of the columns; other axes follow."""

_QUOTED = frozenset(',"\r\n')

ENTRY = "offline.js"
STYLES = ("page", "results")

# Markup below is only a file of ours, JSON without a `<`, or base64.
_IMPORT = re.compile(
    r"""(?:^(?:import|export)(?:\b[^;'"=(]*\bfrom)? |\bawait import\()['"](\.[^'"]+)['"]""",
    re.MULTILINE,
)


def csv_lines(trace: Trace) -> Iterator[str]:
    """The lines of the table; the first names the columns."""
    arrays, texts = dict(_arrays_of(trace)), dict(_texts_of(trace))
    named = dict.fromkeys(axis for array in arrays.values() for axis in array.axes)
    axes = sorted(named, key=lambda axis: AXES.index(axis) if axis in AXES else len(AXES))
    with_tokens = {
        axis
        for site, array in arrays.items()
        for axis, size in zip(array.axes, array.data.shape, strict=True)
        if tokens_along(trace, site, axis, size)
    }
    columns = [f"{axis},{axis}_token" if axis in with_tokens else axis for axis in axes]
    yield ",".join(["site", *columns, *(["token"] if texts else []), "value"]) + "\n"
    blank = ["," if axis in with_tokens else "" for axis in axes]
    for site, array in arrays.items():
        slots = [1 + axes.index(axis) for axis in array.axes]
        cells = [
            _cells_along(trace, site, axis, size, has_tokens=axis in with_tokens)
            for axis, size in zip(array.axes, array.data.shape, strict=True)
        ]
        # Each number as the shortest text that gives the same float32 again.
        values: Iterable[str] = array.data.ravel().astype(str).tolist()
        if texts:
            values = map("{},{}".format, texts.get(site, repeat("")), values)
        row = [site, *blank, ""]
        for index, value in zip(product(*cells), values, strict=True):
            for slot, cell in zip(slots, index, strict=True):
                row[slot] = cell
            row[-1] = value
            yield ",".join(row) + "\n"


def _cells_along(trace: Trace, site: str, axis: str, size: int, *, has_tokens: bool) -> list[str]:
    """The cells of each index of an axis; heads keep their numbers if only some were captured."""
    numbers = trace.heads if axis == "head" and trace.heads is not None else range(size)
    if not has_tokens:
        return list(map(str, numbers))
    tokens = [_cell(token.text) for token in tokens_along(trace, site, axis, size)]
    return [f"{n},{text}" for n, text in zip(numbers, tokens or [""] * size, strict=True)]


def _arrays_of(trace: Trace) -> Iterator[tuple[str, NamedArray]]:
    yield from trace.tensors.items()
    for name, analysis in trace.analyses.items():
        for key, array in analysis.arrays.items():
            yield f"analyses.{name}.{key}", array


def _texts_of(trace: Trace) -> Iterator[tuple[str, list[str]]]:
    """The texts of the likely tokens whose ids or probabilities an array holds, by its name."""
    for name, analysis in trace.analyses.items():
        if "texts" in analysis.metadata:
            texts = np.array(analysis.metadata["texts"], dtype=object).ravel()
            for key in {"ids", "probabilities"} & set(analysis.arrays):
                yield f"analyses.{name}.{key}", list(map(_cell, texts))


def _cell(text: str) -> str:
    """A text as a cell, quoted if necessary (RFC 4180)."""
    if _QUOTED.isdisjoint(text):
        return text
    return '"{}"'.format(text.replace('"', '""'))


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
    imports = {name: data_url(text) for name, text in modules().items()}
    return templates.get_template("offline.html").render(
        text=trace.text,
        model=trace.model,
        edits=json.dumps(edits) if edits else "",
        version=version("headlight"),
        styles=[style(name) for name in STYLES],
        logo=data_url((HOME / "static" / "logo.svg").read_text(), "image/svg+xml"),
        imports=json_element({"imports": imports}),
        card=json_element(card),
        answer=Markup(base64.b64encode(answer).decode()),  # nosec B704
        plotly=plotly_script(),
    )


@cache
def modules() -> dict[str, str]:
    """The text of every module that the page needs, by its path in `static/js`.

    Imports are rewritten to these paths, because a data URL has no relative ones.
    """
    found = modules_of([ENTRY], _IMPORT)
    return {name: _IMPORT.sub(partial(_by_path, name), text) for name, text in found.items()}


def _by_path(importer: str, match: re.Match[str]) -> str:
    return match[0].replace(match[1], resolved(match[1], importer))


def data_url(text: str, media_type: str = "text/javascript") -> str:
    """A text as a URL that holds it."""
    return f"data:{media_type};base64,{base64.b64encode(text.encode()).decode()}"


def style(name: str) -> Markup:
    """A style sheet of the page, by its name."""
    return Markup((HOME / "static" / "css" / f"{name}.css").read_text())  # nosec B704


def json_element(value: Any) -> Markup:
    """JSON within a script element: nothing in it can end the element."""
    return Markup(json.dumps(value, ensure_ascii=False).replace("<", "\\u003c"))  # nosec B704


def plotly_script() -> Markup:
    """Plotly as the text of a script element: nothing in it can end the element."""
    script = (package_dir("plotly") / "package_data" / "plotly.min.js").read_text()
    return Markup(re.sub(r"<(?=/script|!--)", r"\\x3c", script, flags=re.IGNORECASE))  # nosec B704
