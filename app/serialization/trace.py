"""A Trace as JSON or as one safetensors file, whole or with causal arrays packed.

Both carry the same members. JSON nests the numbers in lists; safetensors keeps the arrays by site
name and everything else as JSON in `__metadata__`, so that a client needs only
`safetensors.numpy.load`. A large answer is written in chunks: writing numbers holds the
interpreter lock, and other threads run between two chunks.

The writer of the safetensors library copies everything twice while it holds that lock, 50 ms and
more for the largest answer; the tests read with its reader.
https://huggingface.co/docs/safetensors/index#format
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from headlight.analyses.analysis import Result
from headlight.model.cancellation import check
from headlight.model.trace import NamedArray, Trace
from headlight.problems import Problem
from headlight.schemas import LOWER_TRIANGLE, SAFETENSORS
from headlight.serialization.compression import compressed
from headlight.serialization.formats import ResponseFormat, pack

UINT16_SCALE = 1 / 65535
MASKED_SITES = (".scores", ".router_logits")
UNIT_SITES = frozenset({"weights", "router_probs", "expert_weights"})

WHOLE_BYTES = 2**18
"""An answer up to this size is written as JSON in one call, which takes about 4 ms."""

JSON_CHUNK_ELEMENTS = 2**14
"""Numbers written without a pause: about 2 ms."""

FILE_CHUNK_BYTES = 2**20
"""Bytes copied without a pause."""

_DTYPES = {"f": "float32", "i": "int32", "H": "uint16"}

# Ordered as the library does: the widest first, so that each array is aligned.
_FILE_TYPES = {"float32": "F32", "int32": "I32", "uint16": "U16"}

TOKEN_BYTES = 80
"""The bytes of a token as JSON, about."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A Trace with its id and its analyses."""

    id: str
    trace: Trace
    analyses: Mapping[str, Result]
    tiles: tuple[str, ...] = ()
    """The attentions whose queries and keys are kept, so that tiles can be computed."""

    @cached_property
    def n_bytes(self) -> int:
        """An estimate of its bytes, in memory or sent uncompressed."""
        arrays = sum(array.data.nbytes for _, array in self.arrays())
        tokens = (*self.trace.tokens, *(self.trace.target_tokens or ()))
        return arrays + TOKEN_BYTES * len(tokens)

    @property
    def tensors(self) -> Mapping[str, NamedArray]:
        """The arrays of the trace by site."""
        return self.trace.tensors

    @cached_property
    def digest(self) -> str:
        """A hash of all that may be sent: equal ones are equal bytes, whatever the format."""
        metadata = {name: dict(result.metadata) for name, result in self.analyses.items()}
        digest = hashlib.sha256(orjson.dumps([self.members(), metadata]))
        for name, array in self.arrays():
            described = [name, array.axes, array.data.dtype.str, array.data.shape]
            digest.update(orjson.dumps(described))
            digest.update(np.ascontiguousarray(array.data).data)
        return digest.hexdigest()

    def untimed(self) -> "Answer":
        """Return this answer without timings, as it is sent from the cache."""
        return replace(self, trace=replace(self.trace, timings={}))

    def arrays(self) -> Iterator[tuple[str, NamedArray]]:
        """Yield the arrays of the trace by site, and those of the analyses."""
        yield from self.trace.tensors.items()
        for name, result in self.analyses.items():
            yield from ((f"analyses.{name}.{key}", array) for key, array in result.arrays.items())

    def members(self) -> dict[str, Any]:
        """Return everything but arrays, ready for JSON."""
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
            **self._observed(),
            "timings": {f"{step}_ms": round(took, 3) for step, took in trace.timings.items()},
        }

    def _observed(self) -> dict[str, Any]:
        """Return the members of a trace with maps or rows."""
        trace = self.trace
        members: dict[str, Any] = {}
        if trace.resolution is not None:
            members |= {"resolution": trace.resolution, "tiles": list(self.tiles)}
        return members if trace.queries is None else members | {"queries": trace.queries}


