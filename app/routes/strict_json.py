"""The strict JSON that routes read.

FastAPI's reader accepts `NaN`, `Infinity` and lone surrogates, which then break the code that
meets them first. orjson rejects what RFC 8259 does not allow and what UTF-8 cannot carry. It keeps
the last of two equal keys, where another reader keeps the first: a second reader rejects them, as
I-JSON demands (RFC 7493, section 2.3).
"""

import json
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.routing import APIRoute

from headlight.problems import Problem, echo
from headlight.serving.logs import note_text_of


class JsonRoute(APIRoute):
    """A route whose body, if it has one, must be strict JSON."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return FastAPI's handler behind a stricter reader."""
        handle = super().get_route_handler()
        takes_body = self.body_field is not None

        async def handle_strictly(request: Request) -> Response:
            if takes_body:
                _require_json(request)
            return await handle(StrictRequest(request.scope, request.receive))

        return handle_strictly


class StrictRequest(Request):
    """A request that reads its JSON strictly."""

    async def json(self) -> Any:
        """Return the body as plain data.

        Raises:
            Problem: 400, the body is not JSON; the problem names the fault and its position.
        """
        sent = await self.body()
        try:
            body = orjson.loads(sent)
        except orjson.JSONDecodeError as error:
            why, position = _why_malformed(sent, error)
            detail = f"the body is not JSON: {why}"
            raise Problem(400, "malformed-json", detail, position=position) from error
        _require_unique_keys(sent)
        note_text_of(body)
        return body


def _require_unique_keys(body: bytes) -> None:
    """Reject an object with two equal keys.

    Python reads fewer levels than orjson; what nests deeper has no shape that a route takes.
    """
    with suppress(RecursionError):
        json.loads(body.decode(), object_pairs_hook=_unique_keys)


def _unique_keys(pairs: list[tuple[str, Any]]) -> None:
    keys = set()
    for key, _ in pairs:
        if key in keys:
            detail = f"the key {echo(key)} occurs twice in an object of the body; send it once"
            raise Problem(400, "duplicate-key", detail)
        keys.add(key)


def _why_malformed(body: bytes, error: orjson.JSONDecodeError) -> tuple[str, int]:
    """Return the fault and its position: in characters, or in bytes if the body is not UTF-8."""
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as damage:
        byte = f"byte {damage.start} (0x{body[damage.start]:02x})"
        return f"it is not UTF-8 at {byte}; send it as UTF-8", damage.start
    if "infinity" in error.msg:
        why = "a number is larger than this server reads, which is 64-bit floating point"
        return f"{why} (char {error.pos})", error.pos
    return str(error), error.pos


def _require_json(request: Request) -> None:
    """Reject another media type, and a compressed body: a few bytes could expand to any number."""
    media_type = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if media_type != "application/json" and not media_type.endswith("+json"):
        given = f"Content-Type {echo(media_type)}" if media_type else "a body without Content-Type"
        detail = f"{given} is not application/json, which is what this call reads"
        headers = {"Accept-Post": "application/json"}
        raise Problem(415, "unsupported-media-type", detail, headers=headers)
    coding = request.headers.get("content-encoding", "").strip().lower()
    if coding not in ("", "identity"):
        detail = f"Content-Encoding {echo(coding)} is not read here; send the body as it is"
        headers = {"Accept-Encoding": "identity"}
        raise Problem(415, "unsupported-encoding", detail, headers=headers)
