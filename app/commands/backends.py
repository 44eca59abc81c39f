"""Where the command line gets its traces from: a model in this process, or a server."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

from headlight.client import Client, HeadlightError, Unauthorized, endpoints
from headlight.client.client import KEY_VARIABLE
from headlight.errors import Problem
from headlight.registry import registry_of
from headlight.routes.models import model_answer
from headlight.schemas.traces import TraceRequest
from headlight.serialization.encoder import encode_checked
from headlight.serialization.formats import Form
from headlight.settings import Settings
from headlight.tracing.tracer import Tracer


class Source(Protocol):
    """Answers requests for traces as the API does."""

    def answer(self, order: TraceRequest, media_type: str) -> bytes:
        """The trace that was asked for, as it is sent.

        Raises:
            ValueError: the request breaks a rule, or nobody answers; the message says which.
        """

    def card(self, model: str) -> Mapping[str, Any]:
        """A model's card, as it is sent.

        Raises:
            ValueError: there is no such model.
        """


class Here:
    """Traces in this process.

    Args:
        settings: limits, models and device.

    Raises:
        ValueError: the device asked for is not there.
    """

    def __init__(self, settings: Settings) -> None:
        self.tracer = Tracer(registry_of(settings), settings)

    def answer(self, order: TraceRequest, media_type: str) -> bytes:
        """As `Source`."""
        form = Form(media_type=media_type, dtype=order.dtype, triangle=order.triangle)
        with _refusals_told():
            return encode_checked(self.tracer.trace(order), form)

    def card(self, model: str) -> Mapping[str, Any]:
        """As `Source`."""
        with _refusals_told():
            return model_answer(self.tracer.registry.describe(model)).model_dump(mode="json")


class There:
    """Asks a server.

    Args:
        client: of the server; it is the caller's to close.
    """

    def __init__(self, client: Client) -> None:
        self.client = client

    def answer(self, order: TraceRequest, media_type: str) -> bytes:
        """As `Source`."""
        call = endpoints.trace(**order.model_dump(mode="json", exclude_unset=True))
        with _refusals_told():
            return self.client.send(replace(call, accept=media_type)).content

    def card(self, model: str) -> Mapping[str, Any]:
        """As `Source`."""
        with _refusals_told():
            found: dict[str, Any] = self.client.send(endpoints.model(model)).json()
            return found


@contextmanager
def _refusals_told() -> Iterator[None]:
    """Turn what is refused inside the block into a sentence."""
    try:
        yield
    except Problem as problem:
        raise ValueError(problem.detail) from problem
    except Unauthorized as error:
        raise ValueError(_about_the_key(error)) from error
    except HeadlightError as error:
        raise ValueError(getattr(error, "detail", str(error))) from error


def _about_the_key(error: Unauthorized) -> str:
    """What to do about a key, here where it comes out of the environment."""
    if error.kind == "key-missing":
        return f"the server wants an API key; put it into {KEY_VARIABLE}"
    return f"{error.detail}; the key that was sent is in {KEY_VARIABLE}"
