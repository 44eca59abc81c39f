"""How large an answer may become in a form, known before it is encoded.

Numbers take as many characters as they need, and how far bytes can be compressed is seen when they
are; what they take at most is known from how many there are. Only shapes are looked at.
"""

from math import prod
from typing import Any

import orjson

from headlight.serialization.formats import SAFETENSORS, Form
from headlight.serialization.trace import Answer, Sendable, sent_arrays

JSON_BYTES = {"float32": 17, "int32": 12, "uint16": 6}
"""The longest numbers with their comma: `-0.0000010000001,`, `-2147483648,`, `65535,`."""

FILE_BYTES = {"float32": 4, "int32": 4, "uint16": 2}

BRACKET_BYTES = 3
"""Those of one row, and its comma."""

NAMINGS = 4
"""How often a file names an array: where it lies, its axes, its scale and how it is packed."""

ARRAY_BYTES = 512
"""What is said of an array beside its numbers and its name: axes, shape, type, scale, packing."""

FRAME_BYTES = 1024
"""What holds it together: a file's header, the names of members, a compressor's header."""


def upper_bound(answer: Sendable, form: Form) -> int:
    """The bytes that an answer takes in that form at most."""
    is_file = form.media_type == SAFETENSORS
    n_bytes = FRAME_BYTES + _beside(answer)
    for name, shape, dtype in sent_arrays(answer, form):
        n_bytes += ARRAY_BYTES + NAMINGS * len(orjson.dumps(name))
        n_bytes += FILE_BYTES[dtype] * prod(shape) if is_file else _as_json(shape, dtype)
    # What cannot be compressed becomes a little longer, block by block.
    return n_bytes if form.coding == "identity" else n_bytes + n_bytes // 128 + FRAME_BYTES


def _beside(answer: Sendable) -> int:
    """Everything but arrays as JSON. In a file it stands in quotes, so its own are escaped."""
    members: list[Any] = [answer.members()]
    if isinstance(answer, Answer):
        members.append({name: dict(found.beside) for name, found in answer.analyses.items()})
    return 2 * len(orjson.dumps(members))


def _as_json(shape: tuple[int, ...], dtype: str) -> int:
    n_rows = sum(prod(shape[:n_axes]) for n_axes in range(len(shape)))
    return JSON_BYTES[dtype] * prod(shape) + BRACKET_BYTES * n_rows
