"""Content codings: what each makes of bytes, at a level fast enough to pay on most networks.

Equal bytes are compressed to equal bytes. Nothing secret is ever in an answer beside what a client
sent, so its compressed length tells nobody anything.
"""

import gzip

import brotli
import zstandard

from app.form import Coding

ZSTD_LEVEL = 1
BROTLI_QUALITY = 1
GZIP_LEVEL = 1


def compress(content: bytes, coding: Coding) -> bytes:
    """The content in that coding; it blocks, so it belongs off the event loop."""
    match coding:
        case "zstd":
            return zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(content)
        case "br":
            compressed: bytes = brotli.compress(content, quality=BROTLI_QUALITY)
            return compressed
        case "gzip":
            return gzip.compress(content, compresslevel=GZIP_LEVEL, mtime=0)
        case _:
            return content
