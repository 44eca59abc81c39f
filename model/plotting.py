"""Heatmaps of captured arrays, as Plotly figures.

Rows are queries, columns are keys. No other module of this package knows Plotly.
"""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headlight.model.sites import tokens_along

SIZE, MIN_ELEMENT, MAX_ELEMENT = 520, 2, 40
"""Pixels: the longer side of a figure, and the least and greatest side of an element."""
MAX_HOVER_ELEMENTS = 16_384
"""Larger arrays have no hover texts."""
MAX_LABELS = 32


class UndrawableArray(ValueError):
    """The array is not a matrix, or the trace does not hold it."""


class Drawable:
    """Figures of a trace: a base class for what has `tokens` and named arrays in `tensors`."""

    text: str
    model: str
    tokens: Sequence[Any]
    target_tokens: Sequence[Any] | None
    tensors: Mapping[str, Any]
    heads: Sequence[int] | None

    def figure(self, site: str | None = None, head: int | None = None) -> Any:
        """Return a site's array as a Plotly figure.

        Args:
            site: its name; None: the first attention weights.
            head: the head to draw of an array by head, numbered as in the model; None: the first.

        Returns:
            A `plotly.graph_objects.Figure`; rows are queries, columns are keys.

        Raises:
            UndrawableArray: the array is not a matrix by head, or the trace lacks it.
        """
        from plotly.graph_objects import Figure

        return Figure(self.drawing(site, head))

    def drawing(self, site: str | None = None, head: int | None = None) -> dict[str, Any]:
        """Return the figure of `figure` as plain data: Plotly's ``data`` and ``layout``."""
        site = site or self._first_site()
        matrix, axes, shown = self._matrix(site, head)
        labels = [
            self._labels(site, axis, size) for axis, size in zip(axes, matrix.shape, strict=True)
        ]
        if site.startswith("decoder.") and site.endswith(".self_attention.weights"):
            future = ~np.tri(*matrix.shape, dtype=np.bool_)
            matrix = np.where(future, np.nan, matrix)  # masked, which is not a weight of 0
        title = site if shown is None else f"{site}, head {shown}"
        return heatmap(matrix, axes=axes, labels=labels, title=title)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """Return the first attention weights for a notebook, as Plotly's renderer shows a figure.

        A notebook file stores what it shows: arrays over `MAX_HOVER_ELEMENTS`, and logits over a
        vocabulary, are stored only as the text of `__repr__`.
        """
        bundle: dict[str, Any] = {"text/plain": repr(self)}
        try:
            site = self._first_site()
            if "vocab" in self.tensors[site].axes or self._size(site) > MAX_HOVER_ELEMENTS:
                return bundle
            bundle |= self.figure(site)._repr_mimebundle_()
        except UndrawableArray:
            pass
        return bundle

    def _size(self, site: str) -> int:
        return math.prod(self.tensors[site].data.shape[-2:])

    def _first_site(self) -> str:
        weights = [site for site in self.tensors if site.endswith(".weights")]
        matrices = [site for site, array in self.tensors.items() if 2 <= array.data.ndim <= 3]
        if not (weights or matrices):
            raise UndrawableArray("the trace holds no matrix")
        # Arrays over the vocabulary, which are too large to draw, come last.
        return (weights or sorted(matrices, key=lambda site: "vocab" in self.tensors[site].axes))[0]

    def _matrix(
        self, site: str, head: int | None
    ) -> tuple[NDArray[np.generic], tuple[str, ...], int | None]:
        """Return the matrix to draw, its axes, and its head if it has one."""
        if site not in self.tensors:
            raise UndrawableArray(f"the trace lacks {site!r}; it holds {', '.join(self.tensors)}")
        array = self.tensors[site]
        data, axes, shown = array.data, tuple(array.axes), None
        if axes[:1] == ("head",):
            heads = list(self.heads or range(len(data)))
            shown = heads[0] if head is None else head
            if shown not in heads:
                known = ", ".join(map(str, heads))
                raise UndrawableArray(f"the trace lacks head {head}; it holds heads {known}")
            data, axes = data[heads.index(shown)], axes[1:]
        elif head is not None:
            raise UndrawableArray(f"{site} has no head axis; its axes are {' '.join(axes)}")
        if data.ndim != 2 or data.size == 0:
            raise UndrawableArray(f"{site} is not a matrix; its axes are {' '.join(axes)}")
        return data, axes, shown

    def _labels(self, site: str, axis: str, size: int) -> list[str]:
        """Return the tokens along an axis, or indices if its places are not tokens."""
        tokens = tokens_along(self, site, axis, size)
        return [label_of(token.text) for token in tokens] or [str(place) for place in range(size)]


