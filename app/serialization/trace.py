"""A Trace on the wire: as JSON, or as one safetensors file.

Both carry the same members. JSON nests the numbers in lists; safetensors keeps the arrays by
site name and puts everything else, as JSON, into `__metadata__`, so that
`safetensors.numpy.load` is all a client needs.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from headlight.errors import Problem
from headlight.model.cancellation import check
from headlight.model.trace import NamedArray, Trace
from headlight.serialization.compression import compressed
from headlight.serialization.formats import SAFETENSORS, Form
from headlight.serialization.json_pieces import json_array, json_object, json_value
from headlight.serialization.safetensors_file import safetensors_pieces
from headlight.serialization.triangles import LOWER_TRIANGLE, pack

UINT16_SCALE = 1 / 65535
MASKED_SITES = (".scores", ".router_logits")
UNIT_SITES = frozenset({"weights", "router_probs", "expert_weights"})


WHOLE_BYTES = 2**17
"""An answer up to this size is written as JSON in one call, which holds the interpreter lock for
about 4 ms; a larger one in pieces, between which other threads run."""

_DTYPES = {"f": "float32", "i": "int32", "H": "uint16"}

TOKEN_BYTES = 80
"""What a token takes as JSON, about."""


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

    @property
    def n_bytes(self) -> int:
        """About what it takes in memory, and on the wire as it is."""
        arrays = sum(array.data.nbytes for _, array in self._arrays())
        tokens = (*self.trace.tokens, *(self.trace.target_tokens or ()))
        return arrays + TOKEN_BYTES * len(tokens)

    @property
    def tensors(self) -> Mapping[str, NamedArray]:
        """The arrays of the trace by site."""
        return self.trace.tensors

    @cached_property
    def digest(self) -> str:
        """A hash of all that may be sent: equal ones are equal bytes, whatever the form."""
        beside = {name: dict(found.beside) for name, found in self.analyses.items()}
        digest = hashlib.sha256(orjson.dumps([self.members(), beside]))
        for name, array in self._arrays():
            described = [name, array.axes, array.data.dtype.str, array.data.shape]
            digest.update(orjson.dumps(described))
            digest.update(np.ascontiguousarray(array.data).data)
        return digest.hexdigest()

    def untimed(self) -> "Answer":
        """This answer without the milliseconds it took, as is sent where nothing is computed."""
        return replace(self, trace=replace(self.trace, timings={}))

    def _arrays(self) -> Iterator[tuple[str, NamedArray]]:
        yield from self.trace.tensors.items()
        for name, found in self.analyses.items():
            yield from ((f"analyses.{name}.{key}", array) for key, array in found.arrays.items())

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
class Arrays:
    """Arrays that come from no trace, and what is sent beside them."""

    tensors: Mapping[str, NamedArray]
    beside: Mapping[str, Any]

    @property
    def n_bytes(self) -> int:
        """About what they take in memory, and on the wire as they are."""
        return sum(array.data.nbytes for array in self.tensors.values())

    def members(self) -> Mapping[str, Any]:
        """Everything but arrays, ready for JSON."""
        return self.beside


Sendable = Answer | Arrays


@dataclass(frozen=True, kw_only=True)
class _WireArray:
    """An array as it is sent: float32, int32, or uint16 with a scale; whole or packed."""

    axes: tuple[str, ...]
    data: NDArray[Any]
    scale: float | None = None
    packed: dict[str, Any] | None = None


def encode(answer: Sendable, form: Form) -> bytes:
    """The answer in that form; it blocks, so it belongs off the event loop.

    Raises:
        Problem: 503, a tensor holds NaN, or an infinity that masks nothing.
        Cancelled: nobody waits for it any more.
    """
    write = _safetensors_of if form.media_type == SAFETENSORS else _json_of
    return b"".join(_interruptible(compressed(write(answer, form), form.coding)))


def sent_arrays(answer: Sendable, form: Form) -> Iterator[tuple[str, tuple[int, ...], str]]:
    """The name, the whole shape and the type of each array that is sent in that form."""
    for site, array in answer.tensors.items():
        yield site, array.data.shape, _sent_type(site, array, form)
    for name, found in answer.analyses.items() if isinstance(answer, Answer) else ():
        for key, array in found.arrays.items():
            dtype = _sent_type(key, array, _exact(form))
            yield f"analyses.{name}.{key}", array.data.shape, dtype


def _interruptible(pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        check()
        yield piece


def _json_of(answer: Sendable, form: Form) -> Iterator[bytes]:
    """Masked scores, and experts that are off, are null."""
    if answer.n_bytes <= WHOLE_BYTES:
        return iter([_json_whole(answer, form)])
    tensors = (
        (site, _json_array(_on_wire(site, array, form))) for site, array in answer.tensors.items()
    )
    members = [*_json_members(answer.members()), ("tensors", json_object(tensors))]
    if isinstance(answer, Answer):
        analyses = ((name, _json_analysis(found, form)) for name, found in answer.analyses.items())
        members.append(("analyses", json_object(analyses)))
    return json_object(members)


def _json_whole(answer: Sendable, form: Form) -> bytes:
    """The same bytes in one call, which takes a third of the time for a small answer."""
    arrays = {
        site: _json_document(_on_wire(site, array, form)) for site, array in answer.tensors.items()
    }
    document: dict[str, Any] = {**answer.members(), "tensors": arrays}
    if isinstance(answer, Answer):
        exact = _exact(form)
        document["analyses"] = {
            name: {
                **{
                    key: _json_document(_on_wire(key, array, exact))
                    for key, array in found.arrays.items()
                },
                **found.beside,
            }
            for name, found in answer.analyses.items()
        }
    return orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY)


def _json_document(array: _WireArray) -> dict[str, Any]:
    return {**_facts(array), "data": array.data}


def _json_analysis(analysis: Analysis, form: Form) -> Iterator[bytes]:
    exact = _exact(form)
    arrays = [
        (key, _json_array(_on_wire(key, array, exact))) for key, array in analysis.arrays.items()
    ]
    return json_object([*arrays, *_json_members(analysis.beside)])


def _json_members(members: Mapping[str, Any]) -> list[tuple[str, Iterator[bytes]]]:
    return [(name, json_value(value)) for name, value in members.items()]


def _json_array(array: _WireArray) -> Iterator[bytes]:
    return json_object([*_json_members(_facts(array)), ("data", json_array(array.data))])


def _facts(array: _WireArray) -> dict[str, Any]:
    dtype = _DTYPES[array.data.dtype.char]
    facts: dict[str, Any] = {"axes": array.axes, "shape": array.data.shape, "dtype": dtype}
    if array.scale:
        facts["scale"] = array.scale
    return facts | (array.packed or {})


def _safetensors_of(answer: Sendable, form: Form) -> Iterator[bytes]:
    """Masked scores, and experts that are off, are -inf."""
    arrays = {site: _on_wire(site, array, form) for site, array in answer.tensors.items()}
    if not isinstance(answer, Answer):
        return _file(arrays, answer.members())
    exact = _exact(form)
    for name, analysis in answer.analyses.items():
        for key, array in analysis.arrays.items():
            arrays[f"analyses.{name}.{key}"] = _on_wire(key, array, exact)
    analyses = {name: found.beside for name, found in answer.analyses.items()}
    return _file(arrays, answer.members() | {"analyses": analyses})


def _file(arrays: Mapping[str, _WireArray], members: Mapping[str, Any]) -> Iterator[bytes]:
    metadata = {
        **members,
        "axes": {name: array.axes for name, array in arrays.items()},
        "scale": {name: array.scale for name, array in arrays.items() if array.scale},
        "packed": {name: array.packed for name, array in arrays.items() if array.packed},
    }
    return safetensors_pieces(
        {name: array.data for name, array in arrays.items()},
        {key: orjson.dumps(value).decode() for key, value in metadata.items()},
    )


def _exact(form: Form) -> Form:
    """The form of an analysis: what was computed from a trace is not rounded."""
    return replace(form, dtype="float32")


def _sent_type(name: str, array: NamedArray, form: Form) -> str:
    if array.data.dtype.kind in "iu":
        return "int32"
    is_unit = name.rpartition(".")[2] in UNIT_SITES
    return "uint16" if form.dtype == "uint16" and is_unit else "float32"


def _on_wire(name: str, array: NamedArray, form: Form) -> _WireArray:
    dtype = _sent_type(name, array, form)
    if dtype == "int32":
        return _WireArray(axes=array.axes, data=np.ascontiguousarray(array.data, dtype=np.int32))
    data = np.ascontiguousarray(array.data, dtype=np.float32)
    _require_finite(name, data)
    described: dict[str, Any] | None = None
    if form.triangle and (packed := pack(array.axes, data)):
        fill = None if np.isneginf(packed.fill) else packed.fill
        described = {"packed": LOWER_TRIANGLE, "shape": packed.shape, "fill": fill}
        data = packed.data
    if dtype == "uint16":
        data = np.rint(data * np.float32(65535)).astype(np.uint16)
        return _WireArray(axes=array.axes, data=data, scale=UINT16_SCALE, packed=described)
    return _WireArray(axes=array.axes, data=data, packed=described)


def _require_finite(name: str, data: NDArray[Any]) -> None:
    is_allowed = np.isfinite(data)
    if is_allowed.all():
        return
    if name.endswith(MASKED_SITES):
        is_allowed |= np.isneginf(data)
    if not is_allowed.all():
        detail = f"{name} holds {data[~is_allowed][0]}; the answer would not be true"
        raise Problem(503, "model-unavailable", detail)
