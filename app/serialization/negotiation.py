"""Response formats, how a request chooses one (Accept, Accept-Encoding), and content codings.

No format changes what was computed, so an answer is cached once and sent in any. Equal answers in
equal formats are equal bytes, as a strong ETag requires.

The most specific range that matches gives the quality; the highest quality wins, and of equal ones
what is offered first (RFC 9110, sections 12.5.1 and 12.5.3). Werkzeug's `parse_accept_header` was
considered: its import takes 0.09 s of a start, and it knows nothing of the identity coding, which
a client accepts without naming it.

No response holds a secret next to what a client sent, so its compressed length reveals nothing
(BREACH).
"""

import hashlib
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import brotli
import numpy as np
import zstandard
from numpy.typing import NDArray
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from headlight.errors import Problem, echo
from headlight.schemas import JSON, SAFETENSORS
from headlight.schemas.traces import DType

Coding = Literal["identity", "zstd", "br", "gzip"]

MEDIA_TYPES = (JSON, SAFETENSORS)

CODINGS: tuple[Coding, ...] = ("zstd", "br", "gzip")
"""Ordered by cost for what they save, measured on traces."""

LEAST_BYTES = 1_400
"""A body that fits into one packet gains nothing from compression."""

FAST = {"zstd": 1, "br": 1, "gzip": 1}
"""Levels for content sent once: on traces the next takes twice as long and saves nothing."""

SMALL = {"zstd": 9, "br": 6, "gzip": 6}
"""Levels for files, compressed once and sent often: Plotly in 150 ms."""

GATHERED_BYTES = 2**16

N_CACHED_HEADERS = 64

LIBRARIES = f"{zstandard.ZSTD_VERSION} {brotli.__version__} {zlib.ZLIB_RUNTIME_VERSION}"
"""The versions that, with the level, decide the compressed bytes."""

FILE = {SAFETENSORS: {"schema": {"type": "string", "format": "binary"}}}
TAG = {"ETag": {"description": "Strong: equal tags, equal bytes.", "schema": {"type": "string"}}}
NOT_MODIFIED = {"description": "The client has it: If-None-Match names its tag.", "headers": TAG}
"""Content, headers and a response, for the documentation of routes."""

_TAG = re.compile(r'"[^"]*"')


@dataclass(frozen=True, kw_only=True)
class ResponseFormat:
    """A response format.

    `dtype` uint16 sends numbers between 0 and 1 as value/65535; `triangle` leaves out the
    numbers above the diagonal of causal arrays; `coding` is the Content-Encoding, `small_coding`
    that of an answer too small to gain from compression.
    """

    media_type: str = JSON
    dtype: DType = "float32"
    triangle: bool = False
    coding: Coding = "identity"
    small_coding: Coding = "identity"

    def sized(self, n_bytes: int) -> "ResponseFormat":
        """This format with the content coding of an answer of about that size."""
        return self if n_bytes >= LEAST_BYTES else replace(self, coding=self.small_coding)

    @property
    def headers(self) -> dict[str, str]:
        """The headers of a response in this format, except Content-Type."""
        vary = {"Vary": "Accept, Accept-Encoding"}
        return vary if self.coding == "identity" else vary | {"Content-Encoding": self.coding}


@dataclass(frozen=True)
class Packed:
    """A causal array whose last two axes became one: its rows up to the diagonal, row by row.

    To unpack it:

        full = np.full(shape, -np.inf if fill is None else fill, packed.dtype)
        rows, columns = np.tril_indices(shape[-1])
        full[..., rows, columns] = packed

    Attributes:
        data: the numbers on and below the diagonal, `(..., T(T + 1)/2)`.
        shape: of the whole array.
        fill: of all others, 0 or -inf.
    """

    data: NDArray[Any]
    shape: tuple[int, ...]
    fill: float


def pack(axes: tuple[str, ...], data: NDArray[Any]) -> Packed | None:
    """The array `(..., query, key)` packed; None if it is not causal or that would save nothing."""
    if axes[-2:] != ("query", "key") or data.shape[-1] != data.shape[-2] or data.shape[-1] < 2:
        return None
    fill = _fill_of(data)
    if fill is None:
        return None
    size = data.shape[-1]
    flat = data.reshape(*data.shape[:-2], size * size)
    kept = np.flatnonzero(np.tri(size, dtype=bool))
    return Packed(np.take(flat, kept, axis=-1), data.shape, fill)


def _fill_of(data: NDArray[Any]) -> float | None:
    """The number above the diagonal if it is 0 everywhere, or -inf everywhere."""
    corners = data[..., 0, -1]
    for fill in (0.0, -np.inf):
        if (corners == fill).all() and _is_filled(data, fill):
            return fill
    return None


def _is_filled(data: NDArray[Any], fill: float) -> bool:
    is_above = ~np.tri(data.shape[-1], dtype=bool)
    return bool(((data == fill) | ~is_above).all())


