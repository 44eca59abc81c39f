"""Micro-batching: trace jobs that wait together are computed in as few passes as fit.

`serving.engine` takes the jobs of equal `batch_key`; here their texts are cut into tokens,
counted, grouped by length and read, each group in one pass.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from time import perf_counter

from headlight.analyses.analysis import Result
from headlight.model.attention.observer import OnMap
from headlight.model.cancellation import check
from headlight.model.interventions.intervene import site_edits
from headlight.model.served import Served
from headlight.model.trace import Trace
from headlight.model.tracing import (
    ModelInput,
    PassSpec,
    count_elements,
    group_by_length,
    lacks_target,
    require_fitting_edits,
    run_batch,
    tokenize,
    with_translations,
)
from headlight.problems import too_many_elements
from headlight.serialization.trace import Answer
from headlight.tracing.edits import FindTrace, require_finite, with_sources
from headlight.tracing.jobs import TraceJob, model_errors_as_problems, reading, way_to_read_more
from headlight.tracing.results import Parts, analyse, choices_of, n_predictions, reduction_of

Solved = tuple[int, Answer | Exception]

_WHOLE = (".scores", ".weights")


def solve(
    checkpoint: Served,
    jobs: Sequence[TraceJob],
    max_elements: int,
    find_trace: FindTrace = lambda _: None,
    on_progress: Callable[[float], object] | None = None,
    *,
    max_held: int = sys.maxsize,
    on_map: OnMap | None = None,
    is_total: bool = False,
) -> Iterator[Solved]:
    """Yield the index of each job once, with its answer or the reason that there is none.

    A failure of one job hits no other. The jobs have equal `batch_key`s. `max_elements` are
    the most numbers that one answer may send, or all answers together if `is_total`; `max_held`
    those that one pass may hold.
    `find_trace` finds a kept trace by its id; `on_progress` is called with the share of a pass with
    maps or rows that is done, and `on_map` with its maps so far.
    """
    batch = _Batch(checkpoint, jobs, max_elements, max_held, is_total=is_total)
    if jobs[0].takes_values:
        try:
            batch.take_values(find_trace)
        except Exception as failure:
            yield from ((index, failure) for index in range(len(jobs)))
            return
    yield from batch.tokenize()
    yield from batch.translate()
    lengths = [model_input.n_tokens for model_input in batch.inputs.values()]
    indices, sizes = list(batch.inputs), [batch.held[index] for index in batch.inputs]
    for group in group_by_length(lengths, sizes, max_held):
        yield from batch.run([indices[member] for member in group], on_progress, on_map)


def require_small(checkpoint: Served, job: TraceJob, max_elements: int, max_held: int) -> None:
    """Raise what `solve` would of a text that is too long, without a pass or a kept trace."""
    batch = _Batch(checkpoint, [job], max_elements, max_held, is_total=False)
    _, failure = next(iter(() if job.takes_values else batch.tokenize()), (0, None))
    if isinstance(failure, Exception):
        raise failure


class _Batch:
    """The inputs of the jobs that have not failed, and the numbers of each, by index."""

    def __init__(
        self,
        checkpoint: Served,
        jobs: Sequence[TraceJob],
        max_elements: int,
        max_held: int,
        *,
        is_total: bool,
    ) -> None:
        self.checkpoint = checkpoint
        self.jobs = jobs
        self.max_elements = max_elements
        self.max_held = max_held
        self.is_total = is_total
        self.spec = jobs[0].spec
        self.inputs: dict[int, ModelInput] = {}
        self.sent: dict[int, int] = {}
        self.held: dict[int, int] = {}

    def take_values(self, find_trace: FindTrace) -> None:
        """Take the values of edits from other traces; jobs of one spec have the same edits."""
        with model_errors_as_problems():
            self.spec = with_sources(
                self.spec,
                self.jobs[0].request.edits or (),
                self.checkpoint,
                max_elements=self.max_held,
                find_trace=find_trace,
            )

    def tokenize(self) -> Iterator[Solved]:
        """Cut each text into tokens; yield those that fail."""
        for index, job in enumerate(self.jobs):
            try:
                with model_errors_as_problems(
                    way_to_read_more(job.request, self.checkpoint.description)
                ):
                    model_input = tokenize(
                        self.checkpoint,
                        job.request.text,
                        job.request.target,
                        **reading(job.request),
                        is_observed=job.spec.is_observed,
                    )
                # A translation takes time: is there room for the shortest, its start token?
                check()
                shortest = model_input
                if lacks_target(self.checkpoint, model_input):
                    shortest = replace(model_input, target_tokens=model_input.tokens[:1])
                else:
                    self._check_edits(model_input)
                self._count(index, shortest)
                self.inputs[index] = model_input
            except Exception as failure:
                yield index, failure

    def translate(self) -> Iterator[Solved]:
        """Translate the inputs that lack a target; yield those that are then too large."""
        translated = with_translations(self.checkpoint, list(self.inputs.values()))
        for (index, model_input), whole in zip(list(self.inputs.items()), translated, strict=True):
            if whole is model_input:
                continue
            try:
                self._check_edits(whole)
                self._count(index, whole)
                self.inputs[index] = whole
            except Exception as failure:
                del self.inputs[index]
                yield index, failure

    def run(
        self,
        indices: Sequence[int],
        on_progress: Callable[[float], object] | None,
        on_map: OnMap | None,
    ) -> Iterator[Solved]:
        """Read some inputs in one pass and yield their answers."""
        inputs = [self.inputs[index] for index in indices]
        reduction, parts = None, None
        if len(indices) == 1:
            job = self.jobs[indices[0]]
            reduction, parts = reduction_of(job.request, job.sites, self.checkpoint)
        with model_errors_as_problems():
            traces = run_batch(self.checkpoint, self.spec, inputs, on_progress, on_map, reduction)
        for index, trace in zip(indices, traces, strict=True):
            try:
                answer: Answer | Exception = self._answer(index, trace, parts)
            except Exception as failure:
                answer = failure
            yield index, answer

    def _check_edits(self, model_input: ModelInput) -> None:
        with model_errors_as_problems():
            require_fitting_edits(self.checkpoint.description, self.spec, model_input)

    def _count(self, index: int, model_input: ModelInput) -> None:
        """Count the numbers that a job sends, and those that its pass holds.

        Raises:
            Problem: 422, more than a limit.
        """
        job, description = self.jobs[index], self.checkpoint.description
        spec = replace(job.spec, sites=job.sites)
        sent = count_elements(description, spec, model_input, job.derived)
        sent += n_predictions(job.request, description, model_input)
        self._require_few_sent(index, sent)
        self.held[index] = count_elements(description, job.spec, model_input)
        if (held := self._held(job, model_input)) > self.max_held:
            way_out = "leave out analyses and edits of whole matrices, or send a shorter text"
            raise too_many_elements(limit=self.max_held, actual=held, way_out=way_out, is_held=True)

    def _require_few_sent(self, index: int, sent: int) -> None:
        """Raise a problem if an answer, or all together, would send too many numbers."""
        self.sent[index] = sent
        total = sum(self.sent.values()) if self.is_total else sent
        if total > self.max_elements:
            del self.sent[index]
            way_out = "ask for fewer sites, layers, heads or analyses, or send a shorter text"
            raise too_many_elements(limit=self.max_elements, actual=total, way_out=way_out)

    def _held(self, job: TraceJob, model_input: ModelInput) -> int:
        """Return the most numbers that a pass over one text holds at one time."""
        description = self.checkpoint.description

        def count(sites: Iterable[str]) -> int:
            return count_elements(description, replace(job.spec, sites=tuple(sites)), model_input)

        reduction, _ = reduction_of(job.request, job.sites, self.checkpoint)
        in_parts = {site for part in reduction.parts for site in part.sites} - {*reduction.kept}
        held = count(site for site in job.spec.sites if site not in in_parts)
        held += max((count(in_parts & {*part.sites}) for part in reduction.parts), default=0)
        edited = site_edits(description.config, self.spec.interventions, description.paths)
        whole = {site for site, _ in edited if site.endswith(_WHOLE)}
        held += count_elements(description, PassSpec(tuple(whole)), model_input)
        if not description.is_streamed:
            weights = (PassSpec((f"{path}.weights",)) for path in description.observed)
            each = (count_elements(description, spec, model_input) for spec in weights)
            held += max(each, default=0)
        return held

    def _answer(self, index: int, trace: Trace, parts: Mapping[str, Parts] | None) -> Answer:
        job = self.jobs[index]
        if not all(each.is_bounded for each in self.spec.interventions):
            require_finite(trace)
        began = perf_counter()
        choices = choices_of(job.request, self.checkpoint, self.spec.interventions)
        analyses: dict[str, Result] = {}
        with self.checkpoint.with_weights_of(self.spec.interventions):
            for name in job.request.wanted_analyses:
                check()
                analyses[name] = analyse(name, trace, self.checkpoint, choices, parts)
        timings = {**trace.timings, "analyses": 1e3 * (perf_counter() - began)}
        tensors = {site: trace.tensors[site] for site in job.sites}
        sent = replace(trace, tensors=tensors, timings=timings)
        answer = Answer(id=job.id, trace=sent, analyses=analyses)
        self._require_few_sent(index, sum(array.data.size for _, array in answer.arrays()))
        return answer
