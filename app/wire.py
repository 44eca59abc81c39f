"""A Trace on the wire: as JSON, or as one safetensors file.

Both carry the same members. JSON nests the numbers in lists; safetensors keeps the arrays by
site name and puts everything else, as JSON, into `__metadata__`, so that
`safetensors.numpy.load` is all a client needs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
import safetensors.numpy
from numpy.typing import NDArray

from app.schemas import WireType
from model.trace import NamedArray, Trace

JSON = "application/json"
SAFETENSORS = "application/x-safetensors"
MEDIA_TYPES = (JSON, SAFETENSORS)

UINT16_SCALE = 1 / 65535
MASKED_SITES = (".scores", ".router_logits")
UNIT_SITES = frozenset({"weights", "router_probs", "expert_weights"})


class NonFiniteError(Exception):
    """A tensor holds a number that no answer can carry."""


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """What an analysis computed: its arrays, and plain data that goes with them."""

    arrays: Mapping[str, NamedArray]
    beside: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A Trace with everything that is sent beside it."""

    id: str
    trace: Trace
    analyses: Mapping[str, Analysis]
    dtype: WireType = "float32"

    def members(self) -> dict[str, Any]:
        """Everything but arrays, ready for JSON."""
        trace = self.trace
        return {
            "id": self.id,
            "model": trace.model,
            "revision": trace.revision,
            "precision": trace.precision,
            "text": trace.text,
            "tokens": trace.tokens,
            "target": trace.target,
            "target_tokens": trace.target_tokens,
            "heads": trace.heads,
            "timings": {f"{step}_ms": round(took, 3) for step, took in trace.timings.items()},
        }


@dataclass(frozen=True, kw_only=True)
class _WireArray:
    """An array as it is sent: float32, int32, or uint16 with a scale."""

    axes: tuple[str, ...]
    data: NDArray[Any]
    scale: float | None = None


def encode(answer: Answer, media_type: str) -> bytes:
    """The answer as bytes of that media type, one of `MEDIA_TYPES`.

    Raises:
        NonFiniteError: a tensor holds NaN, or an infinity that masks nothing.
    """
    return to_safetensors(answer) if media_type == SAFETENSORS else to_json(answer)


def to_json(answer: Answer) -> bytes:
    """The answer as JSON; masked scores, and experts that are off, are null."""
    tensors = {site: _json_array(array) for site, array in _wire_tensors(answer)}
    analyses = {
        name: {key: _json_array(_on_wire(key, array)) for key, array in analysis.arrays.items()}
        | dict(analysis.beside)
        for name, analysis in answer.analyses.items()
    }
    return orjson.dumps(answer.members() | {"tensors": tensors, "analyses": analyses})


def to_safetensors(answer: Answer) -> bytes:
    """The answer as a safetensors file; masked scores, and experts that are off, are -inf."""
    arrays = dict(_wire_tensors(answer))
    for name, analysis in answer.analyses.items():
        for key, array in analysis.arrays.items():
            arrays[f"analyses.{name}.{key}"] = _on_wire(key, array)
    analyses = {name: found.beside for name, found in answer.analyses.items()}
    return _safetensors_file(arrays, answer.members() | {"analyses": analyses})


def encode_arrays(
    arrays: Mapping[str, NamedArray], members: Mapping[str, Any], media_type: str
) -> bytes:
    """Arrays that come from no trace, with what goes beside them, as a trace's tensors are sent.

    Raises:
        NonFiniteError: an array holds NaN or an infinity.
    """
    sent = {name: _on_wire(name, array) for name, array in arrays.items()}
    if media_type == SAFETENSORS:
        return _safetensors_file(sent, members)
    tensors = {name: _json_array(array) for name, array in sent.items()}
    return orjson.dumps({**members, "tensors": tensors})


def _safetensors_file(arrays: Mapping[str, _WireArray], members: Mapping[str, Any]) -> bytes:
    metadata = {
        **members,
        "axes": {name: array.axes for name, array in arrays.items()},
        "scale": {name: array.scale for name, array in arrays.items() if array.scale},
    }
    return safetensors.numpy.save(
        {name: array.data for name, array in arrays.items()},
        {key: orjson.dumps(value).decode() for key, value in metadata.items()},
    )


def _wire_tensors(answer: Answer) -> Iterator[tuple[str, _WireArray]]:
    for site, array in answer.trace.tensors.items():
        sent = _on_wire(site, array)
        is_small = answer.dtype == "uint16" and site.rpartition(".")[2] in UNIT_SITES
        yield site, _as_uint16(sent) if is_small else sent


def _on_wire(name: str, array: NamedArray) -> _WireArray:
    if np.issubdtype(array.data.dtype, np.integer):
        return _WireArray(axes=array.axes, data=np.ascontiguousarray(array.data, dtype=np.int32))
    data = np.ascontiguousarray(array.data, dtype=np.float32)
    _require_finite(name, data)
    return _WireArray(axes=array.axes, data=data)


def _as_uint16(array: _WireArray) -> _WireArray:
    data = np.rint(array.data * np.float32(65535)).astype(np.uint16)
    return _WireArray(axes=array.axes, data=data, scale=UINT16_SCALE)


def _require_finite(name: str, data: NDArray[Any]) -> None:
    is_allowed = np.isfinite(data)
    if name.endswith(MASKED_SITES):
        is_allowed |= np.isneginf(data)
    if not is_allowed.all():
        raise NonFiniteError(f"{name} holds {data[~is_allowed][0]}; the answer would not be true")


def _json_array(array: _WireArray) -> dict[str, Any]:
    # One fragment an array: serialising holds the interpreter lock, and between two arrays the
    # event loop gets its turn. orjson writes -inf as null.
    described = {
        "axes": array.axes,
        "shape": array.data.shape,
        "dtype": array.data.dtype.name,
        "data": orjson.Fragment(orjson.dumps(array.data, option=orjson.OPT_SERIALIZE_NUMPY)),
    }
    return described | {"scale": array.scale} if array.scale else described