def negotiate_format(
    headers: Headers, dtype: DType = "float32", *, triangle: bool = False
) -> ResponseFormat:
    """The format of an answer of arrays that the headers of a request ask for.

    Raises:
        Problem: 406, the client takes no media type or no coding that is offered.
    """
    return ResponseFormat(
        media_type=negotiate(headers.get("accept", ""), MEDIA_TYPES),
        dtype=dtype,
        triangle=triangle,
        coding=negotiate_coding(headers, LEAST_BYTES),
        small_coding=negotiate_coding(headers, 0),
    )


def negotiate(accept: str, offered: Sequence[str]) -> str:
    """The media type that the client wants most, of those offered, the preferred one first.

    Raises:
        Problem: 406, the client takes none of them. An empty Accept header takes anything.
    """
    ranges = _qualities(accept)
    if not ranges:
        return offered[0]
    best = max(offered, key=lambda media_type: _wanted(media_type, ranges))
    if _wanted(best, ranges) > 0:
        return best
    detail = f"Accept {echo(accept)} takes none of {', '.join(offered)}; ask for one of these"
    raise Problem(406, "not-acceptable", detail, offered=list(offered))


def negotiate_coding(headers: Headers, n_bytes: int, offered: Sequence[Coding] = CODINGS) -> Coding:
    """The content coding that the client wants most, if it pays for about `n_bytes`.

    Raises:
        Problem: 406, the client accepts neither the identity coding nor another.
    """
    accept = ",".join(headers.getlist("accept-encoding"))
    ranges = _qualities(accept.replace("x-gzip", "gzip"))
    anything = ranges.get("*", 0.0)
    best = max(offered, key=lambda coding: ranges.get(coding, anything), default=None)
    wanted = ranges.get(best, anything) if best else 0.0
    # A client that does not name identity takes it if nothing better is offered.
    plain = ranges.get("identity", ranges.get("*", 1e-9))
    pays = n_bytes >= LEAST_BYTES and wanted >= plain
    if best and wanted and (pays or not plain):
        return best
    if plain:
        return "identity"
    names = [*offered, "identity"]
    detail = (
        f"Accept-Encoding {echo(accept)} takes none of {', '.join(names)}; ask for one of these"
    )
    raise Problem(406, "not-acceptable", detail, offered=names)


# Clients send few different headers; those of a request are read five times.
@lru_cache(N_CACHED_HEADERS)
def _qualities(accept: str) -> Mapping[str, float]:
    return dict(_quality_of(part) for part in accept.split(",") if part.strip())


def _quality_of(part: str) -> tuple[str, float]:
    media_range, *parameters = (piece.strip().lower() for piece in part.split(";"))
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            return media_range, _number(value)
    return media_range, 1.0


def _number(value: str) -> float:
    try:
        quality = float(value)
    except ValueError:
        return 0.0
    return quality if 0 <= quality <= 1 else 0.0


def _wanted(media_type: str, ranges: Mapping[str, float]) -> float:
    family = media_type.split("/")[0]
    for media_range in (media_type, f"{family}/*", "*/*"):
        if media_range in ranges:
            return ranges[media_range]
    return 0.0


def content_tag(content: bytes) -> str:
    """The strong tag of bytes as they are sent, quotes included."""
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def is_known(tag: str, if_none_match: Iterable[str]) -> bool:
    """Whether a client has the content of that tag, by its If-None-Match headers.

    Weak tags count as strong ones here (RFC 9110, section 13.1.2).
    """
    return any(value.strip() == "*" or tag in _TAG.findall(value) for value in if_none_match)


def not_modified(request: Request, headers: Mapping[str, str]) -> Response | None:
    """The answer 304, if the client has the content that these headers tag."""
    if not is_known(headers["ETag"], request.headers.getlist("if-none-match")):
        return None
    kept = {name: value for name, value in headers.items() if name != "Content-Encoding"}
    return Response(status_code=304, headers=kept)


def compressed(
    pieces: Iterable[bytes], coding: Coding, levels: dict[str, int] = FAST
) -> Iterator[bytes]:
    """The pieces in that coding, equal bytes as equal bytes; it belongs off the event loop."""
    if coding == "identity":
        yield from pieces
        return
    compress, finish = _compressor(coding, levels[coding])
    for piece in _gathered(pieces):
        yield compress(piece)
    yield finish()


def _gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Small pieces as one: each call of a compressor costs, whatever it is given."""
    waiting: list[bytes] = []
    n_bytes = 0
    for piece in pieces:
        waiting.append(piece)
        n_bytes += len(piece)
        if n_bytes >= GATHERED_BYTES:
            yield b"".join(waiting)
            waiting, n_bytes = [], 0
    yield b"".join(waiting)


def _compressor(coding: Coding, level: int) -> tuple[Callable[[bytes], bytes], Callable[[], bytes]]:
    """Compresses a piece; ends the content."""
    if coding == "br":
        brotlied = brotli.Compressor(quality=level)
        return brotlied.process, brotlied.finish
    if coding == "zstd":
        zstd = zstandard.ZstdCompressor(level=level).compressobj()
        return zstd.compress, zstd.flush
    # Its header has no time in it, unlike that of the gzip module.
    gzip = zlib.compressobj(level, wbits=16 + zlib.MAX_WBITS)
    return gzip.compress, gzip.flush
