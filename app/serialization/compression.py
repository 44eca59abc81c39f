"""Content codings: zstd, Brotli and gzip, equal bytes as equal bytes.

No response holds a secret next to what a client sent, so its compressed length reveals nothing
(BREACH).
"""

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

import brotli
import zstandard

Coding = Literal["identity", "zstd", "br", "gzip"]

CODINGS: tuple[Coding, ...] = ("zstd", "br", "gzip")
"""Ordered by cost for what they save, measured on traces."""

LEAST_BYTES = 1_400
"""A body that fits into one packet gains nothing from compression."""

FAST = {"zstd": 1, "br": 1, "gzip": 1}
"""Levels for content sent once: on traces the next takes twice as long and saves nothing."""

SMALL = {"zstd": 9, "br": 6, "gzip": 6}
"""Levels for files, compressed once and sent often: Plotly in 150 ms."""

GATHERED_BYTES = 2**16

LIBRARIES = f"{zstandard.ZSTD_VERSION} {brotli.__version__} {zlib.ZLIB_RUNTIME_VERSION}"
"""The versions that, with the level, decide the compressed bytes."""


def compressed(
    pieces: Iterable[bytes], coding: Coding, levels: dict[str, int] = FAST
) -> Iterator[bytes]:
    """Yield the pieces in that coding, equal bytes as equal bytes; call off the event loop."""
    if coding == "identity":
        yield from pieces
        return
    compress, finish = _compressor(coding, levels[coding])
    for piece in _gathered(pieces):
        yield compress(piece)
    yield finish()


def _gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield small pieces joined together: each call of a compressor has a fixed cost."""
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
    """Return two functions: one compresses a piece, the other ends the content."""
    if coding == "br":
        brotlied = brotli.Compressor(quality=level)
        return brotlied.process, brotlied.finish
    if coding == "zstd":
        zstd = zstandard.ZstdCompressor(level=level).compressobj()
        return zstd.compress, zstd.flush
    # Its header has no time in it, unlike that of the gzip module.
    gzip = zlib.compressobj(level, wbits=16 + zlib.MAX_WBITS)
    return gzip.compress, gzip.flush
