"""Every coding gives back what it was given, and the same bytes every time."""

import gzip
import time

import brotli
import pytest
import zstandard

from app.compression import compress

DECODERS = {
    "identity": lambda content: content,
    "zstd": lambda content: zstandard.ZstdDecompressor().decompress(content),
    "br": brotli.decompress,
    "gzip": gzip.decompress,
}
CONTENT = b'{"tokens":["a","b"]}' * 500


@pytest.mark.parametrize("coding", DECODERS)
def test_what_was_compressed_comes_back(coding):
    compressed = compress(CONTENT, coding)
    assert DECODERS[coding](compressed) == CONTENT
    assert coding == "identity" or len(compressed) < len(CONTENT) / 10


@pytest.mark.parametrize("coding", DECODERS)
def test_equal_bytes_are_compressed_to_equal_bytes_at_any_time(coding, monkeypatch):
    first = compress(CONTENT, coding)
    monkeypatch.setattr(time, "time", lambda: 4e9)
    assert compress(CONTENT, coding) == first
