"""Responses on their way out: their size, entity tag, memory, chunks, and streams of events.

An encoded answer lies in memory until its client has read it. A large one reserves the most it may
take before it is encoded; every one reserves its bytes until it is sent.
"""

import asyncio
import hashlib
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from math import prod
from typing import Any

import orjson
from fastapi.sse import format_sse_event
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from headlight.distribution import __version__
from headlight.problems import Problem, internal_error, service_unavailable
from headlight.schemas import EVENT_STREAM, SAFETENSORS
from headlight.serialization.compression import LIBRARIES
from headlight.serialization.formats import ResponseFormat
from headlight.serialization.trace import Answer, Sendable, sent_arrays

logger = logging.getLogger(__name__)

EVENTS = {EVENT_STREAM: {"schema": {"type": "object", "title": "An event"}}}
"""The content of a stream, for the documentation of its route."""
# An event is of use at once or not at all: no cache may keep it, no proxy may collect several.
EVENT_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

CHUNK_BYTES = 2**18

UNREAD_BYTES = 2**16
"""asyncio's bound of a connection's buffer, above which sending waits."""

JSON_BYTES = {"float32": 17, "int32": 12, "uint16": 6}
"""The longest numbers with their comma: `-0.0000010000001,`, `-2147483648,`, `65535,`."""

FILE_BYTES = {"float32": 4, "int32": 4, "uint16": 2}

BRACKET_BYTES = 3
"""The brackets of one row, and its comma."""

NAMINGS = 4
"""A file names an array up to four times: offsets, axes, scale, packing."""

ARRAY_BYTES = 512
"""The description of an array: axes, shape, type, scale, packing."""

FRAME_BYTES = 1024
"""Headers of file and compressor, and the names of members."""


def size_estimate(answer: Sendable, sent_as: ResponseFormat) -> int:
    """Return the most bytes that an answer takes in a format; only its shapes decide it."""
    is_file = sent_as.media_type == SAFETENSORS
    n_bytes = FRAME_BYTES + _metadata_bytes(answer)
    for name, shape, dtype in sent_arrays(answer, sent_as):
        n_bytes += ARRAY_BYTES + NAMINGS * len(orjson.dumps(name))
        n_bytes += FILE_BYTES[dtype] * prod(shape) if is_file else _as_json(shape, dtype)
    # Incompressible data grows a little, block by block.
    return n_bytes if sent_as.coding == "identity" else n_bytes + n_bytes // 128 + FRAME_BYTES


def _metadata_bytes(answer: Sendable) -> int:
    """Return the bytes of all but arrays as JSON, doubled, as a file escapes quotes."""
    members: list[Any] = [answer.members()]
    if isinstance(answer, Answer):
        members.append({name: dict(result.metadata) for name, result in answer.analyses.items()})
    return 2 * len(orjson.dumps(members))


def _as_json(shape: tuple[int, ...], dtype: str) -> int:
    n_rows = sum(prod(shape[:n_axes]) for n_axes in range(len(shape)))
    return JSON_BYTES[dtype] * prod(shape) + BRACKET_BYTES * n_rows


def entity_tag(answer: Answer, sent_as: ResponseFormat) -> str:
    """Return the strong tag of an answer in a format, quotes included (RFC 9110, section 8.8.3).

    It is a hash of the numbers and the format, so nothing is encoded for it. A trace that is
    computed again may differ in its last bits, as a pass over several texts sums in another order,
    and then has another tag.
    """
    described = (sent_as.media_type, sent_as.dtype, str(sent_as.triangle), sent_as.coding)
    made_by = (__version__, "" if sent_as.coding == "identity" else LIBRARIES)
    named = "\n".join((answer.digest, *made_by, *described))
    return f'"{hashlib.sha256(named.encode()).hexdigest()[:32]}"'


