"""A captured array as a Plotly heatmap: rows attend, columns are attended to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headlight.model.colour import plotly_scale
from headlight.model.labels import label_of, ticks_of
from headlight.model.static_svg import as_html
from headlight.model.token_axes import tokens_along

PLOTLY = "application/vnd.plotly.v1+json"

SIZE, LEAST_CELL, MOST_CELL = 520, 2, 40
MOST_TOLD = 16_384
"""Of more cells than this no number is told at the pointer."""


class UndrawableArray(ValueError):
    """An array that is no matrix, or no such array."""


class Drawable:
    """What shows itself in a notebook: `tokens`, and `tensors` whose axes have names."""

    text: str
    model: str
    tokens: Sequence[Any]
    target_tokens: Sequence[Any] | None
    tensors: Mapping[str, Any]
    heads: Sequence[int] | None

    def figure(self, site: str | None = None, head: int | None = None) -> Any:
        """A site's array as a Plotly figure.

        Args:
            site: its name; None: the first attention weights.
            head: of an array by head, the number of the one to draw; None: the first.

        Returns:
            A `plotly.graph_objects.Figure`; rows are queries, columns are keys.

        Raises:
            UndrawableArray: with what can be drawn.
        """
        from plotly.graph_objects import Figure

        return Figure(self.drawing(site, head))

    def drawing(self, site: str | None = None, head: int | None = None) -> dict[str, Any]:
        """The same figure as plain data: Plotly's `data` and `layout`."""
        site = site or self._first_site()
        matrix, axes, shown = self._matrix(site, head)
        labels = [
            self._labels(site, axis, size) for axis, size in zip(axes, matrix.shape, strict=True)
        ]
        if site.startswith("decoder.") and site.endswith(".self_attention.weights"):
            future = ~np.tri(*matrix.shape, dtype=bool)
            matrix = np.where(future, np.nan, matrix)  # not seen, which is not a weight of 0
        title = site if shown is None else f"{site}, head {shown}"
        return heatmap(matrix, axes=axes, labels=labels, title=title)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """What a notebook shows: the first attention weights, or what there is in words.

        A notebook keeps what it shows, so of a large array it gets a picture and no numbers, and
        logits over a whole vocabulary are told by their sizes alone.
        """
        bundle: dict[str, Any] = {"text/plain": repr(self)}
        try:
            site = self._first_site()
            drawing = None if "vocab" in self.tensors[site].axes else self.drawing(site)
        except UndrawableArray:
            return bundle
        if drawing is None:
            return bundle
        (trace,) = drawing["data"]
        if "hovertext" in trace:
            bundle[PLOTLY] = drawing
        bundle["text/html"] = as_html(drawing, f"{self.model}: {self.text}", self._sites())
        return bundle

    def _sites(self) -> list[str]:
        return [f"{site}  {array.sizes}" for site, array in self.tensors.items()]

    def _first_site(self) -> str:
        weights = [site for site in self.tensors if site.endswith(".weights")]
        matrices = [site for site, array in self.tensors.items() if 2 <= array.data.ndim <= 3]
        if not (weights or matrices):
            raise UndrawableArray("the trace holds no matrix")
        # Over a vocabulary there is too much to see: last of all.
        return (weights or sorted(matrices, key=lambda site: "vocab" in self.tensors[site].axes))[0]

    def _matrix(
        self, site: str, head: int | None
    ) -> tuple[NDArray[np.generic], tuple[str, ...], int | None]:
        if site not in self.tensors:
            raise UndrawableArray(
                f"the trace holds no {site!r}; it holds {', '.join(self.tensors)}"
            )
        array = self.tensors[site]
        data, axes = array.data, tuple(array.axes)
        if axes[:1] != ("head",):
            if head is not None:
                raise UndrawableArray(f"{site} has no heads, but {' '.join(axes)}")
            return _require_matrix(site, data, axes), axes, None
        numbers = list(self.heads or range(len(data)))
        chosen = numbers[0] if head is None else head
        if chosen not in numbers:
            there_is = ", ".join(map(str, numbers))
            raise UndrawableArray(f"there is no head {head}; the heads are {there_is}")
        return _require_matrix(site, data[numbers.index(chosen)], axes[1:]), axes[1:], chosen

    def _labels(self, site: str, axis: str, size: int) -> list[str]:
        """The tokens along an axis; where it has none, its numbers."""
        tokens = tokens_along(self, site, axis, size)
        return [label_of(token.text) for token in tokens] or [str(place) for place in range(size)]


