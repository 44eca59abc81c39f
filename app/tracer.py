"""One request's work on the inference thread: check the text, trace it, analyse it, encode it."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import orjson

from app.cells import count_cells, require_cells
from app.problems import Problem, over_limit
from app.registry import Registry
from app.schemas import TokenizeRequest, TraceRequest
from app.settings import Settings
from app.wire import Analysis, Answer, NonFiniteError, encode
from model import tracing
from model.analysis import next_token
from model.checkpoint import Checkpoint
from model.sites import UnknownHead, UnknownLayer, UnknownSite
from model.trace import NamedArray, Token, Trace


@dataclass(frozen=True)
class _Analyser:
    """An analysis that can be asked for: what it needs, and what it computes from that."""

    needs: tuple[str, ...]
    analyse: Callable[[Trace], Mapping[str, NamedArray]]


ANALYSERS = {"next_token": _Analyser(next_token.NEEDS, next_token.next_token)}

_UNKNOWN: dict[type[Exception], str] = {
    UnknownSite: "unknown-site",
    UnknownLayer: "unknown-layer",
    UnknownHead: "unknown-head",
}


class Tracer:
    """Answers trace and tokenize requests; every call blocks, so it belongs off the event loop.

    Args:
        registry: the models.
        settings: the limits.
    """

    def __init__(self, registry: Registry, settings: Settings) -> None:
        self.registry = registry
        self.settings = settings

    def tokenize(self, request: TokenizeRequest) -> tuple[str, Sequence[Token]]:
        """The model's id and the text's tokens, however many.

        Raises:
            Problem: the text is empty or too long, or the model is unknown.
        """
        self.check_text(request.text)
        checkpoint = self.registry.checkpoint(request.model)
        return checkpoint.id, checkpoint.tokenizer.encode(request.text)

    def answer(self, request: TraceRequest, media_type: str) -> bytes:
        """The trace that was asked for, encoded.

        Raises:
            Problem: as `trace`, and 503 where the model's numbers are not finite.
        """
        try:
            return encode(self.trace(request), media_type)
        except NonFiniteError as error:
            raise Problem(503, "model-unavailable", str(error)) from error

    def trace(self, request: TraceRequest) -> Answer:
        """The trace that was asked for, with its analyses.

        Raises:
            Problem: the text or the answer would be too long, or something asked for is unknown.
        """
        self.check_text(request.text)
        checkpoint = self.registry.checkpoint(request.model)
        try:
            return self._trace(checkpoint, request)
        except tracing.TooManyTokens as error:
            way_out = "send a shorter text"
            raise over_limit(
                "tokens", limit=error.limit, actual=error.actual, way_out=way_out
            ) from error
        except tuple(_UNKNOWN) as error:
            raise Problem(422, _UNKNOWN[type(error)], str(error)) from error

    def check_text(self, text: str) -> None:
        """Refuse a text that is empty or too long, before anything else touches it.

        Raises:
            Problem: 422.
        """
        limit = self.settings.max_characters
        if len(text) > limit:
            way_out = "send a shorter text"
            raise over_limit("characters", limit=limit, actual=len(text), way_out=way_out)
        if not text.strip():
            raise Problem(422, "empty-text", "the text is empty; send at least one word")

    def _trace(self, checkpoint: Checkpoint, request: TraceRequest) -> Answer:
        plan = tracing.plan(
            checkpoint,
            request.text,
            capture=request.capture,
            layers=request.layers,
            heads=request.heads,
        )
        needed = [site for name in request.wanted_analyses for site in ANALYSERS[name].needs]
        captured = tuple(dict.fromkeys([*plan.sites, *needed]))
        n_cells = count_cells(
            checkpoint.description,
            captured,
            n_tokens=len(plan.tokens),
            n_heads=len(plan.heads or range(checkpoint.config.n_heads)),
        )
        require_cells(n_cells, self.settings.max_cells)
        trace = tracing.run(checkpoint, replace(plan, sites=captured))
        return _assemble(checkpoint, request, trace, plan.sites)


def trace_id(revision: str, precision: str, request: TraceRequest, sites: Sequence[str]) -> str:
    """A name for a trace: the same for whatever asks for the same numbers.

    It does not depend on how the numbers are encoded, nor on how the sites were spelled.
    """
    asked = [revision, precision, request.text, sites, request.heads, request.wanted_analyses]
    return hashlib.sha256(orjson.dumps(asked)).hexdigest()[:32]


def _assemble(
    checkpoint: Checkpoint, request: TraceRequest, trace: Trace, sites: Sequence[str]
) -> Answer:
    began = perf_counter()
    analyses: dict[str, Analysis] = {
        name: _analyse(name, checkpoint, trace) for name in request.wanted_analyses
    }
    took = 1e3 * (perf_counter() - began)
    tensors = {site: trace.tensors[site] for site in sites}
    timings = {**trace.timings, "analyses": took}
    return Answer(
        id=trace_id(trace.revision, trace.precision, request, sites),
        trace=replace(trace, tensors=tensors, timings=timings),
        analyses=analyses,
        dtype=request.dtype,
    )


def _analyse(name: str, checkpoint: Checkpoint, trace: Trace) -> Analysis:
    arrays = ANALYSERS[name].analyse(trace)
    rows: Any = arrays["ids"].data.tolist()
    texts = {token: checkpoint.tokenizer.text_of(token) for row in rows for token in row}
    return Analysis(arrays=arrays, texts=[[texts[token] for token in row] for row in rows])