def heatmap(
    matrix: NDArray[np.generic],
    *,
    axes: tuple[str, ...],
    labels: Sequence[Sequence[str]],
    title: str,
) -> dict[str, Any]:
    """Return a matrix as plain data for Plotly; infinite and missing values are left out.

    Both axes are numeric with tick labels: on a category axis, equal tokens would be merged.

    Args:
        matrix: rows by columns.
        axes: the names of rows and columns.
        labels: of rows and of columns, as `label_of` returns them.
        title: of the figure.
    """
    values = matrix.astype(np.float64)
    lowest, highest = _range(values[np.isfinite(values)])
    rows, columns = values.shape
    side = min(MAX_ELEMENT, max(MIN_ELEMENT, SIZE / max(rows, columns, 1)))
    gap = 1 if side >= 12 else 0
    trace: dict[str, Any] = {
        "type": "heatmap",
        "z": [[v if np.isfinite(v) else None for v in row] for row in values.tolist()],
        "zmin": lowest,
        "zmax": highest,
        "colorscale": [list(stop) for stop in colour_scale(is_signed=lowest < 0)],
        "colorbar": {"thickness": 10, "outlinewidth": 0, "len": 1},
        "xgap": gap,
        "ygap": gap,
        "hoverinfo": "skip",
    }
    if values.size <= MAX_HOVER_ELEMENTS:
        trace |= {"hoverinfo": "text", "hovertext": _hover_texts(values, labels)}
    layout = {
        "title": {"text": title, "font": {"size": 14}, "y": 1, "yanchor": "top", "pad": {"t": 16}},
        "width": round(side * columns) + 190,
        "height": round(side * rows) + 170,
        "margin": {"l": 90, "r": 100, "t": 130, "b": 20},
        "plot_bgcolor": "rgba(0, 0, 0, 0)",
        "xaxis": _axis(axes[1], labels[1])
        | {"side": "top", "tickangle": -45, "range": [-0.5, columns - 0.5]},
        "yaxis": _axis(axes[0], labels[0]) | {"range": [rows - 0.5, -0.5]},
    }
    return {"data": [trace], "layout": layout}


_TITLES = {"query": "query: attends", "key": "key: attended to"}


def _axis(name: str, labels: Sequence[str]) -> dict[str, Any]:
    places, texts = ticks_of(labels)
    plain = {"showgrid": False, "zeroline": False, "ticks": ""}
    title = {"text": _TITLES.get(name, name)}
    return {"title": title, "tickmode": "array", "tickvals": places, "ticktext": texts, **plain}


