"""Which media type and which content coding a client wants, from its Accept headers.

RFC 9110, sections 12.5.1 and 12.5.3: the most specific range that matches gives the quality; the
highest quality wins, what is offered first where qualities are equal.
"""

from collections.abc import Sequence

from starlette.datastructures import Headers

from headlight.errors import Problem, echo
from headlight.schemas.traces import DType
from headlight.serialization.formats import LEAST_BYTES, MEDIA_TYPES, Coding, Form

CODINGS: tuple[Coding, ...] = ("zstd", "br", "gzip")
"""In the order of what they cost for what they save, measured on traces."""


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
        Problem: 406, where the client takes none of them; it names those that are offered.
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
    """The content coding for an answer to a request: the one it wants most, where that pays.

    Args:
        headers: of the request. Without Accept-Encoding it wants none.
        n_bytes: about the size of the answer; small ones are sent as they are.
        offered: the preferred one first.

    Raises:
        Problem: 406, where the client refuses an answer as it is, and every coding there is.
    """
    accept = ",".join(headers.getlist("accept-encoding"))
    ranges = _qualities(accept.replace("x-gzip", "gzip"))
    anything = ranges.get("*", 0.0)
    best = max(offered, key=lambda coding: ranges.get(coding, anything), default=None)
    wanted = ranges.get(best, anything) if best else 0.0
    # Who does not name identity takes it where nothing better is there.
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
