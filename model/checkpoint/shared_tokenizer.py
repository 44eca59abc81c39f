"""A tokenizer that several models share is stored once: the other folders name its model.

    {"tokenizer_of": "stories"}

That is then the whole `tokenizer.json`. The model is looked for next to the folder, then among
those that ship. The revision of a checkpoint is computed over the tokenizer itself, so a model
whose shared tokenizer changes has another revision.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from headlight.model.checkpoint.files import (
    CONFIG,
    TOKENIZER,
    CheckpointError,
    read_file,
    unique_keys,
)

OF = "tokenizer_of"
NAME = re.compile(r"[\w.-]+")

_MOST_BYTES = 512  # no tokenizer is shorter


def is_model_name(name: object) -> bool:
    """Return whether a name is that of one folder, not a path."""
    return isinstance(name, str) and bool(NAME.fullmatch(name)) and name not in (".", "..")


def neighbour(folder: Path, name: str, shipped: Path) -> Path | None:
    """Return the folder of a model next to another one, or of one that ships; None: neither.

    Args:
        folder: next to which to look; it is never returned.
        name: of the model.
        shipped: the folder of the models that ship.
    """
    for place in (folder.resolve().parent / name, shipped / name):
        if (place / CONFIG).is_file() and place.resolve() != folder.resolve():
            return place
    return None


def shared_tokenizer(folder: Path, shipped: Path) -> Path:
    """Return the file of a folder's tokenizer, which may be in the folder of another model.

    Args:
        folder: of a checkpoint; its own file is returned unless that names another model.
        shipped: the folder of the models that ship.

    Raises:
        CheckpointError: the name is not one of a model, or that model is not there, has no
            tokenizer or shares one itself.
    """
    path = folder / TOKENIZER
    name = _named(path)
    if name is None:
        return path
    if not is_model_name(name):
        raise CheckpointError(f"{path}: {OF} must be the name of a model")
    place = neighbour(folder, str(name), shipped)
    if place is None or not (place / TOKENIZER).is_file():
        raise CheckpointError(
            f"{path} is that of the model {name!r}, which is not there; put it next to this folder"
        )
    if _named(place / TOKENIZER) is not None:
        raise CheckpointError(
            f"{path} is that of {place}, whose tokenizer is another model's; name that one"
        )
    return place / TOKENIZER


def _named(path: Path) -> object:
    """Return the name of a model that a short file gives; None: it is no such file."""
    if not path.is_file() or path.stat().st_size > _MOST_BYTES:
        return None
    try:
        content = json.loads(
            read_file(path.parent, path.name, _MOST_BYTES), object_pairs_hook=unique_keys
        )
    except ValueError:
        return None
    return content[OF] if isinstance(content, dict) and set(content) == {OF} else None
