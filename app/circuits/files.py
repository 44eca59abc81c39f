"""A circuit as a file: CSV, GraphML, and the language of Graphviz.

GraphML (http://graphml.graphdrawing.org) is read by Gephi, yEd and NetworkX, DOT by Graphviz.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from typing import Any, NamedTuple
from xml.sax.saxutils import escape, quoteattr  # nosec B406: written, never parsed

from headlight.schemas.circuits import CircuitAnswer, EdgeAnswer

FORMATS: Mapping[str, str] = {
    "json": "application/json",
    "csv": "text/csv",
    "graphml": "application/graphml+xml",
    "dot": "text/vnd.graphviz",
}
"""The media type of each format."""
FOR, AGAINST = "#c4683c", "#2166ac"
"""Colours of edges that work for the right answer and against it, as on the page."""


def written(answer: CircuitAnswer, form: str) -> str:
    """Return a circuit in a format of `FORMATS`."""
    if form == "json":
        return answer.model_dump_json() + "\n"
    return "".join({"csv": csv_lines, "graphml": graphml_lines, "dot": dot_lines}[form](answer))


def csv_lines(answer: CircuitAnswer) -> Iterator[str]:
    """Yield the edges as a table, each with the model and the figures of the whole circuit.

    ``effect`` is in logits, above 0 where the edge works for the right answer: minus the score.
    ``loss`` is the faithfulness that the circuit loses without the edge.
    """
    figures = answer.held_out or answer.chosen
    about = {
        "model": answer.model,
        "revision": answer.revision,
        "task": answer.request.task or "",
        "pairs": figures.n_pairs,
        "faithfulness": figures.value,
        "low": figures.interval[0],
        "high": figures.interval[1],
    }
    line = StringIO()
    write = csv.writer(line, lineterminator="\n").writerow
    header = ["edge", "writer", "reader", "position", "effect", "loss", *about]
    rows: Iterator[list[Any]] = (
        [
            edge.name,
            answer.writers[edge.writer].name,
            answer.readers[edge.reader].name,
            "" if edge.position is None else edge.position,
            "" if edge.score is None else -edge.score,
            edge.loss,
            *about.values(),
        ]
        for edge in answer.edges
    )
    for row in (header, *rows):
        write(row)
        yield line.getvalue()
        line.seek(0)
        line.truncate()


class Line(NamedTuple):
    """A line of a drawing: between two nodes by name, of an edge; None: an attention."""

    first: str
    last: str
    letter: str
    edge: EdgeAnswer | None


def nodes_of(answer: CircuitAnswer) -> tuple[list[str], list[Line]]:
    """Return the nodes of a drawing, and its lines.

    Queries, keys and values are drawn in the node of their head; the line has their letter. By
    position a node is a part at a position, and a line of its own leads from where an attention
    reads keys or values to where its head writes.
    """
    lines, reads, writes = [], set[tuple[str, int]](), set[tuple[str, int]]()
    for edge in answer.edges:
        writer, reader = answer.writers[edge.writer], answer.readers[edge.reader]
        name, letter = reader.name, _LETTERS.get(reader.kind, "")
        if letter:
            name = name.rpartition(".")[0]
        at = "" if edge.position is None else f"@{edge.position}"
        lines.append(Line(f"{writer.name}{at}", f"{name}{at}", letter, edge))
        if edge.position is not None:
            writes.add((writer.name, edge.position))
            if reader.kind in ("key", "value"):
                reads.update((head, edge.position) for head in _heads(answer, edge.reader))
    attended = sorted(
        (name, key, query) for name, key in reads for other, query in writes if other == name
    )
    lines += [
        Line(f"{name}@{key}", f"{name}@{query}", "attention", None)
        for name, key, query in attended
        if key != query
    ]
    names = dict.fromkeys(name for line in lines for name in (line.first, line.last))
    return list(names), lines


_LETTERS: Mapping[str, str] = {"query": "q", "key": "k", "value": "v"}


def _heads(answer: CircuitAnswer, reader: int) -> list[str]:
    """Return the names of the heads that a key or value is of."""
    node = answer.readers[reader]
    return [
        writer.name
        for writer in answer.writers
        if writer.path == node.path and set(writer.heads) & set(node.heads)
    ]


def made_with(answer: CircuitAnswer) -> str:
    """Return all that is needed to make a circuit again, as JSON in one line."""
    asked = answer.request.model_dump(mode="json", exclude_none=True)
    pairs = [pair.model_dump(mode="json", exclude_none=True) for pair in answer.pairs]
    content = {"model": answer.model, "revision": answer.revision, "request": asked, "pairs": pairs}
    return json.dumps(content, ensure_ascii=False)


def graphml_lines(answer: CircuitAnswer) -> Iterator[str]:
    """Yield the circuit as GraphML."""
    names, lines = nodes_of(answer)
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    keys = [(each, "graph", "string") for each in ("made_with",)]
    keys += [("faithfulness", "graph", "double"), ("input", "edge", "string")]
    keys += [("effect", "edge", "double"), ("loss", "edge", "double")]
    for name, of, kind in keys:
        yield f'<key id="{name}" for="{of}" attr.name="{name}" attr.type="{kind}"/>\n'
    yield f'<graph id={quoteattr(answer.model)} edgedefault="directed">\n'
    faithful = (answer.held_out or answer.chosen).value
    yield _data((("made_with", made_with(answer)), ("faithfulness", faithful))) + "\n"
    for name in names:
        yield f"<node id={quoteattr(name)}/>\n"
    for first, last, letter, edge in lines:
        inside = _data(
            (
                ("input", letter),
                ("effect", None if edge is None or edge.score is None else -edge.score),
                ("loss", None if edge is None else edge.loss),
            )
        )
        yield f"<edge source={quoteattr(first)} target={quoteattr(last)}>{inside}</edge>\n"
    yield "</graph>\n</graphml>\n"


def _data(values: Sequence[tuple[str, Any]]) -> str:
    return "".join(
        f'<data key="{name}">{escape(_CONTROLS.sub("", str(value)))}</data>'
        for name, value in values
        if value not in (None, "")
    )


_CONTROLS = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to write."""


def dot_lines(answer: CircuitAnswer) -> Iterator[str]:
    """Yield the circuit in the language of Graphviz; width by size of effect, colour by sign."""
    names, lines = nodes_of(answer)
    sizes = [abs(edge.loss if edge.score is None else edge.score) for edge in answer.edges]
    largest = max(sizes, default=1.0) or 1.0
    yield f"digraph {_quoted(answer.model)} {{\n  rankdir=BT;\n  node [shape=box];\n"
    yield f"  comment={_quoted(made_with(answer))};\n"
    for name in names:
        yield f"  {_quoted(name)};\n"
    for first, last, letter, edge in lines:
        if edge is None:
            yield f"  {_quoted(first)} -> {_quoted(last)} [style=dotted];\n"
            continue
        strength = edge.loss if edge.score is None else -edge.score
        colour = FOR if strength >= 0 else AGAINST
        yield (
            f"  {_quoted(first)} -> {_quoted(last)} [label={_quoted(letter)}"
            f', color="{colour}", penwidth={0.3 + 4 * abs(strength) / largest:.2f}];\n'
        )
    yield "}\n"


def _quoted(text: str) -> str:
    return '"{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"'))
