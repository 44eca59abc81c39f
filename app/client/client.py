"""A client that waits for its answers: for scripts and notebooks."""

import time
from collections.abc import Generator, Mapping, Sequence
from types import TracebackType
from typing import Self, TypeVar

import httpx

from headlight.client import endpoints
from headlight.client.answers import Limit, Model, Models
from headlight.client.connection import (
    ADDRESS,
    Memory,
    Patience,
    connected,
    options_of,
    refusal_in,
)
from headlight.client.endpoints import Call, Edit
from headlight.client.errors import HeadlightError
from headlight.client.events import Event, events_of
from headlight.client.trace import Positional, Trace
from headlight.model.trace import Token
from headlight.schemas.traces import DType

Answer = TypeVar("Answer")


class Client:
    """Asks a Headlight server.

        with Client() as headlight:
            trace = headlight.trace("The cat sat on the mat.")
            trace["decoder.layers.0.self_attention.weights"].shape

    Args:
        address: of the server.
        api_key: where the server wants one; None: what HEADLIGHT_API_KEY says, "": none.
        timeout: seconds to wait for an answer, or for the next event of a stream.
        retries: how often a busy server (429, 503) is asked again when it says that it may be.
        longest_wait: seconds; a server that wants to be left alone for longer is not asked again.
        headers: sent with every request.
        transport: what carries the requests; for tests, and for what httpx offers.

    Raises:
        ValueError: the address is none of a web server, or the key cannot be sent.

    Every method raises `ConnectionFailed`, `TimedOut`, `UnreadableAnswer` or a `ProblemError`,
    which are all a `HeadlightError`.
    """

    def __init__(
        self,
        address: str = ADDRESS,
        *,
        api_key: str | None = None,
        timeout: float = 60.0,
        retries: int = 2,
        longest_wait: float = 10.0,
        headers: Mapping[str, str] | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        options = options_of(address, api_key, timeout, headers)
        self.address = address
        self.patience = Patience(retries=retries, longest_wait=longest_wait)
        self._http = httpx.Client(**options, transport=transport)
        self._memory = Memory()

    def models(self) -> Models:
        """Every model that can be asked."""
        return self._ask(endpoints.models())

    def model(self, model: str) -> Model:
        """One model's card."""
        return self._ask(endpoints.model(model))

    def limits(self) -> dict[str, Limit]:
        """Every limit in force, by name."""
        return self._ask(endpoints.limits())

    def tokenize(self, text: str, *, model: str | None = None) -> tuple[Token, ...]:
        """Cut a text into a model's tokens."""
        return self._ask(endpoints.tokenize(text, model))

    def trace(
        self,
        text: str,
        *,
        model: str | None = None,
        target: str | None = None,
        capture: Sequence[str] | None = None,
        layers: Sequence[int] | None = None,
        heads: Sequence[int] | None = None,
        analyses: Sequence[str] | None = None,
        edits: Sequence[Edit] | None = None,
        dtype: DType | None = None,
        triangle: bool | None = None,
    ) -> Trace:
        """Read a text and return what its forward pass computed.

        Args:
            text: what to read.
            model: an id; None: the server's default.
            target: what the decoder of an encoder–decoder reads; None: the model's translation.
            capture: site names or globs; None: attention, positions, routing.
            layers: of the sites in layers, only these.
            heads: of arrays with a head axis, only these.
            analyses: quantities computed from the trace, by name.
            edits: what the pass changes: `{"kind": "heads_off", "heads": [3], "layer": 1}`.
            dtype: `uint16` halves the bytes of what lies between 0 and 1; arrays come out as
                float32, at most 8e-6 off.
            triangle: what causal arrays hold above their diagonal is not sent; it is in the arrays.
        """
        return self._ask(
            endpoints.trace(
                text,
                model=model,
                target=target,
                capture=capture,
                layers=layers,
                heads=heads,
                analyses=analyses,
                edits=edits,
                dtype=dtype,
                triangle=triangle,
            )
        )

    def trace_by_id(
        self, trace_id: str, *, dtype: DType | None = None, triangle: bool | None = None
    ) -> Trace:
        """A trace computed before, while the server keeps it; one that is known is not sent again.

        Raises:
            NotFound: it is kept no longer; ask for it with `trace`.
        """
        call = endpoints.trace_by_id(trace_id, dtype=dtype, triangle=triangle)
        key = (trace_id, dtype, triangle)
        known = self._memory.known(key)
        response = self.send(call, {"If-None-Match": known.tag} if known else {})
        if known and response.status_code == httpx.codes.NOT_MODIFIED:
            return self._memory.keep(key, known.tag, known.trace)
        return self._memory.keep(key, response.headers.get("ETag"), call.read(response.content))

    def generate(
        self,
        text: str,
        *,
        n_tokens: int,
        model: str | None = None,
        forced: Sequence[int] | None = None,
        skip: int | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        n_alternatives: int | None = None,
        layers: Sequence[int] | None = None,
        heads: Sequence[int] | None = None,
    ) -> Generator[Event, None, None]:
        """Write on from a text: `Started`, a `TokenWritten` for each token, `Ended`.

        Leaving the loop closes the stream, and the server stops writing.

        Args:
            text: to go on from.
            n_tokens: how many to write at most.
            model: a decoder; None: the server's default.
            forced: tokens to take in place of the first drawn ones.
            skip: forced tokens that have no event.
            temperature: divides the logits; 0 takes the likeliest token.
            top_k: draw from the k likeliest tokens only.
            top_p: draw from the fewest tokens whose probabilities reach p.
            seed: of the random numbers.
            n_alternatives: how many of the likeliest tokens each event tells.
            layers: attention and experts of these layers only.
            heads: attention of these heads only.
        """
        return self._events(
            endpoints.generate(
                text,
                n_tokens=n_tokens,
                model=model,
                forced=forced,
                skip=skip,
                temperature=temperature,
                top_k=top_k,
                top_p=top_p,
                seed=seed,
                n_alternatives=n_alternatives,
                layers=layers,
                heads=heads,
            )
        )

    def positional(
        self,
        length: int,
        *,
        scheme: str | None = None,
        model: str | None = None,
        width: int | None = None,
        heads: int | None = None,
    ) -> Positional:
        """The encoding of `length` positions: of a scheme by its sizes, or of a model."""
        return self._ask(
            endpoints.positional(
                length=length, scheme=scheme, model=model, width=width, heads=heads
            )
        )

    def metrics(self) -> str:
        """What the server counts and measures of itself, as Prometheus reads it."""
        return self._ask(endpoints.metrics())

    def is_alive(self) -> bool:
        """Whether a server answers."""
        return self._is_well("/healthz")

    def is_ready(self) -> bool:
        """Whether a server answers and its default model is warm."""
        return self._is_well("/readyz")

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _ask(self, call: Call[Answer]) -> Answer:
        return call.read(self.send(call).content)

    def send(self, call: Call[Answer], headers: Mapping[str, str] | None = None) -> httpx.Response:
        """The answer to a call as it came; a server that is busy is asked again."""
        n_tried = 0
        while True:
            with connected(self.address):
                request = self._http.build_request(**call.request)
                request.headers.update(headers or {})
                response = self._http.send(request)
            if (problem := refusal_in(response)) is None:
                return response
            if (wait := self.patience.wait(problem, n_tried)) is None:
                raise problem
            n_tried += 1
            time.sleep(wait)

    def _events(self, call: Call[None]) -> Generator[Event, None, None]:
        n_tried = 0
        while True:
            with connected(self.address), self._http.stream(**call.request) as response:
                if response.status_code == httpx.codes.OK:
                    yield from events_of(response.iter_lines())
                    return
                response.read()
            problem = refusal_in(response) or HeadlightError("the answer is empty")
            if (wait := self.patience.wait(problem, n_tried)) is None:
                raise problem
            n_tried += 1
            time.sleep(wait)

    def _is_well(self, path: str) -> bool:
        try:
            with connected(self.address):
                return self._http.get(path).status_code == httpx.codes.OK
        except HeadlightError:
            return False
