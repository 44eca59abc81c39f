"""`Client` for scripts and notebooks, `AsyncClient` for servers and many calls at once.

The methods that are calls of the API are made from `headlight.client.endpoints`, which holds their
arguments and documentation once for both clients.
"""

import asyncio
import functools
import inspect
import os
import re
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from threading import Lock
from types import GenericAlias
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, Self, TypeVar

import httpx
from cachetools import LRUCache

from headlight.client import endpoints
from headlight.client.decode import async_events_of, events_of
from headlight.client.endpoints import Call
from headlight.client.errors import (
    HeadlightError,
    TooManyRequests,
    Unavailable,
    UnreadableAnswer,
    error_in,
    transport_errors,
)

ADDRESS = "http://127.0.0.1:8000"
KEY_VARIABLE = "HEADLIGHT_API_KEY"
CONNECT_SECONDS = 5.0
N_KEPT = 8
"""Traces by id that a client keeps, so that the server does not send them again."""

Answer = TypeVar("Answer")
Http = TypeVar("Http")
Transport = TypeVar("Transport")
P = ParamSpec("P")
Method = TypeVar("Method", bound=Callable[..., Any])


class _Kept(NamedTuple):
    """An answer that never changes, with its entity tag."""

    etag: str
    answer: Any


class _BaseClient(Generic[Http, Transport]):
    """Connection options, retries and kept answers, which both clients share."""

    _http_class: Callable[..., Http]

    def __init__(
        self,
        address: str = ADDRESS,
        *,
        api_key: str | None = None,
        timeout: float = 60.0,
        retries: int = 2,
        longest_wait: float = 10.0,
        headers: Mapping[str, str] | None = None,
        transport: Transport | None = None,
    ) -> None:
        if not address.startswith(("http://", "https://")):
            raise ValueError(f"{address!r} is not the address of a server, such as {ADDRESS}")
        self.address = address
        self.retries = retries
        self.longest_wait = longest_wait
        self._kept: LRUCache[object, _Kept] = LRUCache(N_KEPT)
        self._lock = Lock()
        self._http = self._http_class(
            base_url=address.rstrip("/"),
            headers={**_own_headers(api_key), **(headers or {})},
            timeout=httpx.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS)),
            transport=transport,
        )

    def _find_kept(self, call: Call[Any]) -> _Kept | None:
        with self._lock:  # a cache is not thread-safe, and a client of httpx is
            return self._kept.get(call.key)

    def _read(self, call: Call[Answer], response: httpx.Response, kept: _Kept | None) -> Answer:
        """Read a response; an immutable answer with an entity tag is kept."""
        if kept and response.status_code == httpx.codes.NOT_MODIFIED:
            answer: Answer = kept.answer
            return answer
        answer = call.read(response.content)
        if call.is_immutable and (etag := response.headers.get("ETag")):
            with self._lock:
                self._kept[call.key] = _Kept(etag, answer)
        return answer

    def _delay(self, error: HeadlightError, n_tried: int) -> float:
        """Return the seconds to wait before the next try.

        httpx-retries was considered: it also tries again if the server names no time, and too
        early if that time is longer than its longest wait.

        Raises:
            HeadlightError: the error itself, if there is no next try. Only 429 and 503 are tried
                again, and only after the time that their Retry-After gives.
        """
        if not isinstance(error, TooManyRequests | Unavailable) or n_tried >= self.retries:
            raise error
        if error.retry_after is None or error.retry_after > self.longest_wait:
            raise error
        return error.retry_after


def _sync(endpoint: Callable[P, Call[Answer]]) -> Callable[Concatenate["Client", P], Answer]:
    """Return a method of `Client` that sends the call of an endpoint."""

    def method(self: "Client", /, *args: P.args, **options: P.kwargs) -> Answer:
        call = endpoint(*args, **options)
        kept = self._find_kept(call)
        return self._read(call, self.send(call, kept and kept.etag), kept)

    return _documented(method, endpoint)


def _async(
    endpoint: Callable[P, Call[Answer]],
) -> Callable[Concatenate["AsyncClient", P], Coroutine[Any, Any, Answer]]:
    """Return a method of `AsyncClient` that sends the call of an endpoint."""

    async def method(self: "AsyncClient", /, *args: P.args, **options: P.kwargs) -> Answer:
        call = endpoint(*args, **options)
        kept = self._find_kept(call)
        return self._read(call, await self.send(call, kept and kept.etag), kept)

    return _documented(method, endpoint)


