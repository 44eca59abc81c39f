"""Which of several media types a client wants, from its Accept header.

RFC 9110, section 12.5.1: the most specific range that matches a type gives its quality; the
type of the highest quality wins, the one offered first where qualities are equal.
"""

from collections.abc import Sequence

from app.problems import Problem, echo


def negotiate(accept: str, offered: Sequence[str]) -> str:
    """The offered media type that the client wants most.

    Args:
        accept: the Accept header; an empty one takes anything.
        offered: full media types, the preferred one first.

    Raises:
        Problem: 406, where the client takes none of them; it names those that are offered.
    """
    ranges = dict(_quality_of(part) for part in accept.split(",") if part.strip())
    if not ranges:
        return offered[0]
    best = max(offered, key=lambda media_type: _wanted(media_type, ranges))
    if _wanted(best, ranges) > 0:
        return best
    detail = f"Accept {echo(accept)} takes none of {', '.join(offered)}; ask for one of these"
    raise Problem(406, "not-acceptable", detail, offered=list(offered))


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