@dataclass(frozen=True, kw_only=True)
class Arrays:
    """Arrays that come from no trace, and plain data about them."""

    tensors: Mapping[str, NamedArray]
    metadata: Mapping[str, Any]

    @property
    def n_bytes(self) -> int:
        """An estimate of their bytes, in memory or sent uncompressed."""
        return sum(array.data.nbytes for array in self.tensors.values())

    def members(self) -> Mapping[str, Any]:
        """Return everything but arrays, ready for JSON."""
        return self.metadata


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The answers of several texts, sent together."""

    answers: tuple[Answer, ...]

    @property
    def n_bytes(self) -> int:
        """An estimate of their bytes, in memory or sent uncompressed."""
        return sum(answer.n_bytes for answer in self.answers)

    @property
    def tensors(self) -> Mapping[str, NamedArray]:
        """All arrays; the name of each begins with the number of its text."""
        return {
            f"{number}.{name}": array
            for number, answer in enumerate(self.answers)
            for name, array in answer.arrays()
        }

    def members(self) -> dict[str, Any]:
        """Return everything but arrays, ready for JSON."""
        return {
            "traces": [
                answer.members()
                | {"analyses": {name: result.metadata for name, result in answer.analyses.items()}}
                for answer in self.answers
            ]
        }


Sendable = Answer | Answers | Arrays


@dataclass(frozen=True, kw_only=True)
class _SentArray:
    """An array as it is sent: float32, int32, or uint16 with a scale; whole or packed."""

    axes: tuple[str, ...]
    data: NDArray[Any]
    scale: float | None = None
    packed: dict[str, Any] | None = None


def encode(answer: Sendable, sent_as: ResponseFormat) -> bytes:
    """Return the bytes of an answer in a format; it blocks: call it off the event loop.

    Raises:
        Problem: 503, a tensor holds NaN, or an infinity that masks nothing.
        Cancelled: the client left.
    """
    write = _safetensors_of if sent_as.media_type == SAFETENSORS else _json_of
    chunks = []
    for chunk in compressed(write(answer, sent_as), sent_as.coding):
        check()
        chunks.append(chunk)
    return b"".join(chunks)


def sent_arrays(
    answer: Sendable, sent_as: ResponseFormat
) -> Iterator[tuple[str, tuple[int, ...], str]]:
    """Yield the name, the whole shape and the type of each array that is sent in that format."""
    for site, array in answer.tensors.items():
        # Of several texts, the arrays of analyses are among the tensors; they are never rounded.
        array_format = _exact(sent_as) if ".analyses." in site else sent_as
        yield site, array.data.shape, _sent_type(site, array, array_format)
    for name, result in answer.analyses.items() if isinstance(answer, Answer) else ():
        for key, array in result.arrays.items():
            dtype = _sent_type(key, array, _exact(sent_as))
            yield f"analyses.{name}.{key}", array.data.shape, dtype


def _json_of(answer: Sendable, sent_as: ResponseFormat) -> Iterator[bytes]:
    """Return the answer as JSON: masked scores, and experts that are off, are null."""
    if isinstance(answer, Answers):
        return _json_of_several(answer, sent_as)
    document: dict[str, Any] = {**answer.members(), "tensors": _documents(answer.tensors, sent_as)}
    if isinstance(answer, Answer):
        document["analyses"] = {
            name: {**_documents(result.arrays, _exact(sent_as)), **result.metadata}
            for name, result in answer.analyses.items()
        }
    if answer.n_bytes > WHOLE_BYTES:
        return _json_value(document)
    return iter([orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY)])


def _json_of_several(several: Answers, sent_as: ResponseFormat) -> Iterator[bytes]:
    opening = b'{"traces":['
    for answer in several.answers:
        yield opening
        yield from _json_of(answer, sent_as)
        opening = b","
    yield b"]}"


def _documents(arrays: Mapping[str, NamedArray], sent_as: ResponseFormat) -> dict[str, Any]:
    sent = {name: _sent(name, array, sent_as) for name, array in arrays.items()}
    return {name: _facts(array) | {"data": array.data} for name, array in sent.items()}


def _json_value(value: object) -> Iterator[bytes]:
    """Yield a value in chunks; the bytes are those of one call, in a third of the time."""
    if isinstance(value, np.ndarray):
        yield from json_array(value)
    elif isinstance(value, dict):
        opening = b"{"
        for name, member in value.items():
            yield opening + orjson.dumps(name) + b":"
            yield from _json_value(member)
            opening = b","
        yield b"{}" if opening == b"{" else b"}"
    else:
        yield orjson.dumps(value)


def _facts(array: _SentArray) -> dict[str, Any]:
    dtype = _DTYPES[array.data.dtype.char]
    facts: dict[str, Any] = {"axes": array.axes, "shape": array.data.shape, "dtype": dtype}
    if array.scale:
        facts["scale"] = array.scale
    return facts | (array.packed or {})


def _safetensors_of(answer: Sendable, sent_as: ResponseFormat) -> Iterator[bytes]:
    """Return the answer as a file: masked scores, and experts that are off, are -inf."""
    if isinstance(answer, Answers):
        exact = _exact(sent_as)
        sent = {
            name: _sent(name, array, exact if ".analyses." in name else sent_as)
            for name, array in answer.tensors.items()
        }
        return _file(sent, answer.members())
    arrays = {site: _sent(site, array, sent_as) for site, array in answer.tensors.items()}
    if not isinstance(answer, Answer):
        return _file(arrays, answer.members())
    exact = _exact(sent_as)
    for name, analysis in answer.analyses.items():
        for key, array in analysis.arrays.items():
            arrays[f"analyses.{name}.{key}"] = _sent(key, array, exact)
    analyses = {name: result.metadata for name, result in answer.analyses.items()}
    return _file(arrays, answer.members() | {"analyses": analyses})


def _file(arrays: Mapping[str, _SentArray], members: Mapping[str, Any]) -> Iterator[bytes]:
    metadata = {
        **members,
        "axes": {name: array.axes for name, array in arrays.items()},
        "scale": {name: array.scale for name, array in arrays.items() if array.scale},
        "packed": {name: array.packed for name, array in arrays.items() if array.packed},
    }
    return safetensors_chunks(
        {name: array.data for name, array in arrays.items()},
        {key: orjson.dumps(value).decode() for key, value in metadata.items()},
    )


def _exact(sent_as: ResponseFormat) -> ResponseFormat:
    """Return the format for arrays of analyses, which are not rounded."""
    return replace(sent_as, dtype="float32")


def _sent_type(name: str, array: NamedArray, sent_as: ResponseFormat) -> str:
    if array.data.dtype.kind in "iu":
        return "int32"
    is_unit = name.rpartition(".")[2] in UNIT_SITES
    return "uint16" if sent_as.dtype == "uint16" and is_unit else "float32"


def _sent(name: str, array: NamedArray, sent_as: ResponseFormat) -> _SentArray:
    dtype = _sent_type(name, array, sent_as)
    if dtype == "int32":
        return _SentArray(axes=array.axes, data=np.ascontiguousarray(array.data, dtype=np.int32))
    data = np.ascontiguousarray(array.data, dtype=np.float32)
    _require_finite(name, data)
    described: dict[str, Any] | None = None
    if sent_as.triangle and (packed := pack(array.axes, data)):
        fill = None if np.isneginf(packed.fill) else packed.fill
        described = {"packed": LOWER_TRIANGLE, "shape": packed.shape, "fill": fill}
        data = packed.data
    if dtype == "uint16":
        data = np.rint(data * np.float32(65535)).astype(np.uint16)
        return _SentArray(axes=array.axes, data=data, scale=UINT16_SCALE, packed=described)
    return _SentArray(axes=array.axes, data=data, packed=described)


def _require_finite(name: str, data: NDArray[Any]) -> None:
    is_allowed = np.isfinite(data)
    if is_allowed.all():
        return
    if name.endswith(MASKED_SITES):
        is_allowed |= np.isneginf(data)
    if not is_allowed.all():
        detail = f"{name} holds {data[~is_allowed][0]}; the answer would not be true"
        raise Problem(503, "model-unavailable", detail)


def json_array(data: NDArray[Any]) -> Iterator[bytes]:
    """Return an array as nested JSON lists; -inf is null.

    `data` is C-contiguous and has at least one axis.
    """
    if data.size <= JSON_CHUNK_ELEMENTS:
        yield orjson.dumps(data, option=orjson.OPT_SERIALIZE_NUMPY)
        return
    n_rows = len(data)
    row_elements = data.size // n_rows
    opening = b"["
    if row_elements > JSON_CHUNK_ELEMENTS:
        for row in data:
            yield opening
            yield from json_array(row)
            opening = b","
    else:
        step = JSON_CHUNK_ELEMENTS // row_elements
        for first in range(0, n_rows, step):
            rows = orjson.dumps(data[first : first + step], option=orjson.OPT_SERIALIZE_NUMPY)
            yield opening + rows[1:-1]
            opening = b","
    yield b"]"


def safetensors_chunks(
    arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]
) -> Iterator[bytes]:
    """Yield a safetensors file of C-contiguous arrays of float32, int32 or uint16."""
    order = list(_FILE_TYPES)
    ordered = sorted(arrays.items(), key=lambda item: (order.index(item[1].dtype.name), item[0]))
    yield safetensors_header(
        {name: (data.dtype.name, data.shape) for name, data in ordered}, metadata
    )
    for _, data in ordered:
        yield from raw_chunks(data)


def safetensors_header(
    arrays: Mapping[str, tuple[str, tuple[int, ...]]], metadata: Mapping[str, str]
) -> bytes:
    """Return the header of a file; its arrays, of these types and shapes, follow in this order.

    It is eight bytes of header length and a JSON header.
    """
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    end = 0
    for name, (dtype, shape) in arrays.items():
        begin, end = end, end + prod(shape) * np.dtype(dtype).itemsize
        header[name] = {"dtype": _FILE_TYPES[dtype], "shape": shape, "data_offsets": (begin, end)}
    text = orjson.dumps(header)
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def raw_chunks(data: NDArray[Any]) -> Iterator[bytes]:
    """Yield the bytes of a C-contiguous array in chunks, as a file has them."""
    raw = data.astype(data.dtype.newbyteorder("<"), copy=False).reshape(-1).view(np.uint8)
    for first in range(0, len(raw), FILE_CHUNK_BYTES):
        yield raw[first : first + FILE_CHUNK_BYTES].tobytes()
