"""Content codings, at levels fast enough to pay on most networks.

Equal bytes are compressed to equal bytes. No response holds a secret next to what a client sent, so
its compressed length reveals nothing (BREACH).
"""

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import brotli
import zstandard

from headlight.serialization.formats import Coding

FAST = {"zstd": 1, "br": 1, "gzip": 1}
"""Levels for content sent once: on traces the next takes twice as long and saves nothing."""

SMALL = {"zstd": 9, "br": 6, "gzip": 6}
"""Levels for files, compressed once and sent often: Plotly in 150 ms."""

GATHERED_BYTES = 2**16

LIBRARIES = f"{zstandard.ZSTD_VERSION} {brotli.__version__} {zlib.ZLIB_RUNTIME_VERSION}"
"""The versions that, with the level, decide the compressed bytes."""

_GZIP_WINDOW = 16 + zlib.MAX_WBITS


class _Compressor(Protocol):
    def compress(self, content: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


class _Brotli:
    """Brotli's compressor with the methods that the others have."""

    def __init__(self, quality: int) -> None:
        self._compressor = brotli.Compressor(quality=quality)
        self.compress: Callable[[bytes], bytes] = self._compressor.process
        self.flush: Callable[[], bytes] = self._compressor.finish


def compressed(
    pieces: Iterable[bytes], coding: Coding, levels: dict[str, int] = FAST
) -> Iterator[bytes]:
    """The pieces in that coding; it blocks, so it belongs off the event loop."""
    if coding == "identity":
        yield from pieces
        return
    compressor = _compressor(coding, levels[coding])
    for piece in _gathered(pieces):
        yield compressor.compress(piece)
    yield compressor.flush()


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


def _compressor(coding: Coding, level: int) -> _Compressor:
    match coding:
        case "zstd":
            return zstandard.ZstdCompressor(level=level).compressobj()
        case "br":
            return _Brotli(level)
        case _:
            # Its header has no time in it, unlike that of the gzip module.
            return zlib.compressobj(level, wbits=_GZIP_WINDOW)
