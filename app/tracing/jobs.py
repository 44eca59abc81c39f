"""Trace jobs: text lengths checked, requests under the ids of their results, batches computed.

The id is a hash of all that decides the numbers, and of nothing else: not of how the sites were
spelled, how the numbers are sent, or which other texts the pass reads, as each text of a batch has
the numbers that it has alone (to 1e-5 in float32; in bfloat16, where that would not hold, a pass
reads one text). So any replica that computed the same before can answer from its cache.
"""

import hashlib
import json
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import torch

from headlight.errors import Problem, over_limit
from headlight.model.cancellation import check
from headlight.model.interventions import ImpossibleIntervention, UnknownExpert, site_edits
from headlight.model.quantization import UnknownPart
from headlight.model.served import Description, Served, UnwatchedPass
from headlight.model.site_edit import SiteEdit, UnknownPosition
from headlight.model.sites import UnknownHead, UnknownLayer, UnknownSite
from headlight.model.trace import Trace
from headlight.model.tracing import (
    EmptyText,
    ModelInput,
    NoTarget,
    PassSpec,
    TooManyTokens,
    UnknownToken,
    count_elements,
    group_by_length,
    lacks_target,
    pass_spec,
    require_fitting_edits,
    run_batch,
    tokenize,
    with_translations,
)
from headlight.schemas.traces import TokenizeRequest, TraceRequest
from headlight.serialization.trace import Analysis, Answer
from headlight.tracing.analyses import (
    analyse,
    choices_of,
    derived_arrays,
    n_predictions,
    require_no_edits,
    sites_of,
)
from headlight.tracing.edits import (
    Kept,
    intervention_of,
    require_finite,
    source_of,
    source_texts,
    with_sources,
)

MOST_MARKS = 1_000
MARKS = re.compile(
    rf"[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u064b-\u065f\u1ab0-\u1aff"
    rf"\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{{{MOST_MARKS}}}"
)
"""Putting them into order takes time with the square of their number."""

_KINDS: dict[type[Exception], str] = {
    UnknownSite: "unknown-site",
    UnknownLayer: "unknown-layer",
    UnknownHead: "unknown-head",
    UnknownExpert: "unknown-expert",
    UnknownPart: "unknown-part",
    ImpossibleIntervention: "impossible-edit",
    NoTarget: "no-target",
    EmptyText: "empty-text",
    UnknownPosition: "unknown-position",
    UnknownToken: "unknown-token",
    UnwatchedPass: "unwatched-pass",
}


@dataclass(frozen=True, kw_only=True)
class TraceJob:
    """A trace to compute.

    Attributes:
        id: of the trace.
        request: what was asked for.
        model: its id.
        spec: of the pass; it captures `sites` and what the analyses read.
        sites: the sites that are sent.
        derived: the arrays that analyses make beyond what they read: a site and its axes.
        is_batched: whether a pass may read other texts together with this one.
    """

    id: str
    request: TraceRequest
    model: str
    spec: PassSpec
    sites: tuple[str, ...]
    derived: tuple[tuple[str, tuple[str, ...]], ...]
    is_batched: bool = True

    @property
    def takes_values(self) -> bool:
        """Whether an edit takes its values from another trace."""
        edits = self.request.edits or ()
        return any(source_of(edit) is not None for edit in edits)

    @property
    def batch_key(self) -> Hashable | None:
        """Equal for jobs that one pass can compute; None: this one is computed alone."""
        return ("trace", self.model, self.spec) if self.is_batched else None


def trace_jobs(
    requests: Sequence[TraceRequest], description: Description, dtype: torch.dtype
) -> list[TraceJob]:
    """The jobs of requests that differ in their texts alone; one pass can compute them all.

    Raises:
        Problem: 422, the model lacks something that is asked for.
    """
    first = trace_job(requests[0], description, dtype)
    precision = str(dtype).removeprefix("torch.")
    return [
        replace(
            first,
            request=request,
            id=trace_id(description.revision, precision, request, first.sites, first.spec.sites),
        )
        for request in requests
    ]


def trace_job(request: TraceRequest, description: Description, dtype: torch.dtype) -> TraceJob:
    """The job that a request, whose texts are checked already, asks a model for.

    Raises:
        Problem: 422, the model lacks something that is asked for.
    """
    with model_errors_as_problems():
        sent = pass_spec(
            description,
            capture=request.capture,
            layers=request.layers,
            heads=request.heads,
            interventions=[intervention_of(edit) for edit in request.edits or ()],
            resolution=request.resolution,
            queries=request.queries,
        )
    require_no_edits(request.wanted_analyses, request.edits)
    read = sites_of(
        request.wanted_analyses, description, request.layers, is_long=request.is_observed
    )
    spec = sent.with_sites(read)
    precision = str(dtype).removeprefix("torch.")
    return TraceJob(
        id=trace_id(description.revision, precision, request, sent.sites, spec.sites),
        request=request,
        model=description.id,
        spec=spec,
        sites=sent.sites,
        derived=tuple(derived_arrays(request.wanted_analyses, read)),
        is_batched=precision == "float32" and not request.is_observed,
    )


