"""A circuit as a file: JSON, or its edges as CSV, which NetworkX, Gephi and pandas read."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from io import StringIO
from typing import Any

from headlight.schemas.circuits import CircuitAnswer

FORMATS: Mapping[str, str] = {"json": "application/json", "csv": "text/csv"}
"""The media type of each format."""


def written(answer: CircuitAnswer, form: str) -> str:
    """Return a circuit in a format of `FORMATS`."""
    if form == "json":
        return answer.model_dump_json() + "\n"
    return "".join(csv_lines(answer))


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
