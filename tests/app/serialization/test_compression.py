"""Every coding gives back what it was given, and the same bytes every time."""

import gzip
import time

import brotli
import pytest
import zstandard

from headlight.serialization.compression import SMALL, compressed

DECODERS = {
    "identity": lambda content: content,
    "zstd": lambda content: zstandard.ZstdDecompressor().decompressobj().decompress(content),
    "br": brotli.decompress,
    "gzip": gzip.decompress,
}
CONTENT = b'{"tokens":["a","b"]}' * 500


PIECES = [CONTENT[:7], b"", CONTENT[7:4000], CONTENT[4000:]]


@pytest.mark.parametrize("coding", DECODERS)
def test_what_was_compressed_in_pieces_comes_back_whole(coding):
    found = b"".join(compressed(PIECES, coding))
    assert DECODERS[coding](found) == CONTENT
    assert coding == "identity" or len(found) < len(CONTENT) / 10


@pytest.mark.parametrize("coding", DECODERS)
def test_equal_bytes_are_compressed_to_equal_bytes_at_any_time(coding, monkeypatch):
    first = list(compressed(PIECES, coding))
    monkeypatch.setattr(time, "time", lambda: 4e9)
    assert list(compressed(PIECES, coding)) == first


@pytest.mark.parametrize("coding", ["zstd", "br", "gzip"])
def test_what_is_sent_often_is_made_smaller(coding):
    fast, small = (b"".join(compressed(PIECES, coding, **how)) for how in ({}, {"levels": SMALL}))
    assert len(small) <= len(fast)
    assert DECODERS[coding](small) == CONTENT
