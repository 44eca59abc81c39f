"""The format and the coding of a response that a request chooses: Accept and Accept-Encoding.

The most specific range that matches gives the quality; the highest quality wins, and of equal ones
what is offered first (RFC 9110, sections 12.5.1 and 12.5.3). Werkzeug's `parse_accept_header` was
considered: its import takes 0.09 s of a start, and it knows nothing of the identity coding, which
a client accepts without naming it.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from starlette.datastructures import Headers

from headlight.problems import Problem, echo
from headlight.schemas.traces import DType
from headlight.serialization.compression import CODINGS, LEAST_BYTES, Coding
from headlight.serialization.formats import MEDIA_TYPES, ResponseFormat

N_CACHED_HEADERS = 64


def negotiate_format(
    headers: Headers, dtype: DType = "float32", *, triangle: bool = False
) -> ResponseFormat:
    """Return the format of an answer of arrays that the headers of a request ask for.

    Raises:
        Problem: 406, the client takes no media type or no coding that is offered.
    """
    return ResponseFormat(
        media_type=negotiate(headers.get("accept", ""), MEDIA_TYPES),
        dtype=dtype,
        triangle=triangle,
        coding=negotiate_coding(headers, LEAST_BYTES),
        small_coding=negotiate_coding(headers, 0),
    )


def negotiate(accept: str, offered: Sequence[str]) -> str:
    """Return the media type that the client wants most, of those offered, the preferred one first.

    Raises:
        Problem: 406, the client takes none of them. An empty Accept header takes anything.
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
    """Return the content coding that the client wants most, if it pays for about `n_bytes`.

    Raises:
        Problem: 406, the client accepts neither the identity coding nor another.
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


# Clients send few different headers; those of a request are read five times.
@lru_cache(N_CACHED_HEADERS)
def _qualities(accept: str) -> Mapping[str, float]:
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


def _wanted(media_type: str, ranges: Mapping[str, float]) -> float:
    family = media_type.split("/")[0]
    for media_range in (media_type, f"{family}/*", "*/*"):
        if media_range in ranges:
            return ranges[media_range]
    return 0.0