def trace_id(
    revision: str,
    precision: str,
    request: TraceRequest,
    sites: Sequence[str],
    read: Sequence[str] = (),
) -> str:
    """The id of a trace, the same for every request for the same numbers.

    `read` are the sites that its analyses read: some keep to the layers that were asked for.
    """
    asked: list[Any] = [revision, precision, request.text, sites, request.heads]
    asked += [request.wanted_analyses, sorted(read), request.target, request.wanted_edits]
    predictions = request.predictions and request.predictions.model_dump()
    if request.ids or predictions or not request.special_tokens:
        asked += [request.ids, predictions, request.special_tokens]
    if request.logit_difference is not None:
        asked += [request.logit_difference.model_dump()]
    if request.is_observed:
        asked += ["observed", request.resolution, request.queries]
    if request.patching is not None:
        asked += [request.patching.model_dump()]
    # Not orjson, which rejects half a character; the tokenizer has the better message for it.
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:32]


def check_texts(request: TokenizeRequest, limit: int, long_limit: int | None = None) -> None:
    """Reject a request with a text that is empty or too long, before anything touches it.

    `long_limit` is that of a text of which only maps and rows are asked for.

    Raises:
        Problem: 422.
    """
    if long_limit is not None and isinstance(request, TraceRequest) and request.is_observed:
        limit = max(limit, long_limit)
    if request.text is not None:
        check_text(request.text, limit)
    if isinstance(request, TraceRequest) and request.target is not None:
        check_text(request.target, limit, "target")
    for text in source_texts(getattr(request, "edits", None) or ()):
        check_text(text, limit)
    if (patching := getattr(request, "patching", None)) is not None:
        check_text(patching.text, limit, "patching.text")
        if patching.target is not None:
            check_text(patching.target, limit, "patching.target")


def check_text(text: str, limit: int, name: str = "text") -> None:
    """Reject a text that is empty or has more than `limit` characters, before anything touches it.

    Raises:
        Problem: 422; it calls the text by the member of the request that it is, `name`.
    """
    if len(text) > limit:
        way_out = f"send a shorter {name}"
        raise over_limit("characters", limit=limit, actual=len(text), way_out=way_out)
    if not text.strip():
        raise Problem(422, "empty-text", f"the {name} is empty; send at least one word")
    if len(text) > MOST_MARKS and MARKS.search(text):
        detail = f"the {name} has {MOST_MARKS} combining marks in a row, which no language writes"
        raise Problem(422, "unreadable-text", detail)


@contextmanager
def model_errors_as_problems() -> Iterator[None]:
    """Turn the errors that the model raises about a request into problems.

    A panic of the tokenizer, a compiled library, is one too: it unwinds without harm, so the text
    is rejected and the server goes on.

    Raises:
        Problem: 422.
    """
    try:
        yield
    except TooManyTokens as error:
        detail = f"{error}; send a shorter one"
        raise Problem(
            422, "too-many-tokens", detail, limit=error.limit, actual=error.actual
        ) from error
    except tuple(_KINDS) as error:
        raise Problem(422, _KINDS[type(error)], str(error)) from error
    except BaseException as panic:
        if type(panic).__name__ != "PanicException":
            raise
        detail = "the tokenizer cannot read this text; change it"
        raise Problem(422, "unreadable-text", detail) from None


_WHOLE = (".scores", ".weights")
_HELD_SHARE = 16
"""The numbers that a pass with maps or rows may hold, for each one that it may return: the
residual stream of a book, of which a prediction of each layer is read."""

Solved = tuple[int, Answer | Exception]


def solve(
    checkpoint: Served,
    jobs: Sequence[TraceJob],
    max_elements: int,
    kept: Kept = lambda _: None,
    on_progress: Callable[[float], object] | None = None,
    *,
    is_total: bool = False,
) -> Iterator[Solved]:
    """Yield the index of each job once, with its answer or the reason that there is none.

    A failure of one job hits no other. The jobs are of equal `batch_key`, and `max_elements` are
    the most numbers that one answer, or one pass, may hold, or all answers together if `is_total`.
    `kept` finds a trace by its id; `on_progress` is called with the share of a pass with maps or
    rows that is done.
    """
    batch = _Batch(checkpoint, jobs, max_elements, is_total=is_total)
    batch.on_progress = on_progress
    if jobs[0].takes_values:
        try:
            batch.take_values(kept)
        except Exception as failure:
            yield from ((index, failure) for index in range(len(jobs)))
            return
    yield from batch.tokenize()
    yield from batch.translate()
    lengths = [read.n_tokens for read in batch.inputs.values()]
    indices, sizes = list(batch.inputs), list(batch.sizes.values())
    for group in group_by_length(lengths, sizes, max_elements):
        yield from batch.run([indices[member] for member in group])


