"""Compute a batch of trace jobs: tokenize each, read them together, analyse each."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from time import perf_counter

from headlight.errors import over_limit
from headlight.model.cancellation import check
from headlight.model.served import Served
from headlight.model.trace import Trace
from headlight.model.tracing import (
    ModelInput,
    count_elements,
    group_by_length,
    lacks_target,
    run_batch,
    tokenize,
    with_translations,
)
from headlight.serialization.trace import Analysis, Answer
from headlight.tracing.analyses import analyse
from headlight.tracing.jobs import TraceJob, model_errors_as_problems

Solved = tuple[int, Answer | Exception]


def solve(checkpoint: Served, jobs: Sequence[TraceJob], max_elements: int) -> Iterator[Solved]:
    """Yield the index of each job once, with its answer or the reason that there is none.

    A failure of one job hits no other.

    Args:
        checkpoint: the model of all jobs.
        jobs: of equal `batch_key`.
        max_elements: the most numbers that one answer, or one pass, may hold.
    """
    batch = _Batch(checkpoint, jobs, max_elements)
    yield from batch.tokenize()
    yield from batch.translate()
    lengths = [read.n_tokens for read in batch.inputs.values()]
    indices, sizes = list(batch.inputs), list(batch.sizes.values())
    for group in group_by_length(lengths, sizes, max_elements):
        yield from batch.run([indices[member] for member in group])


class _Batch:
    """The inputs of the jobs that have not failed, and the elements each captures, by index."""

    def __init__(self, checkpoint: Served, jobs: Sequence[TraceJob], max_elements: int) -> None:
        self.checkpoint = checkpoint
        self.jobs = jobs
        self.max_elements = max_elements
        self.inputs: dict[int, ModelInput] = {}
        self.sizes: dict[int, int] = {}

    def tokenize(self) -> Iterator[Solved]:
        """Cut each text into tokens; yield those that fail."""
        for index, job in enumerate(self.jobs):
            try:
                with model_errors_as_problems():
                    read = tokenize(self.checkpoint, job.request.text, job.request.target)
                # A translation takes time: is there room for the shortest, its start token?
                is_cut = lacks_target(self.checkpoint, read)
                shortest = replace(read, target_tokens=read.tokens[:1]) if is_cut else read
                self.sizes[index] = self._count(job, shortest)
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
                self.sizes[index] = self._count(self.jobs[index], whole)
                self.inputs[index] = whole
            except Exception as failure:
                del self.inputs[index], self.sizes[index]
                yield index, failure

    def run(self, indices: Sequence[int]) -> Iterator[Solved]:
        """Read some inputs in one pass and yield their answers."""
        inputs = [self.inputs[index] for index in indices]
        traces = run_batch(self.checkpoint, self.jobs[0].spec, inputs)
        for index, trace in zip(indices, traces, strict=True):
            try:
                answer: Answer | Exception = self._answer(self.jobs[index], trace)
            except Exception as failure:
                answer = failure
            yield index, answer

    def _count(self, job: TraceJob, read: ModelInput) -> int:
        """The numbers that a job captures.

        Raises:
            Problem: 422, more than the limit.
        """
        description = self.checkpoint.description
        actual = count_elements(description, job.spec, read, job.derived)
        if actual > self.max_elements:
            way_out = "ask for fewer sites, layers, heads or analyses, or send a shorter text"
            raise over_limit("cells", limit=self.max_elements, actual=actual, way_out=way_out)
        return actual

    def _answer(self, job: TraceJob, trace: Trace) -> Answer:
        began = perf_counter()
        analyses: dict[str, Analysis] = {}
        for name in job.request.wanted_analyses:
            check()
            analyses[name] = analyse(name, trace, self.checkpoint)
        timings = {**trace.timings, "analyses": 1e3 * (perf_counter() - began)}
        tensors = {site: trace.tensors[site] for site in job.sites}
        sent = replace(trace, tensors=tensors, timings=timings)
        return Answer(id=job.id, trace=sent, analyses=analyses)
