"""Jobs solved together have the answers of single jobs, and one that fails fails no other."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from headlight.model import tracing
from headlight.model.cancellation import Cancelled, cancellable
from headlight.models.registry import registry_of
from headlight.problems import Problem
from headlight.schemas.traces import TraceRequest
from headlight.tracing import batch as module
from headlight.tracing.batch import solve
from headlight.tracing.service import job_of, trace_now

TEXTS = ("the cat", "a small light reads the words aloud because it was tired", "mat")


@pytest.fixture(scope="module")
def registry(settings):
    return registry_of(settings)


@pytest.fixture
def jobs_of(registry, settings):
    """Return a function that makes jobs for some texts."""

    def make(texts=TEXTS, **options):
        requests = [TraceRequest(text=text, **options) for text in texts]
        return [job_of(request, registry, settings) for request in requests]

    return make


@pytest.fixture
def passes(monkeypatch):
    """Return the number of texts of every pass that is made."""
    made, run = [], tracing.run_batch

    def count(checkpoint, spec, inputs, *_):
        made.append(len(inputs))
        return run(checkpoint, spec, inputs)

    monkeypatch.setattr(module, "run_batch", count)
    return made


@pytest.fixture
def solved(registry, settings):
    """Return a function that returns the answers to jobs, in their order."""

    def make(jobs, max_elements=settings.max_cells):
        answers = dict(solve(registry.checkpoint(jobs[0].model), jobs, max_elements))
        return [answers[index] for index in range(len(jobs))]

    return make


def elements_of(answer):
    return sum(array.data.size for array in answer.trace.tensors.values())


@pytest.mark.parametrize("model", ["tiny", "filler", "translator", "turning", "slanted"])
def test_jobs_solved_together_have_the_answers_of_single_jobs(
    jobs_of, solved, passes, registry, settings, model
):
    jobs = jobs_of(model=model)
    together = solved(jobs)
    assert max(passes) > 1
    assert sum(passes) == len(TEXTS)
    for answer, job in zip(together, jobs, strict=True):
        single = trace_now(job.request, registry, settings)
        assert answer.id == single.id == job.id
        assert answer.members() | {"timings": 0} == single.members() | {"timings": 0}
        for site, array in single.trace.tensors.items():
            np.testing.assert_allclose(answer.trace.tensors[site].data, array.data, atol=1e-5)
        arrays, expected = (each.analyses["next_token"].arrays for each in (answer, single))
        np.testing.assert_allclose(
            arrays["probabilities"].data, expected["probabilities"].data, atol=1e-5
        )


def test_an_error_of_one_job_fails_no_other(jobs_of, solved, passes):
    too_long = "a b c d e f g h " * 30
    answers = solved(jobs_of(("the cat", too_long, "mat")))
    assert [getattr(each, "kind", "fine") for each in answers] == [
        "fine",
        "too-many-tokens",
        "fine",
    ]
    assert passes == [2]


def test_a_pass_captures_no_more_numbers_than_one_answer_may_hold(jobs_of, solved, passes):
    jobs = jobs_of(("the cat",) * 4, capture=["*"])
    (single,) = solved(jobs[:1])
    passes.clear()
    answers = solved(jobs, 2 * elements_of(single))
    assert passes == [2, 2]
    assert [answer.id for answer in answers] == [job.id for job in jobs]


def test_an_analysis_that_finds_nothing_fails_only_its_job(jobs_of, solved, monkeypatch):
    analyse = module.analyse

    def fail(name, trace, *options):
        if trace.text == "mat":
            raise Problem(422, "nothing-to-analyse", "there is nothing")
        return analyse(name, trace, *options)

    monkeypatch.setattr(module, "analyse", fail)
    assert [isinstance(each, Problem) for each in solved(jobs_of())] == [False, False, True]


def test_a_cancellation_is_not_a_failure_of_a_job(jobs_of, solved):
    with cancellable(lambda: True), pytest.raises(Cancelled):
        solved(jobs_of())


@pytest.fixture
def forbid_computing(monkeypatch):
    """Make a pass or a translation an error."""
    monkeypatch.setattr(module, "run_batch", None)
    monkeypatch.setattr("headlight.model.checkpoint.checkpoint.translate", None)


Z = "z" * 15  # 16 tokens
CROSS = "decoder.layers.0.cross_attention.weights"
TOO_LARGE = [
    ({"model": "tiny"}, None),
    ({"model": "translator", "capture": ["encoder.*.scores"]}, 2 * 4 * 16 * 16),
    ({"capture": [], "analyses": ["head_outputs"], "layers": [1]}, 4 * 16 * 4 + 4 * 16 * 16),
    ({"capture": [], "analyses": ["head_outputs"], "layers": [1], "heads": [2]}, 16 * 4 + 16 * 16),
]


@pytest.mark.parametrize(("options", "actual"), TOO_LARGE)
def test_nothing_is_computed_for_a_job_that_would_be_too_large(
    jobs_of, solved, forbid_computing, options, actual
):
    (problem,) = solved(jobs_of((Z,), **options), (actual or 11) - 1)
    assert problem.kind == "too-many-cells"
    assert actual in (None, problem.members["actual"])


def test_a_translation_that_would_be_too_large_is_rejected(jobs_of, solved, monkeypatch):
    monkeypatch.setattr(
        "headlight.model.checkpoint.checkpoint.translate", lambda *_, **__: [[40] * 9]
    )
    asked = {"model": "translator", "capture": [CROSS]}
    (problem,) = solved(jobs_of((Z,), **asked), 4 * 16 * 10 - 1)
    assert (problem.kind, problem.members["actual"]) == ("too-many-cells", 4 * 16 * 10)
    (answer,) = solved(jobs_of((Z,), heads=[0], **asked), 4 * 16 * 10 - 1)
    assert elements_of(answer) == 16 * 10


@pytest.mark.parametrize("analysis", ["next_token", "logit_lens"])
def test_what_an_analysis_reads_is_counted(jobs_of, solved, tiny, analysis):
    (problem,) = solved(jobs_of((Z,), capture=[], analyses=[analysis]), 10)
    streams = 2 * 16 * 16 if analysis == "logit_lens" else 0
    assert problem.members["actual"] == 16 * tiny.tokenizer.vocab_size + streams


def test_the_milliseconds_of_the_analyses_are_measured(jobs_of, solved, monkeypatch):
    monkeypatch.setattr(module, "perf_counter", itertools.count(7.0, 0.25).__next__)
    (answer,) = solved(jobs_of(("mat",)))
    assert answer.trace.timings["analyses"] == 250


def test_the_weights_of_a_layer_count_if_its_attention_does_not_run_in_blocks(jobs_of, registry):
    streamed = registry.checkpoint("tiny")
    whole = replace(streamed, description=replace(streamed.description, is_streamed=False))
    jobs = jobs_of((Z,), resolution=1, analyses=[])
    maps = 2 * 2 * 4  # of each head and layer
    ((_, answer),) = solve(streamed, jobs, maps)
    assert elements_of(answer) == maps
    ((_, problem),) = solve(whole, jobs, maps)
    assert (problem.kind, problem.members["actual"]) == ("too-many-cells", maps + 4 * 16 * 16)