class _Batch:
    """The inputs of the jobs that have not failed, and the elements each captures, by index."""

    def __init__(
        self,
        checkpoint: Served,
        jobs: Sequence[TraceJob],
        max_elements: int,
        *,
        is_total: bool = False,
    ) -> None:
        self.checkpoint = checkpoint
        self.jobs = jobs
        self.max_elements = max_elements
        self.is_total = is_total
        self.spec = jobs[0].spec
        self.inputs: dict[int, ModelInput] = {}
        self.sizes: dict[int, int] = {}
        self.on_progress: Callable[[float], object] | None = None

    def take_values(self, kept: Kept) -> None:
        """Take the values of edits from other traces; jobs of one spec have the same edits."""
        with model_errors_as_problems():
            self.spec = with_sources(
                self.spec,
                self.jobs[0].request.edits or (),
                self.checkpoint,
                max_elements=self.max_elements,
                kept=kept,
            )

    def tokenize(self) -> Iterator[Solved]:
        """Cut each text into tokens; yield those that fail."""
        for index, job in enumerate(self.jobs):
            try:
                with model_errors_as_problems():
                    read = tokenize(
                        self.checkpoint,
                        job.request.text,
                        job.request.target,
                        ids=job.request.ids,
                        special_tokens=job.request.special_tokens,
                        is_observed=job.spec.is_observed,
                    )
                # A translation takes time: is there room for the shortest, its start token?
                check()
                is_cut = lacks_target(self.checkpoint, read)
                shortest = replace(read, target_tokens=read.tokens[:1]) if is_cut else read
                if not is_cut:
                    self._check_edits(read)
                self.sizes[index] = self._count(index, shortest)
                self.inputs[index] = read
            except Exception as failure:
                yield index, failure

    def translate(self) -> Iterator[Solved]:
        """Give the inputs that lack a target the model's own; yield those that are too large."""
        translated = with_translations(self.checkpoint, list(self.inputs.values()))
        for (index, read), whole in zip(list(self.inputs.items()), translated, strict=True):
            if whole is read:
                continue
            try:
                self._check_edits(whole)
                self.sizes[index] = self._count(index, whole)
                self.inputs[index] = whole
            except Exception as failure:
                del self.inputs[index], self.sizes[index]
                yield index, failure

    def run(self, indices: Sequence[int]) -> Iterator[Solved]:
        """Read some inputs in one pass and yield their answers."""
        inputs = [self.inputs[index] for index in indices]
        with model_errors_as_problems():
            traces = run_batch(self.checkpoint, self.spec, inputs, self.on_progress)
        for index, trace in zip(indices, traces, strict=True):
            try:
                answer: Answer | Exception = self._answer(self.jobs[index], trace)
            except Exception as failure:
                answer = failure
            yield index, answer

    def _check_edits(self, read: ModelInput) -> None:
        with model_errors_as_problems():
            require_fitting_edits(self.checkpoint.description, self.spec, read)

    def _count(self, index: int, read: ModelInput) -> int:
        """The numbers that a job captures.

        Raises:
            Problem: 422, more than the limit.
        """
        job = self.jobs[index]
        description = self.checkpoint.description
        spec = replace(job.spec, sites=job.sites) if job.spec.is_observed else job.spec
        actual = count_elements(description, spec, read, job.derived)
        if job.spec.is_observed:
            self._check_memory(job, read)
        if job.request.predictions is not None:
            actual += n_predictions(job.request, description, read)
        others = sum(size for each, size in self.sizes.items() if each != index)
        total = actual + others if self.is_total else actual
        if total > self.max_elements:
            way_out = "ask for fewer sites, layers, heads or analyses, or send a shorter text"
            raise over_limit("cells", limit=self.max_elements, actual=total, way_out=way_out)
        return actual

    def _check_memory(self, job: TraceJob, read: ModelInput) -> None:
        """Check the numbers that a pass of a long text holds beside those that are returned.

        Raises:
            Problem: 422, an analysis or an edit needs too many.
        """
        description = self.checkpoint.description
        held = count_elements(description, job.spec, read)
        edited = site_edits(description.config, self.spec.interventions, description.paths)
        for site in {site for site, _ in edited if site.endswith(_WHOLE)}:
            held += count_elements(description, PassSpec((site,)), read)
        if not description.is_streamed:
            held += max(
                count_elements(description, PassSpec((f"{path}.weights",)), read)
                for path in description.observed
            )
        limit = _HELD_SHARE * self.max_elements
        if held > limit:
            way_out = "leave out analyses and edits that need whole matrices, or fewer layers"
            raise over_limit("cells", limit=limit, actual=held, way_out=way_out)

    def _answer(self, job: TraceJob, trace: Trace) -> Answer:
        if any(isinstance(one, SiteEdit) for one in self.spec.interventions):
            require_finite(trace)
        began = perf_counter()
        choices = choices_of(job.request, self.checkpoint, self.spec.interventions)
        analyses: dict[str, Analysis] = {}
        with self.checkpoint.with_weights_of(self.spec.interventions):
            for name in job.request.wanted_analyses:
                check()
                analyses[name] = analyse(name, trace, self.checkpoint, choices)
        timings = {**trace.timings, "analyses": 1e3 * (perf_counter() - began)}
        tensors = {site: trace.tensors[site] for site in job.sites}
        sent = replace(trace, tensors=tensors, timings=timings)
        return Answer(id=job.id, trace=sent, analyses=analyses)
