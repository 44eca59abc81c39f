"""Content negotiation and conditional requests: Accept, Accept-Encoding, If-None-Match.

The most specific range that matches gives the quality; the highest quality wins, and of equal ones
what is offered first (RFC 9110, sections 12.5.1 and 12.5.3).
"""

import hashlib
import re
from collections.abc import Iterable, Sequence

from starlette.datastructures import Headers

from headlight.errors import Problem, echo
from headlight.schemas.traces import DType
from headlight.serialization.formats import LEAST_BYTES, MEDIA_TYPES, Coding, Form

CODINGS: tuple[Coding, ...] = ("zstd", "br", "gzip")
"""Ordered by cost for what they save, measured on traces."""

_TAG = re.compile(r'"[^"]*"')


def negotiate_form(headers: Headers, dtype: DType = "float32", *, triangle: bool = False) -> Form:
    """The form of an answer of arrays that the headers of a request ask for.

    Raises:
        Problem: 406, the client takes no media type or no coding that is offered.
    """
    return Form(
        media_type=negotiate(headers.get("accept", ""), MEDIA_TYPES),
        dtype=dtype,
        triangle=triangle,
        coding=negotiate_coding(headers, LEAST_BYTES),
        small_coding=negotiate_coding(headers, 0),
    )


def negotiate(accept: str, offered: Sequence[str]) -> str:
    """The offered media type that the client wants most.

    Args:
        accept: the Accept header; an empty one takes anything.
        offered: full media types, the preferred one first.

    Raises:
        Problem: 406, the client takes none of them; it names those that are offered.
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
    """The content coding of a response: the one the client wants most, if it pays.

    Args:
        headers: of the request; without Accept-Encoding it wants none.
        n_bytes: about the size of the body; a small one is not compressed.
        offered: the preferred one first.

    Raises:
        Problem: 406, the client refuses the identity coding and every other.
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


def _qualities(accept: str) -> dict[str, float]:
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


def _wanted(media_type: str, ranges: dict[str, float]) -> float:
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
