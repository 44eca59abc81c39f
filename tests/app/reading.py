"""Bytes of a response as they were sent in a coding, and the events of a stream."""

import gzip
import json

import brotli
import zstandard

DECODERS = {
    "identity": bytes,
    "gzip": gzip.decompress,
    "br": brotli.decompress,
    "zstd": lambda content: zstandard.ZstdDecompressor().decompressobj().decompress(content),
}


def raw_get(client, path, **headers):
    """Return the response and its bytes as they were sent."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    with client.stream("GET", path, headers=headers) as response:
        return response, b"".join(response.iter_raw())


def events_of(response):
    """Return the events of a stream as [(name, data)], and check that it holds nothing else."""
    assert response.status_code == 200, response.text
    *blocks, rest = response.text.split("\n\n")
    assert rest == ""
    events = []
    for block in blocks:
        event, data = block.split("\n")
        assert event.startswith("event: ")
        assert data.startswith("data: ")
        events.append((event[7:], json.loads(data[6:])))
    return events


def written_tokens(response):
    """Return the data of the token events of a generation."""
    return [data for name, data in events_of(response) if name == "token"]
