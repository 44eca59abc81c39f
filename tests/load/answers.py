"""What is in an answer: read only now and then, as reading it costs more than asking for it."""

import gzip
from contextlib import aclosing
from dataclasses import replace

import brotli
import numpy as np
import orjson
import safetensors.numpy
import zstandard

UINT16_STEP = 1 / 65535
TOLERANCE = 1e-3
TAIL = 500
"""Bytes at the end of a stream that hold its last event, or what it is about."""


def decoded(reply):
    """A body as it was before it was compressed."""
    match reply.headers.get("content-encoding", "identity"):
        case "gzip":
            return gzip.decompress(reply.body)
        case "br":
            return bytes(brotli.decompress(reply.body))
        case "zstd":
            return zstandard.ZstdDecompressor().decompressobj().decompress(reply.body)
        case _:
            return reply.body


def look_at(reply, order):
    """The id of a trace, and what is wrong with it.

    It may be about somebody else's text, and its rows may sum to anything but 1.
    """
    body = decoded(reply)
    if reply.headers["content-type"] == "application/json":
        members, tensors = _from_json(body)
    else:
        members, tensors = _from_safetensors(body)
    found = []
    if members["text"] != order["text"]:
        found.append("the answer is about another text")
    for site, weights in tensors.items():
        if site.endswith("_attention.weights") and abs(weights.sum(-1) - 1).max() > TOLERANCE:
            found.append(f"rows of {site} do not sum to 1")
    return str(members["id"]), found


def _from_json(body):
    members = orjson.loads(body)
    tensors = members["tensors"].items()
    return members, {
        site: np.array(tensor["data"])
        for site, tensor in tensors
        if site.endswith("_attention.weights")
    }


def _from_safetensors(body):
    length = int.from_bytes(body[:8], "little")
    members = orjson.loads(body[8 : 8 + length])["__metadata__"]
    tensors = {
        site: array * UINT16_STEP if array.dtype == np.uint16 else array
        for site, array in safetensors.numpy.load(body).items()
    }
    return {name: orjson.loads(text) for name, text in members.items()}, tensors


async def read_stream(line, order, tally, kind, until):
    """Read a stream's events to the end, or close it after some.

    Args:
        line: the connection.
        order: what to ask.
        tally: where it is counted.
        kind: as what it is counted.
        until: after how many pieces to leave; None: never.
    """
    n_pieces, end = 0, b""
    async with aclosing(line.listen("/api/v1/generate", orjson.dumps(order))) as pieces:
        async for piece in pieces:
            n_pieces, end = n_pieces + 1, (end + piece.body)[-TAIL:]
            if piece.status == 200 and n_pieces == 1:
                tally.add("generate, first event", piece)
            if n_pieces == until:
                tally.left(kind)
                return
    if piece.status == 200 and b"event: error" in end and b'"status":503' in end:
        tally.refused(kind)
    elif piece.status == 200 and b"event: end" not in end:
        tally.surprise(f"{kind}: a stream without an end: {end!r}")
    else:
        tally.add(kind, replace(piece, body=end))
