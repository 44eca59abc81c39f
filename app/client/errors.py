"""What can go wrong when a server is asked, each as an exception of its own.

HeadlightError
├── ConnectionFailed            nobody answers
│   └── TimedOut                nobody answers in time
├── UnreadableAnswer            what answers is no Headlight
└── ProblemError                the server says what is wrong (RFC 9457)
    ├── InvalidRequest          400, 405, 406, 413, 415, 422
    │   └── OverLimit           of these, where `limit` says how much is allowed
    ├── Unauthorized            401, 403
    ├── NotFound                404
    ├── TooManyRequests         429
    ├── TooSlow                 504
    ├── Unavailable             503
    └── ServerFault             any other 5xx
"""

import json
from collections.abc import Mapping
from typing import Any

REQUEST_ID = "X-Request-ID"


class HeadlightError(Exception):
    """Anything that keeps an answer from coming."""


class ConnectionFailed(HeadlightError):
    """Nobody answers at the address."""


class TimedOut(ConnectionFailed):
    """Nobody answered in the time that was given."""


class UnreadableAnswer(HeadlightError):
    """What came is nothing that a Headlight server sends: a proxy's page, say."""


class ProblemError(HeadlightError):
    """The server refused, and says why.

    Args:
        document: the problem's members.
        retry_after: seconds, where the server says when to try again.
        request_id: of the answer, to find it in the server's log.
    """

    def __init__(
        self,
        document: Mapping[str, Any],
        *,
        retry_after: float | None = None,
        request_id: str | None = None,
    ) -> None:
        self.members = dict(document)
        self.status = int(document["status"])
        self.type = str(document.get("type", "about:blank"))
        self.title = str(document.get("title", ""))
        self.detail = str(document.get("detail", self.title))
        self.limit: float | None = document.get("limit")
        self.actual: float | None = document.get("actual")
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
        told = {"retry_after": self.retry_after, "request_id": self.request_id}
        return (_again, (type(self), self.members, told))


class InvalidRequest(ProblemError):
    """The request breaks a rule."""


class OverLimit(InvalidRequest):
    """The request asks for more than `limit`; `actual` is what it asks for, where that is known."""


class Unauthorized(ProblemError):
    """The server wants an API key, or another one."""


class NotFound(ProblemError):
    """There is no such model, or no such trace any more."""


class TooManyRequests(ProblemError):
    """This client asks more often than the server allows; `retry_after` says when to go on."""


class Unavailable(ProblemError):
    """The server cannot answer now: its queue is full, or a model is damaged or not loaded yet."""


class TooSlow(ProblemError):
    """The work took longer than the server allows."""


class ServerFault(ProblemError):
    """The server made a mistake; its log says more."""


_BY_STATUS: dict[int, type[ProblemError]] = {
    401: Unauthorized,
    403: Unauthorized,
    404: NotFound,
    429: TooManyRequests,
    503: Unavailable,
    504: TooSlow,
}


def problem_of(status: int, headers: Mapping[str, str], body: bytes) -> HeadlightError:
    """The exception for an answer that is an error.

    Args:
        status: the HTTP status, 400 or above.
        headers: of the answer; names are found in any case.
        body: of the answer.
    """
    try:
        document = json.loads(body)
        is_problem = isinstance(document, dict) and isinstance(document.get("status"), int)
    except ValueError:
        is_problem = False
    if not is_problem:
        return UnreadableAnswer(
            f"the answer has status {status} and is no problem document; "
            "does a Headlight server run at this address?"
        )
    return problem_from(
        document,
        retry_after=_seconds(headers.get("Retry-After")),
        request_id=headers.get(REQUEST_ID),
    )


def problem_from(document: Mapping[str, Any], **told: Any) -> ProblemError:
    """The exception for a problem document, of the class that its status has."""
    status = document["status"]
    if (kind := _BY_STATUS.get(status)) is None:
        refusal = OverLimit if "limit" in document else InvalidRequest
        kind = ServerFault if status >= 500 else refusal
    return kind(document, **told)


def _seconds(retry_after: str | None) -> float | None:
    """A Retry-After in seconds; a date, which this server never sends, counts as none."""
    try:
        return max(0.0, float(retry_after or ""))
    except ValueError:
        return None


def _again(
    kind: type[ProblemError], document: Mapping[str, Any], told: Mapping[str, Any]
) -> ProblemError:
    return kind(document, **told)
