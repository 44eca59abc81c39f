"""The report of the data commands as one HTML page that opens offline.

Figures are plain data for Plotly. Their colours are names of the page's design tokens, such as
``var(--beam)``, which the page replaces by the colours of the light or the dark theme.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from jinja2 import Environment, FileSystemLoader

from headlight.saved_page import json_element, plotly_script, style
from headlight.settings import HOME
from headlight.static_files import logo

INK, MUTED, LINE = "var(--ink)", "var(--muted)", "var(--line)"
NUMBER, FIRST, SECOND, ALARM = "var(--beam)", "var(--query)", "var(--key)", "var(--alarm)"

REASONS = {
    "exact_duplicate": "exact duplicates",
    "near_duplicate": "near-duplicates",
    "low_quality": "low quality",
    "other_language": "another language",
    "unwanted_word": "an unwanted word",
    "spam": "spam",
}
UNUSABLE = {
    "broken_line": "lines that are not JSON with a text",
    "empty_text": "empty texts",
    "wrong_encoding": "lines that are not UTF-8",
    "binary": "binary files",
    "too_long": "lines or documents that are too long",
    "empty_file": "empty files",
    "unreadable_file": "files that cannot be read",
    "other_ending": "files of a folder with another ending",
}
_N_LABELS = 3

Figure = dict[str, Any]


def render(figures: Mapping[str, Any]) -> str:
    """Return the page as HTML.

    Args:
        figures: the report, as ``report.json`` has it.
    """
    templates = Environment(loader=FileSystemLoader(HOME / "templates"), autoescape=True)
    templates.filters |= {"count": _count, "size": _size, "percent": _percent}
    return templates.get_template("data_report.html").render(
        report=figures,
        reasons=REASONS,
        unusable=UNUSABLE,
        styles=[style("page")],
        logo=logo(),
        figures=json_element(_drawings(figures)),
        plotly=plotly_script(),
        version=version("headlight"),
    )


def _count(number: float) -> str:
    return f"{number:,}"


def _size(n_bytes: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if n_bytes < 1_000:
            return f"{n_bytes:.3g}\u202f{unit}"
        n_bytes /= 1_000
    return f"{n_bytes:.3g}\u202fGB"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}\u202f%" if share else "0\u202f%"


def _drawings(figures: Mapping[str, Any]) -> dict[str, Figure]:
    """Return every figure of the page, by the id of its element."""
    drawings: dict[str, Figure] = {}
    if (estimate := figures.get("dedup", {}).get("estimate")) is not None:
        drawings["estimate"] = _estimate(estimate, figures["dedup"])
    if quality := figures.get("quality"):
        if sum(quality["histogram"]):
            drawings["histogram"] = _histogram(quality["histogram"], quality["least_quality"])
        drawings["weights"] = _weights(quality["weights"])
        if calibration := quality["classifier"].get("calibration"):
            drawings["calibration"] = _calibration(calibration)
    if topics := figures.get("topics"):
        drawings["map"] = _map(topics)
        drawings["shares"] = _shares(topics)
        drawings["per-document"] = _per_document(topics)
    return drawings


def _axis(title: str, **changes: Any) -> dict[str, Any]:
    plain = {"zeroline": False, "gridcolor": LINE, "linecolor": LINE, "automargin": True}
    return plain | {"title": {"text": title, "standoff": 10}, "ticks": ""} | changes


def _labelled_axis(labels: Sequence[str]) -> dict[str, Any]:
    places = list(range(len(labels)))
    return _axis("", tickmode="array", tickvals=places, ticktext=labels, showgrid=False)


def _layout(height: int, x: dict[str, Any], y: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "height": height,
        "margin": {"l": 48, "r": 16, "t": 12, "b": 48},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": MUTED, "size": 13},
        "hoverlabel": {"bgcolor": "var(--surface)", "font": {"color": INK}},
        "showlegend": False,
        "bargap": 0.12,
        "xaxis": x,
        "yaxis": y,
        **changes,
    }


def _trace(kind: str, x: Sequence[Any], y: Sequence[Any], **more: Any) -> dict[str, Any]:
    """Return data of Plotly; without ``hovertemplate`` nothing is told of a point."""
    told = {} if "hovertemplate" in more else {"hoverinfo": "skip"}
    return {"type": kind, "x": x, "y": y, **told, **more}


def _estimate(estimate: Mapping[str, Any], dedup: Mapping[str, Any]) -> Figure:
    """Draw estimated against exact similarity, with two theoretical standard errors either side."""
    grid = [number / 100 for number in range(101)]
    errors = [2 * (x * (1 - x) / dedup["permutations"]) ** 0.5 for x in grid]
    around = [x + error for x, error in zip(grid, errors, strict=True)]
    around += [x - error for x, error in zip(grid[::-1], errors[::-1], strict=True)]
    filling = {"fill": "toself", "mode": "none", "fillcolor": FIRST, "opacity": 0.14}
    exact, estimates = zip(*estimate["points"], strict=True)
    points = _trace(
        "scatter",
        exact,
        estimates,
        mode="markers",
        marker={"color": NUMBER, "size": 5, "opacity": 0.6},
        hovertemplate="exact %{x:.3f}<br>estimate %{y:.3f}<extra></extra>",
    )
    threshold = dedup["threshold"]
    layout = _layout(
        380,
        _axis("exact Jaccard similarity", range=[-0.02, 1.02]),
        _axis("estimate by MinHash", range=[-0.02, 1.02]),
        shapes=[_upright(threshold)],
        annotations=[_note(threshold, 0.04, f"threshold {threshold:g}", anchor="right")],
    )
    band = _trace("scatter", grid + grid[::-1], around, **filling)
    return {"data": [band, _diagonal(), points], "layout": layout}


def _diagonal() -> dict[str, Any]:
    return _trace("scatter", [0, 1], [0, 1], mode="lines", line={"color": FIRST, "width": 1})


def _upright(x: float) -> dict[str, Any]:
    """Return a dotted line from the bottom to the top of a figure."""
    line = {"color": INK, "width": 1, "dash": "dot"}
    return {"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "line": line}


def _note(x: float, y: float, text: str, *, anchor: str) -> dict[str, Any]:
    """Return a short text at a place of a figure."""
    shift = {"xanchor": anchor, "xshift": -6 if anchor == "right" else 6}
    font = {"color": INK, "size": 12}
    return {"x": x, "y": y, "text": text, "showarrow": False, "font": font} | shift


def _histogram(counts: Sequence[int], least: float) -> Figure:
    width = 1 / len(counts)
    middles = [(number + 0.5) * width for number in range(len(counts))]
    bars = _trace(
        "bar",
        middles,
        counts,
        width=width * 0.92,
        marker={"color": [ALARM if x < least else NUMBER for x in middles]},
        hovertemplate="P(good) about %{x:.2f}<br>%{y} documents<extra></extra>",
    )
    note = _note(least, 1, f"dropped below {least:g}", anchor="right" if least > 0.4 else "left")
    layout = _layout(
        300,
        _axis("probability of being good", range=[0, 1], showgrid=False),
        _axis("documents (logarithmic)", type="log", dtick=1),
        shapes=[_upright(least) | {"yref": "paper"}],
        annotations=[note | {"yref": "paper", "yanchor": "top"}],
    )
    return {"data": [bars], "layout": layout}


def _weights(weights: Mapping[str, float]) -> Figure:
    """Return the weights of the standardized features, the largest on top."""
    pairs = sorted(weights.items(), key=lambda pair: abs(pair[1]))
    names, values = zip(*pairs, strict=True)
    colours = [SECOND if value > 0 else ALARM for value in values]
    bars = _rows(values, {"color": colours}, "%{x:.3f}<extra></extra>")
    layout = _layout(
        40 + 24 * len(names),
        _axis("weight per standard deviation: bad ← 0 → good", zeroline=True, zerolinecolor=MUTED),
        _labelled_axis(names),
    )
    return {"data": [bars], "layout": layout}


def _rows(values: Sequence[float], marker: Mapping[str, Any], template: str) -> dict[str, Any]:
    """Return horizontal bars, the first at the bottom."""
    rows, across = [*range(len(values))], {"orientation": "h", "marker": marker}
    return _trace("bar", values, rows, hovertemplate=template, **across)


def _calibration(bins: Sequence[Mapping[str, float]]) -> Figure:
    """Return the share of good documents against the probability, by tenths."""
    counts = [row["documents"] for row in bins]
    sizes = [6 + 18 * (count / max(counts)) ** 0.5 for count in counts]
    points = _trace(
        "scatter",
        [row["probability"] for row in bins],
        [row["good"] for row in bins],
        mode="lines+markers",
        line={"color": NUMBER, "width": 1},
        marker={"color": NUMBER, "opacity": 1, "size": sizes},
        customdata=counts,
        hovertemplate="predicted %{x:.2f}<br>good %{y:.2f}<br>%{customdata} documents"
        "<extra></extra>",
    )
    layout = _layout(
        300,
        _axis("predicted probability", range=[-0.04, 1.04]),
        _axis("share that is good", range=[-0.06, 1.06]),
    )
    return {"data": [_diagonal(), points], "layout": layout}


def _map(topics: Mapping[str, Any]) -> Figure:
    """Return the topics in the plane; near topics use similar words, the area is the share."""
    entries, shares = topics["topics"], topics["shares"]
    most = max(shares) or 1
    sizes = [14 + 52 * (share / most) ** 0.5 for share in shares]
    around = {"color": NUMBER, "width": 1}
    points = _trace(
        "scatter",
        [topic["x"] for topic in entries],
        [topic["y"] for topic in entries],
        mode="markers+text",
        text=[str(number) for number in range(len(entries))],
        textfont={"color": INK, "size": 12},
        marker={"size": sizes, "color": NUMBER, "opacity": 0.45, "line": around},
        customdata=[
            [" ".join(topic["words"]), share] for topic, share in zip(entries, shares, strict=True)
        ],
        hovertemplate="%{customdata[0]}<br>%{customdata[1]:.1%} of the corpus<extra></extra>",
    )
    hidden = {"showgrid": False, "showticklabels": False}
    layout = _layout(440, _axis("", **hidden), _axis("", scaleanchor="x", **hidden))
    return {"data": [points], "layout": layout | {"margin": {"l": 8, "r": 8, "t": 8, "b": 8}}}


def _shares(topics: Mapping[str, Any]) -> Figure:
    """Return the share of every topic, and that in the other corpus."""
    order = sorted(range(len(topics["shares"])), key=lambda number: topics["shares"][number])
    labels = []
    for number in order:
        words = ", ".join(topics["topics"][number]["words"][:_N_LABELS])
        is_empty = number in topics.get("empty", ())
        labels.append(f"{number} · {words}{' (in no document)' * is_empty}")
    shown = [topics["shares"][number] for number in order]
    data = [_rows(shown, {"color": NUMBER}, "%{x:.1%}<extra></extra>")]
    if against := topics.get("against"):
        others = [against["shares"][number] for number in order]
        ends = [x for pair in zip(shown, others, strict=True) for x in (*pair, None)]
        rows = [y for row in range(len(order)) for y in (row, row, None)]
        line = {"color": LINE, "width": 3}
        data = [
            _trace("scatter", ends, rows, mode="lines", line=line),
            _dots(shown, NUMBER, "this corpus"),
            _dots(others, FIRST, "the other"),
        ]
    layout = _layout(
        max(300, 60 + 26 * len(order)),
        _axis("mean share of a document", tickformat=".0%", rangemode="tozero"),
        _labelled_axis(labels),
        showlegend=bool(against),
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    )
    return {"data": data, "layout": layout}


def _dots(values: Sequence[float], colour: str, name: str) -> dict[str, Any]:
    template = f"{name} %{{x:.1%}}<extra></extra>"
    marker, rows = {"color": colour, "size": 11}, [*range(len(values))]
    shape = {"mode": "markers", "name": name, "marker": marker}
    return _trace("scatter", values, rows, hovertemplate=template, **shape)


def _per_document(topics: Mapping[str, Any]) -> Figure:
    counts = topics["topics_per_document"]
    template = "%{x} topics<br>%{y} documents<extra></extra>"
    marker = {"color": NUMBER}
    bars = _trace(
        "bar", [*map(int, counts)], [*counts.values()], marker=marker, hovertemplate=template
    )
    axis = _axis("topics with more than<br>a tenth of a document", dtick=1, showgrid=False)
    return {"data": [bars], "layout": _layout(300, axis, _axis("documents"))}
