"""A heatmap as a picture with its labels and its scale, for what shows no scripts.

It is one SVG within an `img`: a page that cleans what it shows leaves it whole. It brings its own
paper, so it is as readable on a dark page.
"""

from __future__ import annotations

import base64
import html
import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headlight.model.colour import levels

SIDE, LEAST_CELL, MOST_CELL = 420.0, 1.0, 28.0
LINE = 13
"""Pixels that a label needs to stand clear of the next."""

_LEFT, _TOP, _RIGHT, _BOTTOM = 116.0, 112.0, 84.0, 12.0
_PAPER, _INK, _MUTED = "#fff", "#1d1b22", "#5b5762"
_ILLEGAL = re.compile("[\ufffe\uffff]")  # in XML


def as_html(drawing: Mapping[str, Any], caption: str, sites: Sequence[str]) -> str:
    """A figure without a script.

    Args:
        drawing: the map as plain data for Plotly.
        caption: what was read and by what.
        sites: what else there is, a line each.
    """
    title = html.escape(drawing["layout"]["title"]["text"])
    picture = _base64(_svg(drawing).encode())
    listed = html.escape("\n".join(sites))
    return (
        f"<figure><figcaption><b>{title}</b><br>{html.escape(caption)}</figcaption>"
        f'<img src="data:image/svg+xml;base64,{picture}" alt="{title}">'
        f"<details><summary>All that the trace holds ({len(sites)})</summary>"
        f"<pre>{listed}</pre></details></figure>"
    )


def _svg(drawing: Mapping[str, Any]) -> str:
    (trace,), layout = drawing["data"], drawing["layout"]
    values = np.array(
        [[np.nan if v is None else v for v in row] for row in trace["z"]], dtype=np.float64
    )
    lowest, highest = trace["zmin"], trace["zmax"]
    rows, columns = values.shape
    cell = min(MOST_CELL, max(LEAST_CELL, SIDE / max(rows, columns)))
    across, down = cell * columns, cell * rows
    shade = np.clip((values - lowest) / ((highest - lowest) or 1.0), 0, 1) * 254 + 1
    shades = np.where(np.isnan(values), 0, shade).astype(np.uint8)
    bar = max(down, 120.0)
    width, height = _LEFT + across + _RIGHT, _TOP + bar + _BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'font-family="system-ui, sans-serif" font-size="11" fill="{_INK}">',
        f'<rect width="100%" height="100%" fill="{_PAPER}"/>',
        _image(_png(shades, lowest < 0), _LEFT, _TOP, across, down),
        *_labels(layout["xaxis"], cell, is_across=True),
        *_labels(layout["yaxis"], cell, is_across=False),
        *_titles(layout, down),
        *_scale(lowest, highest, _LEFT + across + 20, bar),
        "</svg>",
    ]
    return _ILLEGAL.sub("\ufffd", "".join(parts))


def _labels(axis: Mapping[str, Any], cell: float, *, is_across: bool) -> list[str]:
    """Beside every cell its label; where cells are small, beside every n-th."""
    found, free_from = [], 0.0
    for place, text in zip(axis["tickvals"], axis["ticktext"], strict=True):
        middle = (place + 0.5) * cell
        if middle < free_from:
            continue
        free_from = middle + LINE
        if is_across:
            x, y = _LEFT + middle + 4, _TOP - 5
            where = f'transform="translate({x:.1f} {y}) rotate(-90)"'
        else:
            where = f'x="{_LEFT - 6}" y="{_TOP + middle + 4:.1f}" text-anchor="end"'
        found.append(f"<text {where}>{text}</text>")
    return found


def _titles(layout: Mapping[str, Any], down: float) -> list[str]:
    columns, rows = (layout[axis]["title"]["text"] for axis in ("xaxis", "yaxis"))
    middle = f"translate(12 {_TOP + down / 2:.1f}) rotate(-90)"
    return [
        f'<text x="{_LEFT}" y="14" fill="{_MUTED}">{html.escape(columns)} →</text>',
        f'<text transform="{middle}" text-anchor="middle" fill="{_MUTED}">← {html.escape(rows)}'
        "</text>",
    ]


def _scale(lowest: float, highest: float, left: float, height: float) -> list[str]:
    """The colours from the lowest value, below, to the highest, with numbers beside them."""
    shades = np.arange(255, 0, -1, dtype=np.uint8)[:, None]
    found = [_image(_png(shades, lowest < 0), left, _TOP, 10.0, height)]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = _TOP + height * (1 - share) + 4
        value = f"{lowest + share * (highest - lowest):.3g}".replace("-", "−")
        found.append(f'<text x="{left + 15:.1f}" y="{y:.1f}">{value}</text>')
    return found


def _image(picture: bytes, x: float, y: float, width: float, height: float) -> str:
    return (
        f'<image x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        'preserveAspectRatio="none" style="image-rendering: pixelated" '
        f'href="data:image/png;base64,{_base64(picture)}"/>'
    )


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _png(shades: NDArray[np.uint8], is_signed: bool) -> bytes:
    """A picture of shades: 0 is nothing, 1 to 255 the scale (https://www.w3.org/TR/png/)."""
    height, width = shades.shape
    lines = np.zeros((height, width + 1), dtype=np.uint8)  # each line begins with its filter: none
    lines[:, 1:] = shades
    colours = levels(is_signed=is_signed).tobytes()
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", colours),
        (b"tRNS", b"\0"),
        (b"IDAT", zlib.compress(lines.tobytes())),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
