"""The states of a training: sub-folders ``step512`` of a model's folder, as those of Pythia.

Each is a model whose id is that of the whole with its step, ``forming@512``. `headlight train
--keep-steps` writes them, and `SCORES` next to them: the scores of each.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from headlight.model.checkpoint.card import read_shaped
from headlight.model.checkpoint.files import CONFIG

AT = "@"
SCORES = "steps.json"
SHAPE = {
    "text": [str],
    "rows": int,
    "states": [
        {
            "step": int,
            "tokens": int,
            "previous": [[float]],
            "induction": [[float]],
            "repeat_gain": float,
            "early_loss": float,
            "late_loss": float,
        }
    ],
}
MAX_BYTES = 2**20
MOST = 1_000
_STEP = re.compile(r"step(0|[1-9]\d{0,11})")


def steps_in(folder: Path) -> dict[int, Path]:
    """Return the folders of the states of a training by their step, the first `MOST`."""
    try:
        found = [(_STEP.fullmatch(path.name), path) for path in folder.iterdir()]
    except OSError:
        return {}
    steps = {int(step[1]): path for step, path in found if step and (path / CONFIG).is_file()}
    return dict(sorted(steps.items())[:MOST])


def whole_of(folder: Path) -> Path | None:
    """Return the folder whose training has a state in this folder; None: it is no state."""
    if not _STEP.fullmatch(folder.name):
        return None
    parent = folder.absolute().parent
    return parent if (parent / CONFIG).is_file() or len(steps_in(parent)) > 1 else None


def id_of(folder: Path) -> str:
    """Return the id of the model in a folder."""
    whole = whole_of(folder)
    return folder.name if whole is None else f"{whole.name}{AT}{folder.name[4:]}"


def read_states(folder: Path) -> list[dict[str, Any]]:
    """Return the steps of a model's training, each with what was measured at it.

    Raises:
        CheckpointError: the file of the measures is damaged.
    """
    steps, scores = steps_in(folder), {}
    if steps and (folder / SCORES).exists():
        way_out = "remove it, or measure the states again"
        measured = read_shaped(folder, SCORES, MAX_BYTES, SHAPE, way_out)
        scores = {state["step"]: state for state in measured["states"]}
    return [{"step": step, **scores.get(step, {})} for step in steps]
