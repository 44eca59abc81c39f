"""Captured matrices as Plotly figures.

Rows are queries, columns are keys. No other module of this package knows Plotly. `Trace.show` draws
all that a trace holds.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headlight.model.sites import tokens_along

MAX_LABELS, MAX_LETTERS = 32, 12


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

        Both axes are numeric with tick labels: on a category axis, equal tokens would be merged.
        A masked weight of a decoder is left out, as infinite scores are.

        Args:
            site: its name; None: the first attention weights.
            head: the head to draw of an array by head, numbered as in the model; None: the first.

        Returns:
            A `plotly.graph_objects.Figure`; rows are queries, columns are keys.

        Raises:
            ValueError: the array is not a matrix by head, or the trace lacks it.
        """
        from plotly.graph_objects import Figure, Heatmap

        site = site or next((name for name in self.tensors if name.endswith(".weights")), "weights")
        matrix, axes, title = self._matrix(site, head)
        values = matrix.astype(np.float64)
        if site.startswith("decoder.") and site.endswith(".self_attention.weights"):
            values = np.where(np.tri(*values.shape, dtype=np.bool_), values, np.nan)
        is_signed = bool((values[np.isfinite(values)] < 0).any())
        colours: dict[str, Any] = {"colorscale": "OrRd"}
        if is_signed:
            colours = {"colorscale": "RdBu", "zmid": 0}
        z = [[v if np.isfinite(v) else None for v in row] for row in values.tolist()]
        rows, columns = (
            self._axis(site, axis, size) for axis, size in zip(axes, values.shape, strict=True)
        )
        drawn = Figure(Heatmap(z=z, **colours))
        drawn.update_layout(
            title=title, xaxis=columns | {"side": "top"}, yaxis=rows | {"autorange": "reversed"}
        )
        return drawn

    def _matrix(
        self, site: str, head: int | None
    ) -> tuple[NDArray[np.generic], tuple[str, ...], str]:
        """Return the matrix to draw, its axes, and what it is."""
        if site not in self.tensors:
            raise ValueError(f"the trace lacks {site!r}; it holds {', '.join(self.tensors)}")
        array = self.tensors[site]
        data, axes, title = array.data, tuple(array.axes), site
        if axes[:1] == ("head",):
            heads = list(self.heads or range(len(data)))
            shown = heads[0] if head is None else head
            if shown not in heads:
                known = ", ".join(map(str, heads))
                raise ValueError(f"the trace lacks head {head}; it holds heads {known}")
            data, axes, title = data[heads.index(shown)], axes[1:], f"{site}, head {shown}"
        elif head is not None:
            raise ValueError(f"{site} has no head axis; its axes are {' '.join(axes)}")
        if data.ndim != 2 or data.size == 0:
            raise ValueError(f"{site} is not a matrix; its axes are {' '.join(axes)}")
        return data, axes, title

    def _axis(self, site: str, axis: str, size: int) -> dict[str, Any]:
        """Return an axis with tokens as labels, at most `MAX_LABELS`, or without any."""
        tokens = tokens_along(self, site, axis, size)
        places = range(0, len(tokens), -(-len(tokens) // MAX_LABELS) or 1)
        labels = [html.escape(tokens[place].text[:MAX_LETTERS], quote=False) for place in places]
        ticks: dict[str, Any] = (
            {"tickmode": "array", "tickvals": [*places], "ticktext": labels} if tokens else {}
        )
        return {"title": axis, **ticks}
