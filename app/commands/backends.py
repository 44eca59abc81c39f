"""Sources of traces for the command line: a model in this process, or a server."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from headlight.client import (
    Client,
    HeadlightError,
    InvalidRequest,
    NotFound,
    Unauthorized,
    endpoints,
)
from headlight.client.client import KEY_VARIABLE
from headlight.commands.options import UsageError
from headlight.errors import Problem
from headlight.registry import registry_of
from headlight.routes.models import model_answer
from headlight.schemas.traces import TraceRequest
from headlight.serialization.formats import Form
from headlight.serialization.trace import encode
from headlight.settings import Settings
from headlight.tracing.service import trace_now


class Local:
    """Traces in this process.

    Every method raises UsageError if the request breaks a rule, and ValueError if it fails.

    Raises:
        ValueError: the device does not exist here.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.registry = registry_of(settings)

    def find(self, model: str) -> str:
        """The id of a model, given its id or its folder; an id counts before a folder."""
        registry, folder = self.registry, Path(model)
        if model in registry.ids or not folder.is_dir():
            return model
        registry.add(folder.resolve())
        return folder.resolve().name

    def answer(self, request: TraceRequest, media_type: str) -> bytes:
        """The body of the API's answer."""
        form = Form(media_type=media_type, dtype=request.dtype, triangle=request.triangle)
        with _plain_errors():
            return encode(trace_now(request, self.registry, self.settings), form)

    def card(self, model: str) -> Mapping[str, Any]:
        """A model's card, as the API sends it."""
        with _plain_errors():
            return model_answer(self.registry.describe(model)).model_dump(mode="json")


class Remote:
    """Asks a server; with the methods and errors of `Local`. The caller closes the client."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def find(self, model: str) -> str:
        """The id itself."""
        return model

    def answer(self, request: TraceRequest, media_type: str) -> bytes:
        """As `Local`."""
        call = endpoints.trace(**request.model_dump(mode="json", exclude_unset=True))
        with _plain_errors():
            return self.client.send(replace(call, accept=media_type)).content

    def card(self, model: str) -> Mapping[str, Any]:
        """As `Local`."""
        with _plain_errors():
            card: dict[str, Any] = self.client.send(endpoints.model(model)).json()
            return card


Backend: TypeAlias = Local | Remote


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Raise the errors of the server and the client with a message for a terminal."""
    try:
        yield
    except Problem as problem:
        kind = UsageError if problem.status_code < 500 else ValueError
        raise kind(problem.detail) from problem
    except ValueError as error:  # a text with a lone surrogate
        raise UsageError(str(error)) from error
    except (InvalidRequest, NotFound) as error:
        raise UsageError(error.detail) from error
    except Unauthorized as error:
        raise ValueError(_key_error(error)) from error
    except HeadlightError as error:
        raise ValueError(getattr(error, "detail", str(error))) from error


def _key_error(error: Unauthorized) -> str:
    if error.kind == "key-missing":
        return f"the server requires an API key; set {KEY_VARIABLE}"
    return f"{error.detail}; the key in {KEY_VARIABLE} was sent"
