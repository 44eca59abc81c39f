"""What the model refuses, as problems that a client can read."""

from collections.abc import Iterator
from contextlib import contextmanager

from headlight.errors import Problem
from headlight.model import tracing
from headlight.model.interventions import ImpossibleIntervention, UnknownExpert
from headlight.model.sites import UnknownHead, UnknownLayer, UnknownSite

_UNKNOWN: dict[type[Exception], str] = {
    UnknownSite: "unknown-site",
    UnknownLayer: "unknown-layer",
    UnknownHead: "unknown-head",
    UnknownExpert: "unknown-expert",
    ImpossibleIntervention: "impossible-edit",
}


@contextmanager
def told_as_problems() -> Iterator[None]:
    """Turn what the model refuses inside the block into what a client can read.

    Raises:
        Problem: 422.
    """
    try:
        yield
    except tracing.TooManyTokens as error:
        detail = f"{error}; send a shorter one"
        raise Problem(
            422, "too-many-tokens", detail, limit=error.limit, actual=error.actual
        ) from error
    except tracing.NoTarget as error:
        raise Problem(422, "no-target", str(error)) from error
    except tuple(_UNKNOWN) as error:
        raise Problem(422, _UNKNOWN[type(error)], str(error)) from error
