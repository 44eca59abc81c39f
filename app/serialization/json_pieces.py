"""JSON in pieces, so that a huge answer holds up nobody.

Writing numbers as text holds the interpreter lock. Between two pieces everybody else has a turn:
the event loop, and the inference thread.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import orjson
from numpy.typing import NDArray

PIECE_CELLS = 2**14
"""Numbers written without a pause: about 2 ms."""

Pieces = Iterable[bytes]


def json_value(value: object) -> Iterator[bytes]:
    """A value that is small, in one piece."""
    yield orjson.dumps(value)


def json_object(members: Iterable[tuple[str, Pieces]]) -> Iterator[bytes]:
    """An object of members whose values come in pieces."""
    opening = b"{"
    for name, pieces in members:
        yield opening + orjson.dumps(name) + b":"
        yield from pieces
        opening = b","
    yield b"{}" if opening == b"{" else b"}"


def json_array(data: NDArray[Any]) -> Iterator[bytes]:
    """Nested lists of numbers; -inf is null.

    Args:
        data: C-contiguous, of one axis at least.
    """
    if data.size <= PIECE_CELLS:
        yield orjson.dumps(data, option=orjson.OPT_SERIALIZE_NUMPY)
        return
    n_rows = len(data)
    row_cells = data.size // n_rows
    opening = b"["
    if row_cells > PIECE_CELLS:
        for row in data:
            yield opening
            yield from json_array(row)
            opening = b","
    else:
        step = PIECE_CELLS // row_cells
        for first in range(0, n_rows, step):
            rows = orjson.dumps(data[first : first + step], option=orjson.OPT_SERIALIZE_NUMPY)
            yield opening + rows[1:-1]
            opening = b","
    yield b"]"