def heatmap(
    matrix: NDArray[np.generic],
    *,
    axes: tuple[str, ...],
    labels: Sequence[Sequence[str]],
    title: str,
) -> dict[str, Any]:
    """A matrix as plain data for Plotly; what is not finite is left out.

    Places are numbers with labels: on an axis of names, tokens that occur twice would become one.

    Args:
        matrix: rows by columns.
        axes: what rows and columns are.
        labels: of rows and of columns, safe for Plotly.
        title: above it.
    """
    values = matrix.astype(np.float64)
    finite = values[np.isfinite(values)]
    lowest, highest = _range(finite)
    rows, columns = values.shape
    cell = min(MOST_CELL, max(LEAST_CELL, SIZE / max(rows, columns, 1)))
    trace: dict[str, Any] = {
        "type": "heatmap",
        "z": [[v if np.isfinite(v) else None for v in row] for row in values.tolist()],
        "zmin": lowest,
        "zmax": highest,
        "colorscale": plotly_scale(is_signed=lowest < 0),
        "colorbar": {"thickness": 10, "outlinewidth": 0, "len": 1},
        "xgap": 1 if cell >= 12 else 0,
        "ygap": 1 if cell >= 12 else 0,
        "hoverinfo": "skip",
    }
    if values.size <= MOST_TOLD:
        trace |= {"hoverinfo": "text", "hovertext": _told(values, labels)}
    layout = {
        "title": {"text": title, "font": {"size": 14}, "y": 1, "yanchor": "top", "pad": {"t": 16}},
        "width": round(cell * columns) + 190,
        "height": round(cell * rows) + 170,
        "margin": {"l": 90, "r": 100, "t": 130, "b": 20},
        "plot_bgcolor": "rgba(0, 0, 0, 0)",
        "xaxis": {**_axis(labels[1]), "title": {"text": _TITLES.get(axes[1], axes[1])}}
        | {"side": "top", "tickangle": -45, "range": [-0.5, columns - 0.5]},
        "yaxis": {**_axis(labels[0]), "title": {"text": _TITLES.get(axes[0], axes[0])}}
        | {"range": [rows - 0.5, -0.5]},
    }
    return {"data": [trace], "layout": layout}


_TITLES = {"query": "query: attends", "key": "key: attended to"}


def _require_matrix(
    site: str, data: NDArray[np.generic], axes: tuple[str, ...]
) -> NDArray[np.generic]:
    if data.ndim != 2 or data.size == 0:
        raise UndrawableArray(f"{site} is no matrix: its axes are {' '.join(axes) or 'none'}")
    return data


def _range(values: NDArray[np.float64]) -> tuple[float, float]:
    """Shares from 0 to 1; other amounts from 0; what has a sign, as far below zero as above."""
    if values.size == 0:
        return 0.0, 1.0
    most = float(np.abs(values).max())
    if values.min() < 0:
        return -most, most
    return 0.0, 1.0 if most <= 1 else most


def _axis(labels: Sequence[str]) -> dict[str, Any]:
    places, texts = ticks_of(labels)
    plain = {"showgrid": False, "zeroline": False, "ticks": ""}
    return {"tickmode": "array", "tickvals": places, "ticktext": texts, **plain}


def _told(values: NDArray[np.float64], labels: Sequence[Sequence[str]]) -> list[list[str]]:
    rows, columns = labels
    return [
        [f"{row} → {column}<br>{value:.4g}" for column, value in zip(columns, line, strict=True)]
        for row, line in zip(rows, values.tolist(), strict=True)
    ]
