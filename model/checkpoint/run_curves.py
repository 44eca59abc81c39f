"""The curves of a training run: its figures by step, stored next to the model's weights.

`headlight train` reduces the run's ``metrics.jsonl`` to ``curves.json``, which the page draws.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from headlight.model.checkpoint.card import read_shaped
from headlight.model.checkpoint.files import CheckpointError

CURVES = "curves.json"
MAX_BYTES = 2**20
MOST_POINTS = 60

SHAPE = {
    "pictures": [
        {"title": str, "unit": str, "lines": [{"name": str, "steps": [int], "values": [float]}]}
    ]
}
PICTURES = (
    ("Loss", "bits", {"loss": "training", "valid_loss": "validation"}),
    (
        "Right answers",
        "share",
        {
            "right": "sampled",
            "valid_right": "likeliest tokens, validation",
            "wrong_reason": "for a wrong reason",
        },
    ),
    ("Reward", "mean of a chain or an answer", {"reward": "reward"}),
    ("Points by the rule", "mean of an answer", {"rule": "points"}),
    ("Divergence from the start", "bits", {"kl": "KL"}),
    ("Entropy", "bits a token", {"entropy": "entropy"}),
    ("Length", "tokens", {"length": "a chain", "answer_tokens": "an answer"}),
)
"""The title, the unit and the lines of each picture, by their names in ``metrics.jsonl``."""


def curves_of(metrics: Sequence[Mapping[str, Any]], *, loss_of: str = "a token") -> dict[str, Any]:
    """Reduce the lines of ``metrics.jsonl`` to at most 60 points a curve.

    A point is the mean over its steps and is placed at the last of them. A run writes natural
    logarithms; curves are in bits.

    Args:
        metrics: the lines.
        loss_of: the unit of which the loss is the mean.
    """
    pictures = []
    for title, unit, names in PICTURES:
        if title == "Loss" and any("reward" in line for line in metrics):
            continue  # the loss of a policy gradient says nothing
        lines = [
            {"name": called, **points}
            for name, called in names.items()
            if (points := _points(metrics, name, math.log(2) if unit.startswith("bits") else 1))
        ]
        if lines:
            measure = f"{unit} {loss_of}" if title == "Loss" else unit
            pictures.append({"title": title, "unit": measure, "lines": lines})
    return {"pictures": pictures}


def _points(
    metrics: Sequence[Mapping[str, Any]], name: str, unit: float
) -> dict[str, list[int] | list[float]] | None:
    """Compute the points of one curve, divided by the unit; None with fewer than two.

    Blocks differ by one step at most: a point of a few steps at the end would be noise.
    """
    n_blocks = min(MOST_POINTS, len(metrics))
    bounds = [number * len(metrics) // n_blocks for number in range(n_blocks + 1)]
    steps, values = [], []
    for first, last in pairwise(bounds):
        block = metrics[first:last]
        numbers = [line[name] for line in block if line.get(name) is not None]
        if numbers:
            steps.append(block[-1]["step"])
            values.append(float(f"{sum(numbers) / len(numbers) / unit:.4g}"))
    return {"steps": steps, "values": values} if len(steps) > 1 else None


def write_curves(folder: Path, metrics: Path, *, loss_of: str = "a token") -> None:
    """Write the curves of a run into a model's folder.

    Args:
        folder: of the model.
        metrics: the ``metrics.jsonl`` of the run.
        loss_of: the unit of which the loss is the mean.
    """
    lines = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
    curves = curves_of(lines, loss_of=loss_of)
    (folder / CURVES).write_text(to_json(curves), encoding="utf-8")


def to_json(curves: Mapping[str, Any]) -> str:
    """Write curves as JSON, one line for each picture."""
    lines = ",\n".join(json.dumps(picture, ensure_ascii=False) for picture in curves["pictures"])
    return f'{{"pictures": [\n{lines}\n]}}\n'


def read_curves(folder: Path) -> Mapping[str, Any] | None:
    """Read the curves in a model's folder; None if there are none.

    Raises:
        CheckpointError: the file is damaged.
    """
    if not (folder / CURVES).exists():
        return None
    way_out = "remove it, or train the model again"
    curves: Mapping[str, Any] = read_shaped(folder, CURVES, MAX_BYTES, SHAPE, way_out)
    lines = [line for picture in curves["pictures"] for line in picture["lines"]]
    if any(len(line["steps"]) != len(line["values"]) for line in lines):
        raise CheckpointError(f"{folder / CURVES} is malformed; {way_out}")
    return curves
