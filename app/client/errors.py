"""The exceptions that a client raises.

HeadlightError
├── ConnectionFailed            the server cannot be reached
│   └── TimedOut                it does not answer in time
├── UnreadableAnswer            the answer does not come from Headlight
└── ProblemError                the server reports an error (RFC 9457)
    ├── InvalidRequest          400, 405, 406, 413, 415, 422
    │   └── OverLimit           one of these that exceeds a limit, named in `limit`
    ├── Unauthorized            401, 403
    ├── NotFound                404
    ├── TooManyRequests         429
    ├── TooSlow                 504
    ├── Unavailable             503
    └── ServerFault             any other 5xx
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import httpx

REQUEST_ID = "X-Request-ID"


class HeadlightError(Exception):
    """Any failure to get an answer."""


class ConnectionFailed(HeadlightError):
    """The server cannot be reached."""


class TimedOut(ConnectionFailed):
    """The server did not answer in time."""


class UnreadableAnswer(HeadlightError):
    """The answer is not one that a Headlight server sends; a proxy's error page, for example."""


class ProblemError(HeadlightError):
    """An error that the server reports.

    Args:
        members: of the problem document.
        retry_after: seconds to wait before another try, if the server gives them.
        request_id: the request's name in the server's log.
    """

    def __init__(
        self,
        members: Mapping[str, Any],
        *,
        retry_after: float | None = None,
        request_id: str | None = None,
    ) -> None:
        self.members = dict(members)
        self.status = int(members["status"])
        self.type = str(members.get("type", "about:blank"))
        self.title = str(members.get("title", ""))
        self.detail = str(members.get("detail", self.title))
        self.limit: float | None = members.get("limit")
        self.actual: float | None = members.get("actual")
        self.retry_after = retry_after
        self.request_id = request_id
        super().__init__(self.detail)

    @property
    def kind(self) -> str:
        """The last part of `type`, in kebab case: `too-many-tokens`."""
        return self.type.rpartition(":")[2]

    def __str__(self) -> str:
        return f"{self.detail} ({self.status} {self.kind})"

    def __reduce__(self) -> tuple[Any, ...]:
        kind = partial(type(self), retry_after=self.retry_after, request_id=self.request_id)
        return kind, (self.members,)


class InvalidRequest(ProblemError):
    """The request breaks a rule."""


class OverLimit(InvalidRequest):
    """The request exceeds `limit`; `actual` is its size, if the server knows it."""


class Unauthorized(ProblemError):
    """The API key is missing or wrong."""


class NotFound(ProblemError):
    """There is no such model, or the trace is no longer kept."""


class TooManyRequests(ProblemError):
    """The client exceeds the server's rate limit; `retry_after` is when to continue."""


class Unavailable(ProblemError):
    """The server cannot answer now: its queue is full, or a model is damaged or still loading."""


class TooSlow(ProblemError):
    """The work took longer than the server allows."""


class ServerFault(ProblemError):
    """An internal error of the server; its log has the details."""


_BY_STATUS: dict[int, type[ProblemError]] = {
    401: Unauthorized,
    403: Unauthorized,
    404: NotFound,
    429: TooManyRequests,
    503: Unavailable,
    504: TooSlow,
}


def error_in(response: httpx.Response) -> HeadlightError | None:
    """Return the error that a complete response reports; None if it holds what was asked for."""
    status = response.status_code
    if status in (200, 304):
        return None
    if status < 400:
        return UnreadableAnswer(
            f"the server redirects to {response.headers.get('Location', 'another place')}; "
            "give the client that address"
        )
    try:
        members = json.loads(response.content)
        is_problem = isinstance(members, dict) and isinstance(members.get("status"), int)
    except ValueError:
        is_problem = False
    if not is_problem:
        return UnreadableAnswer(
            f"the answer has status {status} and is not a problem document; "
            "is there a Headlight server at this address?"
        )
    return problem_error(
        members,
        retry_after=_seconds(response.headers.get("Retry-After")),
        request_id=response.headers.get(REQUEST_ID),
    )


def problem_error(members: Mapping[str, Any], **known: Any) -> ProblemError:
    """Return the exception for a problem document, of the class that belongs to its status."""
    status = members["status"]
    if (kind := _BY_STATUS.get(status)) is None:
        invalid = OverLimit if "limit" in members else InvalidRequest
        kind = ServerFault if status >= 500 else invalid
    return kind(members, **known)


@contextmanager
def transport_errors(address: str) -> Iterator[None]:
    """Raise the errors of httpx as our own.

    Raises:
        ConnectionFailed, UnreadableAnswer: in place of httpx's exception.
    """
    try:
        yield
    except httpx.TimeoutException as error:
        raise TimedOut(f"{address} did not answer in time; allow a longer timeout") from error
    except httpx.DecodingError as error:
        raise UnreadableAnswer(f"the answer of {address} is damaged: {error}") from error
    except httpx.ConnectError as error:
        raise ConnectionFailed(
            f"no server answers at {address}; `headlight serve` starts one"
        ) from error
    except (httpx.TransportError, httpx.InvalidURL) as error:
        raise ConnectionFailed(f"the connection to {address} failed: {error}") from error


def _seconds(retry_after: str | None) -> float | None:
    """Return a Retry-After in seconds, or None for a date, which this server never sends."""
    try:
        return max(0.0, float(retry_after or ""))
    except ValueError:
        return None
