"""A safetensors file in pieces: eight bytes of header length, a JSON header, then the raw arrays.

The library's own writer copies everything twice while it holds the interpreter lock, 50 ms and more
for the largest answer; its reader is what the tests read these files with. Format:
https://huggingface.co/docs/safetensors/index#format
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

PIECE_BYTES = 2**20
"""Bytes copied without a pause."""

# In the order of the library: the widest first, so that each array starts at a multiple of what
# its numbers take.
_DTYPES = {"float32": "F32", "int32": "I32", "uint16": "U16"}


def safetensors_pieces(
    arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]
) -> Iterator[bytes]:
    """The file.

    Args:
        arrays: C-contiguous float32, int32 or uint16, by name.
        metadata: texts that go beside them.
    """
    order = list(_DTYPES)
    ordered = sorted(arrays.items(), key=lambda item: (order.index(item[1].dtype.name), item[0]))
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    end = 0
    for name, data in ordered:
        begin, end = end, end + data.nbytes
        header[name] = {
            "dtype": _DTYPES[data.dtype.name],
            "shape": data.shape,
            "data_offsets": (begin, end),
        }
    text = orjson.dumps(header)
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little") + text
    for _, data in ordered:
        little = data.astype(data.dtype.newbyteorder("<"), copy=False)
        yield from _raw_pieces(little.reshape(-1).view(np.uint8))


def _raw_pieces(raw: NDArray[np.uint8]) -> Iterator[bytes]:
    for first in range(0, len(raw), PIECE_BYTES):
        yield raw[first : first + PIECE_BYTES].tobytes()