class Outgoing:
    """The bytes of all answers that are encoded or being sent, `limit` at most.

    A single larger answer is allowed when nothing else is out.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.n_bytes = 0

    def reserve(self, n_bytes: int) -> "Reservation":
        """Reserve that many bytes.

        Raises:
            Problem: 503 with Retry-After, the other answers leave too little.
        """
        if self.n_bytes and self.n_bytes + n_bytes > self.limit:
            why = (
                f"answers that their clients have not read yet take {self.n_bytes:,} bytes, and "
                f"this one may take {n_bytes:,} more, of {self.limit:,} for all; ask for less"
            )
            limits = {"limit": self.limit, "actual": self.n_bytes + n_bytes}
            kind = "too-many-outgoing-bytes"
            raise service_unavailable(kind, why, **limits)
        return Reservation(self, n_bytes)


class Reservation:
    """The bytes that one answer takes of all outgoing bytes."""

    def __init__(self, outgoing: Outgoing, n_bytes: int) -> None:
        self.outgoing = outgoing
        self.n_bytes = 0
        self.resize(n_bytes)

    def resize(self, n_bytes: int) -> None:
        """Reserve the bytes that the answer needs, now that they are known."""
        self.outgoing.n_bytes += n_bytes - self.n_bytes
        self.n_bytes = n_bytes

    def release(self) -> None:
        """Free the bytes: the answer is sent, or its client has disconnected."""
        self.resize(0)


class ChunkedResponse(Response):
    """A response of known length, sent in chunks; its reservation is released when it is sent.

    Handed over whole, tens of megabytes are copied on the event loop before the first byte leaves,
    and lie in the connection's buffer. Starlette's StreamingResponse runs a task per response.
    """

    def __init__(
        self, content: bytes, media_type: str, headers: Mapping[str, str], reservation: Reservation
    ) -> None:
        super().__init__(content, media_type=media_type, headers=headers)
        self.reservation = reservation

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the head, then the content chunk by chunk."""
        try:
            await self._send(send)
        finally:
            self.reservation.release()

    async def _send(self, send: Send) -> None:
        """Send the chunks; an empty last one waits for room, as each chunk does."""
        content = memoryview(self.body)
        start = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **start})
        has_end = len(content) > UNREAD_BYTES
        for first in range(0, len(content) or 1, CHUNK_BYTES):
            last = first + CHUNK_BYTES
            chunk = bytes(content[first:last])
            more = has_end or last < len(content)
            await send({"type": "http.response.body", "body": chunk, "more_body": more})
        if has_end:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def encode_event(event: str, data: Mapping[str, Any]) -> bytes:
    """Return an event as it is sent: its name, and its data as one line of JSON."""
    text = orjson.dumps(data, option=orjson.OPT_SERIALIZE_NUMPY).decode()
    return format_sse_event(event=event, data_str=text)


async def _ending_with_error(events: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """Yield the events; an exception becomes the last one, `error`."""
    try:
        async with aclosing(events):
            async for event in events:
                yield event
    except Problem as problem:
        yield encode_event("error", problem.document())
    except Exception:
        logger.exception("a stream broke off")
        yield encode_event("error", internal_error().document())


class EventStream(StreamingResponse):
    """Encoded events on their way to a client.

    An exception of `events` is sent as an event. `close` is called after the last event, or when
    the client has left. FastAPI's EventSourceResponse has neither, nor a bound for a slow reader.
    """

    media_type = EVENT_STREAM
    read_seconds = 30.0
    """How long a client may leave an event unread before it is cut off: a stream holds a place."""

    def __init__(
        self, events: AsyncGenerator[bytes], close: Callable[[], object] = lambda: None
    ) -> None:
        super().__init__(_ending_with_error(events), headers=EVENT_HEADERS)
        self.close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events; a client that does not read them is cut off."""

        async def send_in_time(message: Message) -> None:
            async with asyncio.timeout(self.read_seconds):
                await send(message)

        try:
            await super().__call__(scope, receive, send_in_time)
        except TimeoutError:
            logger.warning("a stream was cut: its client read nothing for %g s", self.read_seconds)
        finally:
            self.close()
