"""What both clients share: how they connect, when they try again, what they remember."""

import os
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from headlight.client.errors import (
    ConnectionFailed,
    HeadlightError,
    TimedOut,
    TooManyRequests,
    Unavailable,
    UnreadableAnswer,
    problem_of,
)
from headlight.client.trace import Trace

ADDRESS = "http://127.0.0.1:8000"
KEY_VARIABLE = "HEADLIGHT_API_KEY"
CONNECT_SECONDS = 5.0
N_REMEMBERED = 8


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How often a busy server is asked again, and how long it may let us wait each time.

    Only 429 and 503 are tried again, and only where Retry-After says when.
    """

    retries: int = 2
    longest_wait: float = 10.0

    def wait(self, problem: HeadlightError, n_tried: int) -> float | None:
        """Seconds to wait before the next try; None: there is none."""
        if not isinstance(problem, TooManyRequests | Unavailable) or n_tried >= self.retries:
            return None
        wait = problem.retry_after
        return wait if wait is not None and wait <= self.longest_wait else None


def options_of(
    address: str, api_key: str | None, timeout: float, headers: Mapping[str, str] | None
) -> dict[str, Any]:
    """The arguments of `httpx.Client`.

    Raises:
        ValueError: the address is none of a web server, or the key cannot be sent.
    """
    if not address.startswith(("http://", "https://")):
        raise ValueError(f"{address!r} is no address of a server; one is {ADDRESS}")
    given = os.environ.get(KEY_VARIABLE, "") if api_key is None else api_key
    key = {"Authorization": f"Bearer {given}"} if given else {}
    if not re.fullmatch(r"[!-~]*", given):
        where = f"in {KEY_VARIABLE}" if api_key is None else "that was given"
        raise ValueError(
            f"the API key {where} cannot be sent: a key is visible characters of ASCII, no blanks"
        )
    return {
        "base_url": address.rstrip("/"),
        "headers": {"User-Agent": "headlight-client", **key, **(headers or {})},
        "timeout": httpx.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS)),
    }


@contextmanager
def connected(address: str) -> Iterator[None]:
    """Turn what goes wrong on the way inside the block into what a person can read.

    Raises:
        ConnectionFailed, UnreadableAnswer: in place of httpx's own.
    """
    try:
        yield
    except httpx.TimeoutException as error:
        raise TimedOut(f"{address} did not answer in time; give it a longer timeout") from error
    except httpx.DecodingError as error:
        raise UnreadableAnswer(f"the answer of {address} is damaged: {error}") from error
    except httpx.ConnectError as error:
        raise ConnectionFailed(
            f"nothing answers at {address}; `headlight serve` starts a server"
        ) from error
    except (httpx.TransportError, httpx.InvalidURL) as error:
        raise ConnectionFailed(f"the connection to {address} failed: {error}") from error


def refusal_in(response: httpx.Response) -> HeadlightError | None:
    """The exception that an answer, read whole, stands for; None: it is what was asked for."""
    if response.status_code in (200, 304):
        return None
    if response.status_code < 400:
        return UnreadableAnswer(
            f"the answer leads to {response.headers.get('Location', 'another place')}; "
            "give the client the address of the server itself"
        )
    return problem_of(response.status_code, response.headers, response.content)


@dataclass(frozen=True)
class Known:
    """A trace, and the entity tag it came with."""

    tag: str
    trace: Trace


class Memory:
    """The last traces that were asked for by id, so that a server need not send them again."""

    def __init__(self, size: int = N_REMEMBERED) -> None:
        self.size = size
        self._found: OrderedDict[object, Known] = OrderedDict()

    def known(self, key: object) -> Known | None:
        """The trace that is remembered, if there is one."""
        return self._found.get(key)

    def keep(self, key: object, tag: str | None, trace: Trace) -> Trace:
        """Remember a trace by its entity tag; the one that was asked for longest ago goes."""
        if tag:
            self._found[key] = Known(tag, trace)
            self._found.move_to_end(key)
        while len(self._found) > self.size:
            self._found.popitem(last=False)
        return trace