def _range(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the range of the colours: [0, 1], [0, max] for amounts, else [−max, max]."""
    if values.size == 0:
        return 0.0, 1.0
    largest = float(np.abs(values).max())
    if values.min() < 0:
        return -largest, largest
    return 0.0, 1.0 if largest <= 1 else largest


def _hover_texts(values: NDArray[np.float64], labels: Sequence[Sequence[str]]) -> list[list[str]]:
    rows, columns = labels
    return [
        [f"{row} → {column}<br>{value:.4g}" for column, value in zip(columns, line, strict=True)]
        for row, line in zip(rows, values.tolist(), strict=True)
    ]


# --- labels ---------------------------------------------------------------------------------------

MAX_LETTERS = 12
_FIRST_STRONG_ISOLATE, _POP_DIRECTIONAL_ISOLATE = "\u2068", "\u2069"
_NAMED = {"\n": "↵", "\t": "⇥", "\u00a0": "⍽", "\u3000": "□", " ": "·"}
# Format characters that join the letters or emoji next to them: combining grapheme joiner,
# zero-width (non-)joiner, variation selectors 15 and 16.
_JOINERS = frozenset("\u034f\u200c\u200d\ufe0e\ufe0f")


def label_of(text: str) -> str:
    """Return a token's text as an axis label, at most 12 characters and with ``& < >`` escaped.

    Spaces around the text are removed; control and bidirectional formatting characters are shown
    by a symbol or code point. A right-to-left label is isolated, so that it does not reorder the
    text around it (https://www.unicode.org/reports/tr9/).
    """
    shown = "".join(map(_visible, text.strip() or text))
    if len(shown) > MAX_LETTERS:
        shown = f"{shown[: MAX_LETTERS - 1]}…"
    if any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in shown):
        shown = f"{_FIRST_STRONG_ISOLATE}{shown}{_POP_DIRECTIONAL_ISOLATE}"
    return html.escape(shown, quote=False)


def ticks_of(labels: Sequence[str]) -> tuple[list[int], list[str]]:
    """Return places and labels of at most `MAX_LABELS` ticks: all, or every 2nd, 4th …."""
    step = 1
    while len(labels) > MAX_LABELS * step:
        step *= 2
    places = list(range(0, len(labels), step))
    return places, [labels[place] for place in places]


def _visible(letter: str) -> str:
    if letter in _NAMED:
        return _NAMED[letter]
    is_format = unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp") and letter not in _JOINERS
    if is_format or letter in "\ufffe\uffff":  # the last two are not allowed in XML
        return f"‹U+{ord(letter):04X}›"
    return letter


# --- colours --------------------------------------------------------------------------------------

# The scales of the page (static/js/plot/colour.js): stops at equal distances, each lightness,
# chroma and hue in degrees. Lightness is piecewise linear in OKLab
# (https://bottosson.github.io/posts/oklab/), so equal steps of value look equal, in grey too.
SEQUENTIAL = (
    (0.97, 0.012, 90),
    (0.83, 0.115, 80),
    (0.69, 0.155, 52),
    (0.55, 0.17, 24),
    (0.41, 0.14, 355),
    (0.27, 0.09, 318),
)
DIVERGING = (
    (0.45, 0.13, 250),
    (0.71, 0.085, 245),
    (0.97, 0.004, 90),
    (0.71, 0.125, 52),
    (0.45, 0.125, 38),
)
N_COLOURS = 52
_TO_LMS = np.array(
    [
        [1, 0.3963377774, 0.2158037573],
        [1, -0.1055613458, -0.0638541728],
        [1, -0.0894841775, -1.291485548],
    ]
)
_TO_LINEAR_RGB = np.array(
    [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.707614701],
    ]
)


@cache
def colour_scale(*, is_signed: bool = False) -> tuple[tuple[float, str], ...]:
    """Return the colours from the lowest value to the highest, as Plotly takes them.

    Args:
        is_signed: whether the scale diverges from zero in its middle.
    """
    lightness, chroma, hue = np.array(DIVERGING if is_signed else SEQUENTIAL).T
    angle = np.radians(hue)
    stops = np.stack([lightness, chroma * np.cos(angle), chroma * np.sin(angle)])
    places = np.linspace(0, len(lightness) - 1, N_COLOURS)
    lab = np.stack([np.interp(places, np.arange(len(lightness)), axis) for axis in stops])
    linear = _TO_LINEAR_RGB @ (_TO_LMS @ lab) ** 3
    encoded = np.where(  # the sRGB transfer function
        linear <= 0.0031308, 12.92 * linear, 1.055 * np.maximum(linear, 0) ** (1 / 2.4) - 0.055
    )
    rgb = np.floor(np.clip(encoded.T, 0, 1) * 255 + 0.5).astype(int).tolist()
    return tuple(
        (number / (N_COLOURS - 1), f"rgb({red}, {green}, {blue})")
        for number, (red, green, blue) in enumerate(rgb)
    )
