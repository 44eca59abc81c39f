"""Reading a safetensors answer: arrays as they were captured, and what is said beside them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError

from headlight.client.errors import UnreadableAnswer
from headlight.model.trace import NamedArray

LENGTH_BYTES = 8
LOWER_TRIANGLE = "lower-triangle"


@dataclass(frozen=True, kw_only=True)
class File:
    """An answer: its arrays by name, and all its other members."""

    arrays: Mapping[str, NamedArray]
    members: Mapping[str, Any]


def read_file(content: bytes) -> File:
    """The arrays of a safetensors answer and its members.

    Numbers that were sent as uint16 are multiplied by their scale, arrays that were sent as a
    triangle are whole again, and what was masked is -inf.

    Raises:
        UnreadableAnswer: it is no such file, or says of itself what this client does not know.
    """
    try:
        sent = safetensors.numpy.load(content)
        length = int.from_bytes(content[:LENGTH_BYTES], "little")
        header = json.loads(content[LENGTH_BYTES : LENGTH_BYTES + length])
        metadata = {name: json.loads(text) for name, text in header["__metadata__"].items()}
        axes, scales = metadata.pop("axes"), metadata.pop("scale", {})
        packed = metadata.pop("packed", {})
        arrays = {  # in the order they were captured in: the file has none
            name: NamedArray(
                tuple(named), _restored(sent[name], scales.get(name), packed.get(name))
            )
            for name, named in axes.items()
        }
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise UnreadableAnswer(
            f"the answer is no safetensors file of Headlight: {error}"
        ) from error
    return File(arrays=arrays, members=metadata)


def _restored(
    array: NDArray[Any], scale: float | None, packed: Mapping[str, Any] | None
) -> NDArray[Any]:
    values = array if scale is None else array * np.float32(scale)
    return values if packed is None else _unpacked(values, packed)


def _unpacked(triangle: NDArray[Any], packed: Mapping[str, Any]) -> NDArray[Any]:
    """The whole array: what lies above the diagonal was left out."""
    if packed["packed"] != LOWER_TRIANGLE:
        raise ValueError(f"an array is packed as {packed['packed']!r}; a newer client can read it")
    fill = -np.inf if packed["fill"] is None else packed["fill"]
    whole = np.full(packed["shape"], fill, triangle.dtype)
    rows, columns = np.tril_indices(whole.shape[-1])
    whole[..., rows, columns] = triangle
    return whole
