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


def _estimate(estimate: Mapping[str, Any], dedup: Mapping[str, Any]) -> Figure:
    """Draw estimated against exact similarity, with two theoretical standard errors either side."""
    grid = [number / 100 for number in range(101)]
    errors = [2 * (x * (1 - x) / dedup["permutations"]) ** 0.5 for x in grid]
    around = [x + error for x, error in zip(grid, errors, strict=True)]
    around += [x - error for x, error in zip(grid[::-1], errors[::-1], strict=True)]
    band = {
        "type": "scatter",
        "x": grid + grid[::-1],
        "y": around,
        "fill": "toself",
        "mode": "none",
        "fillcolor": FIRST,
        "opacity": 0.14,
        "hoverinfo": "skip",
    }
    exact, estimates = zip(*estimate["points"], strict=True)
    points = {
        "type": "scatter",
        "x": exact,
        "y": estimates,
        "mode": "markers",
        "marker": {"color": NUMBER, "size": 5, "opacity": 0.6},
        "hovertemplate": "exact %{x:.3f}<br>estimate %{y:.3f}<extra></extra>",
    }
    label = _note(dedup["threshold"], 0.04, f"threshold {dedup['threshold']:g}", anchor="right")
    layout = _layout(
        380,
        _axis("exact Jaccard similarity", range=[-0.02, 1.02]),
        _axis("estimate by MinHash", range=[-0.02, 1.02]),
        shapes=[_upright(dedup["threshold"])],
        annotations=[label],
    )
    return {"data": [band, _diagonal(), points], "layout": layout}


def _diagonal() -> dict[str, Any]:
    line = {"color": FIRST, "width": 1}
    shape = {"type": "scatter", "x": [0, 1], "y": [0, 1], "mode": "lines", "line": line}
    return shape | {"hoverinfo": "skip"}


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
    bars = {
        "type": "bar",
        "x": middles,
        "y": counts,
        "width": width * 0.92,
        "marker": {"color": [ALARM if x < least else NUMBER for x in middles]},
        "hovertemplate": "P(good) about %{x:.2f}<br>%{y} documents<extra></extra>",
    }
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
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": values,
        "y": list(range(len(names))),
        "marker": {"color": [SECOND if value > 0 else ALARM for value in values]},
        "hovertemplate": "%{x:.3f}<extra></extra>",
    }
    layout = _layout(
        40 + 24 * len(names),
        _axis("weight per standard deviation: bad ← 0 → good", zeroline=True, zerolinecolor=MUTED),
        _labelled_axis(names),
    )
    return {"data": [bars], "layout": layout}


def _calibration(bins: Sequence[Mapping[str, float]]) -> Figure:
    """Return the share of good documents against the probability, by tenths."""
    most = max(row["documents"] for row in bins)
    points = {
        "type": "scatter",
        "x": [row["probability"] for row in bins],
        "y": [row["good"] for row in bins],
        "mode": "lines+markers",
        "line": {"color": NUMBER, "width": 1},
        "marker": {
            "color": NUMBER,
            "opacity": 1,
            "size": [6 + 18 * (row["documents"] / most) ** 0.5 for row in bins],
        },
        "customdata": [row["documents"] for row in bins],
        "hovertemplate": "predicted %{x:.2f}<br>good %{y:.2f}<br>%{customdata} documents"
        "<extra></extra>",
    }
    layout = _layout(
        300,
        _axis("predicted probability", range=[-0.04, 1.04]),
        _axis("share that is good", range=[-0.06, 1.06]),
    )
    return {"data": [_diagonal(), points], "layout": layout}


def _label(topic: Mapping[str, Any]) -> str:
    return ", ".join(topic["words"][:_N_LABELS])


def _map(topics: Mapping[str, Any]) -> Figure:
    """Return the topics in the plane; near topics use similar words, the area is the share."""
    entries, shares = topics["topics"], topics["shares"]
    most = max(shares) or 1
    points = {
        "type": "scatter",
        "mode": "markers+text",
        "x": [topic["x"] for topic in entries],
        "y": [topic["y"] for topic in entries],
        "text": [str(number) for number in range(len(entries))],
        "textfont": {"color": INK, "size": 12},
        "marker": {
            "size": [14 + 52 * (share / most) ** 0.5 for share in shares],
            "color": NUMBER,
            "opacity": 0.45,
            "line": {"color": NUMBER, "width": 1},
        },
        "customdata": [
            [" ".join(topic["words"]), share] for topic, share in zip(entries, shares, strict=True)
        ],
        "hovertemplate": "%{customdata[0]}<br>%{customdata[1]:.1%} of the corpus<extra></extra>",
    }
    hidden = {"showgrid": False, "showticklabels": False}
    layout = _layout(440, _axis("", **hidden), _axis("", scaleanchor="x", **hidden))
    return {"data": [points], "layout": layout | {"margin": {"l": 8, "r": 8, "t": 8, "b": 8}}}


def _shares(topics: Mapping[str, Any]) -> Figure:
    """Return the share of every topic, and that in the other corpus."""
    order = sorted(range(len(topics["shares"])), key=lambda number: topics["shares"][number])
    empty = {*topics.get("empty", ())}
    labels = [
        f"{number} · {_label(topics['topics'][number])}{' (in no document)' * (number in empty)}"
        for number in order
    ]
    rows = list(range(len(order)))
    shown = [topics["shares"][number] for number in order]
    template = "%{x:.1%}<extra></extra>"
    data: list[dict[str, Any]] = [
        {"type": "bar", "orientation": "h", "x": shown, "y": rows, "hovertemplate": template}
        | {"marker": {"color": NUMBER}}
    ]
    if against := topics.get("against"):
        shares_against = [against["shares"][number] for number in order]
        lines_x = [
            x
            for share, share_against in zip(shown, shares_against, strict=True)
            for x in (share, share_against, None)
        ]
        lines_y = [y for row in rows for y in (row, row, None)]
        line = {"color": LINE, "width": 3}
        data = [
            {"type": "scatter", "mode": "lines", "x": lines_x, "y": lines_y, "line": line}
            | {"hoverinfo": "skip"},
            _dots(shown, rows, NUMBER, "this corpus"),
            _dots(shares_against, rows, FIRST, "the other"),
        ]
    layout = _layout(
        max(300, 60 + 26 * len(order)),
        _axis("mean share of a document", tickformat=".0%", rangemode="tozero"),
        _labelled_axis(labels),
        showlegend=bool(topics.get("against")),
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    )
    return {"data": data, "layout": layout}


def _dots(values: Sequence[float], rows: Sequence[int], colour: str, name: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": values,
        "y": rows,
        "name": name,
        "marker": {"color": colour, "size": 11},
        "hovertemplate": f"{name} %{{x:.1%}}<extra></extra>",
    }


def _per_document(topics: Mapping[str, Any]) -> Figure:
    counts = topics["topics_per_document"]
    bars = {
        "type": "bar",
        "x": list(map(int, counts)),
        "y": list(counts.values()),
        "marker": {"color": NUMBER},
        "hovertemplate": "%{x} topics<br>%{y} documents<extra></extra>",
    }
    axis = _axis("topics with more than<br>a tenth of a document", dtick=1, showgrid=False)
    return {"data": [bars], "layout": _layout(300, axis, _axis("documents"))}