def _sync_stream(
    endpoint: Callable[P, Call[Answer]],
) -> Callable[Concatenate["Client", P], Generator[Answer, None, None]]:
    """Return a method of `Client` that yields the events of an endpoint."""

    def method(
        self: "Client", /, *args: P.args, **options: P.kwargs
    ) -> Generator[Answer, None, None]:
        return self._events(endpoint(*args, **options))

    return _documented(method, endpoint, lambda event: GenericAlias(Generator, (event, None, None)))


def _async_stream(
    endpoint: Callable[P, Call[Answer]],
) -> Callable[Concatenate["AsyncClient", P], AsyncGenerator[Answer, None]]:
    """Return a method of `AsyncClient` that yields the events of an endpoint."""

    def method(
        self: "AsyncClient", /, *args: P.args, **options: P.kwargs
    ) -> AsyncGenerator[Answer, None]:
        return self._events(endpoint(*args, **options))

    return _documented(method, endpoint, lambda event: GenericAlias(AsyncGenerator, (event, None)))


def _documented(
    method: Method,
    endpoint: Callable[..., Call[Any]],
    returns: Callable[[Any], Any] = lambda answer: answer,
) -> Method:
    """Give a method an endpoint's name, documentation and signature.

    `returns` makes its return type from that of the call: the answer, or a generator of events.
    """
    functools.update_wrapper(method, endpoint)
    signature = inspect.signature(endpoint)
    (answer,) = signature.return_annotation.__args__  # of Call[answer]
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    method.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[itself, *signature.parameters.values()], return_annotation=returns(answer)
    )
    return method


class Client(_BaseClient[httpx.Client, httpx.BaseTransport]):
    """Asks a Headlight server.

        with Client() as headlight:
            trace = headlight.trace("The cat sat on the mat.")
            trace["decoder.layers.0.self_attention.weights"].shape

    Args:
        address: of the server.
        api_key: the server's key; None: the value of HEADLIGHT_API_KEY; "": none.
        timeout: seconds to wait for an answer, or for the next event of a stream.
        retries: the number of other tries after 429 and 503, if the server says when to try.
        longest_wait: seconds; a longer Retry-After is not waited for.
        headers: sent with every request.
        transport: of httpx; for tests, and for proxies or sockets.

    Raises:
        ValueError: the address is not that of a web server, or the key cannot be sent.

    Every method raises a `HeadlightError`: `ConnectionFailed`, `TimedOut`, `UnreadableAnswer` or a
    `ProblemError`. Arguments may be NumPy numbers and arrays.
    """

    _http_class = httpx.Client

    models = _sync(endpoints.models)
    model = _sync(endpoints.model)
    atlas = _sync(endpoints.atlas)
    atlas_head = _sync(endpoints.atlas_head)
    atlas_spread = _sync(endpoints.atlas_spread)
    atlas_search = _sync(endpoints.atlas_search)
    atlas_matches = _sync(endpoints.atlas_matches)
    limits = _sync(endpoints.limits)
    weights = _sync(endpoints.weights)
    tokenize = _sync(endpoints.tokenize)
    trace = _sync(endpoints.trace)
    why = _sync(endpoints.why)
    traces = _sync(endpoints.traces)
    trace_by_id = _sync(endpoints.trace_by_id)
    tile = _sync(endpoints.tile)
    positional = _sync(endpoints.positional)
    tasks = _sync(endpoints.tasks)
    circuit = _sync(endpoints.circuit)
    experiments = _sync(endpoints.experiments)
    experiment_description = _sync(endpoints.experiment_description)
    experiment = _sync(endpoints.experiment)
    share = _sync(endpoints.share)
    link = _sync(endpoints.link)
    link_qr = _sync(endpoints.link_qr)
    metrics = _sync(endpoints.metrics)
    generate = _sync_stream(endpoints.generate)
    experiment_frames = _sync_stream(endpoints.experiment_frames)

    def is_alive(self) -> bool:
        """Return True if a server answers."""
        return self._is_ok("/healthz")

    def is_ready(self) -> bool:
        """Return True if a server answers and its default model is loaded."""
        return self._is_ok("/readyz")

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def send(self, call: Call[Any], etag: str | None = None) -> httpx.Response:
        """Send a call, again if the server is busy, and return the response.

        Args:
            call: of the API.
            etag: the entity tag of a known answer; the response is 304 if it is still valid.
        """
        n_tried = 0
        while True:
            with transport_errors(self.address):
                response = self._http.request(**call.request(etag))
            if (error := error_in(response)) is None:
                return response
            time.sleep(self._delay(error, n_tried))
            n_tried += 1

    def _events(self, call: Call[Answer]) -> Generator[Answer, None, None]:
        n_tried = 0
        while True:
            with transport_errors(self.address), self._http.stream(**call.request()) as response:
                if response.status_code == httpx.codes.OK:
                    yield from events_of(response.iter_lines(), call.events)
                    return
                response.read()
            time.sleep(self._delay(_stream_error(response), n_tried))
            n_tried += 1

    def _is_ok(self, path: str) -> bool:
        try:
            with transport_errors(self.address):
                return self._http.get(path).status_code == httpx.codes.OK
        except HeadlightError:
            return False


