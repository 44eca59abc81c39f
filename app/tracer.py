"""One request's work on the inference thread: check the text, trace it, analyse it."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter
from typing import Any

import orjson

from app.analyses import analyse, made_of, sites_of
from app.cells import count_cells, require_cells
from app.problems import Problem, over_limit
from app.registry import Registry
from app.schemas import TokenizeRequest, TraceRequest
from app.settings import Settings
from app.wire import Analysis, Answer
from model import tracing
from model.checkpoint import Checkpoint
from model.edits import ImpossibleEdit, UnknownExpert
from model.interruption import check
from model.sites import UnknownHead, UnknownLayer, UnknownSite
from model.trace import Token, Trace

_UNKNOWN: dict[type[Exception], str] = {
    UnknownSite: "unknown-site",
    UnknownLayer: "unknown-layer",
    UnknownHead: "unknown-head",
    UnknownExpert: "unknown-expert",
    ImpossibleEdit: "impossible-edit",
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

    def trace(self, request: TraceRequest) -> Answer:
        """The trace that was asked for, with its analyses.

        Raises:
            Problem: the text or the answer would be too long, or something asked for is unknown.
        """
        self.check_text(request.text)
        if request.target is not None:
            self.check_text(request.target, "target")
        checkpoint = self.registry.checkpoint(request.model)
        with told_as_problems():
            return self._trace(checkpoint, request)

    def check_text(self, text: str, what: str = "text") -> None:
        """Refuse a text that is empty or too long, before anything else touches it.

        Args:
            text: what was sent.
            what: what an error calls it.

        Raises:
            Problem: 422.
        """
        limit = self.settings.max_characters
        if len(text) > limit:
            way_out = f"send a shorter {what}"
            raise over_limit("characters", limit=limit, actual=len(text), way_out=way_out)
        if not text.strip():
            raise Problem(422, "empty-text", f"the {what} is empty; send at least one word")

    def _trace(self, checkpoint: Checkpoint, request: TraceRequest) -> Answer:
        needed = sites_of(request.wanted_analyses, checkpoint, request.layers)
        made = made_of(request.wanted_analyses, needed)
        if request.target is None and checkpoint.config.kind == "encoder-decoder":
            self._require_room(checkpoint, _shortest_plan(checkpoint, request), needed, made)
        plan = _plan(checkpoint, request, request.target)
        captured = self._require_room(checkpoint, plan, needed, made)
        trace = tracing.run(checkpoint, replace(plan, sites=captured))
        return _assemble(checkpoint, request, trace, plan.sites)

    def _require_room(
        self,
        checkpoint: Checkpoint,
        plan: tracing.Plan,
        needed: Sequence[str],
        made: Sequence[tuple[str, tuple[str, ...]]],
    ) -> tuple[str, ...]:
        """The sites of a plan and those needed besides, where all of them fit into an answer."""
        captured = tuple(dict.fromkeys([*plan.sites, *needed]))
        n_cells = count_cells(checkpoint.description, plan, captured, made)
        require_cells(n_cells, self.settings.max_cells)
        return captured


def trace_id(
    revision: str,
    precision: str,
    request: TraceRequest,
    sites: Sequence[str],
    read: Sequence[str] = (),
) -> str:
    """A name for a trace: the same for whatever asks for the same numbers.

    It does not depend on how the numbers are encoded, nor on how the sites were spelled. `read` are
    the sites that its analyses read: some keep to the layers that were asked for.
    """
    asked: list[Any] = [revision, precision, request.text, sites, request.heads]
    asked += [request.wanted_analyses, sorted(read), request.target, request.wanted_edits]
    return hashlib.sha256(orjson.dumps(asked)).hexdigest()[:32]


def _plan(checkpoint: Checkpoint, request: TraceRequest, target: str | None) -> tracing.Plan:
    return tracing.plan(
        checkpoint,
        request.text,
        target,
        capture=request.capture,
        layers=request.layers,
        heads=request.heads,
        edits=[edit.read() for edit in request.edits or ()],
    )


def _shortest_plan(checkpoint: Checkpoint, request: TraceRequest) -> tracing.Plan:
    """The plan where the translation, which takes time to make, is empty: fewest cells of all."""
    plan = _plan(checkpoint, request, "a")
    return replace(plan, target_tokens=(plan.target_tokens or ())[:1])


def _assemble(
    checkpoint: Checkpoint, request: TraceRequest, trace: Trace, sites: Sequence[str]
) -> Answer:
    began = perf_counter()
    analyses: dict[str, Analysis] = {}
    for name in request.wanted_analyses:
        check()
        analyses[name] = analyse(name, trace, checkpoint)
    took = 1e3 * (perf_counter() - began)
    tensors = {site: trace.tensors[site] for site in sites}
    timings = {**trace.timings, "analyses": took}
    return Answer(
        id=trace_id(trace.revision, trace.precision, request, sites, list(trace.tensors)),
        trace=replace(trace, tensors=tensors, timings=timings),
        analyses=analyses,
    )