class AsyncClient(_BaseClient[httpx.AsyncClient, httpx.AsyncBaseTransport]):
    """`Client` with every method awaited.

        async with AsyncClient() as headlight:
            trace = await headlight.trace("The cat sat on the mat.")
            async for event in headlight.generate("Once upon a time", n_tokens=5):
                print(event)

    The arguments and the errors are those of `Client`.
    """

    _http_class = httpx.AsyncClient

    models = _async(endpoints.models)
    model = _async(endpoints.model)
    atlas = _async(endpoints.atlas)
    atlas_head = _async(endpoints.atlas_head)
    atlas_spread = _async(endpoints.atlas_spread)
    atlas_search = _async(endpoints.atlas_search)
    atlas_matches = _async(endpoints.atlas_matches)
    limits = _async(endpoints.limits)
    weights = _async(endpoints.weights)
    tokenize = _async(endpoints.tokenize)
    trace = _async(endpoints.trace)
    why = _async(endpoints.why)
    traces = _async(endpoints.traces)
    trace_by_id = _async(endpoints.trace_by_id)
    tile = _async(endpoints.tile)
    positional = _async(endpoints.positional)
    tasks = _async(endpoints.tasks)
    circuit = _async(endpoints.circuit)
    experiments = _async(endpoints.experiments)
    experiment_description = _async(endpoints.experiment_description)
    experiment = _async(endpoints.experiment)
    share = _async(endpoints.share)
    link = _async(endpoints.link)
    link_qr = _async(endpoints.link_qr)
    metrics = _async(endpoints.metrics)
    generate = _async_stream(endpoints.generate)
    experiment_frames = _async_stream(endpoints.experiment_frames)

    async def is_alive(self) -> bool:
        """Return True if a server answers."""
        return await self._is_ok("/healthz")

    async def is_ready(self) -> bool:
        """Return True if a server answers and its default model is loaded."""
        return await self._is_ok("/readyz")

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def send(self, call: Call[Any], etag: str | None = None) -> httpx.Response:
        """Send a call as `Client.send` does."""
        n_tried = 0
        while True:
            with transport_errors(self.address):
                response = await self._http.request(**call.request(etag))
            if (error := error_in(response)) is None:
                return response
            await asyncio.sleep(self._delay(error, n_tried))
            n_tried += 1

    async def _events(self, call: Call[Answer]) -> AsyncGenerator[Answer, None]:
        n_tried = 0
        while True:
            with transport_errors(self.address):
                async with self._http.stream(**call.request()) as response:
                    if response.status_code == httpx.codes.OK:
                        async for event in async_events_of(response.aiter_lines(), call.events):
                            yield event
                        return
                    await response.aread()
            await asyncio.sleep(self._delay(_stream_error(response), n_tried))
            n_tried += 1

    async def _is_ok(self, path: str) -> bool:
        try:
            with transport_errors(self.address):
                return (await self._http.get(path)).status_code == httpx.codes.OK
        except HeadlightError:
            return False


def _own_headers(api_key: str | None) -> dict[str, str]:
    """Return the client's name, and the key as a bearer token.

    Raises:
        ValueError: the key cannot be sent.
    """
    key = os.environ.get(KEY_VARIABLE, "") if api_key is None else api_key
    if not re.fullmatch(r"[!-~]*", key):
        origin = f"in {KEY_VARIABLE}" if api_key is None else "that was given"
        raise ValueError(
            f"the API key {origin} cannot be sent: a key consists of visible ASCII characters"
        )
    agent = {"User-Agent": "headlight-client"}
    return agent | {"Authorization": f"Bearer {key}"} if key else agent


def _stream_error(response: httpx.Response) -> HeadlightError:
    return error_in(response) or UnreadableAnswer("the answer is not a stream of events")
