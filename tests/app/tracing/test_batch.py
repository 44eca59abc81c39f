"""Jobs solved together have the answers of single jobs, and one that fails fails no other."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from headlight.model import tracing
from headlight.model.cancellation import Cancelled, cancellable
from headlight.models.model_registry import registry_of
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

    def make(jobs, max_elements=settings.max_cells, **limits):
        answers = dict(solve(registry.checkpoint(jobs[0].model), jobs, max_elements, **limits))
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


def test_a_pass_holds_no_more_numbers_than_are_allowed(jobs_of, solved, passes):
    jobs = jobs_of(("the cat",) * 4, capture=["*"])
    (single,) = solved(jobs[:1])
    passes.clear()
    answers = solved(jobs, max_held=2 * elements_of(single))
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


Z = "z" * 15  # 16 tokens
CROSS = "decoder.layers.0.cross_attention.weights"
TOO_LARGE = [
    ({"model": "tiny"}, None),
    ({"model": "translator", "capture": ["encoder.*.scores"]}, 2 * 4 * 16 * 16),
    ({"capture": [], "analyses": ["head_outputs"], "layers": [1]}, 4 * 16 * 16),
    ({"capture": [], "analyses": ["head_outputs"], "layers": [1], "heads": [2]}, 16 * 16),
]


@pytest.mark.parametrize(("options", "actual"), TOO_LARGE)
def test_nothing_is_computed_for_a_job_that_would_be_too_large(
    jobs_of, solved, monkeypatch, options, actual
):
    monkeypatch.setattr(module, "run_batch", None)
    monkeypatch.setattr("headlight.model.checkpoint.checkpoint.translate", None)
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
    (job,) = jobs_of((Z,), capture=[], analyses=[analysis])
    streams = 2 * 16 * 16 if analysis == "logit_lens" else 0
    held = 16 * tiny.tokenizer.vocab_size + streams
    (problem,) = solved([job], max_held=held - 1)
    assert (problem.members["actual"], problem.kind) == (held, "too-many-cells")
    assert "held in memory" in problem.detail
    assert "HEADLIGHT_MAX_HELD" in problem.detail
    (answer,) = solved([job], 16 * 3 * 20 * (2 if streams else 1), max_held=held)
    assert answer.analyses[analysis].arrays["ids"].data.shape[-1] == 20


@pytest.mark.parametrize("model", ["tiny", "translator", "filler"])
def test_what_is_computed_layer_by_layer_in_the_pass_equals_what_is_computed_after_it(
    jobs_of, solved, registry, monkeypatch, model
):
    names = ["head_labels", "head_norms", "residual_stream"]
    job, other = jobs_of(("the cat sat", "the cat"), model=model, capture=[], analyses=names)
    held, run = [], tracing.run_batch

    def spy(*arguments):
        traces = run(*arguments)
        held.append([site for trace in traces for site in trace.tensors])
        return traces

    monkeypatch.setattr(module, "run_batch", spy)
    (reduced,) = solved([job])
    after, _ = solved([job, other])
    assert held[0] == []
    assert len(held[1]) > 2 * 5
    for name in names:
        arrays, expected = (each.analyses[name].arrays for each in (reduced, after))
        assert arrays.keys() == expected.keys()
        assert reduced.analyses[name].metadata == after.analyses[name].metadata
        for key, array in arrays.items():
            assert array.axes == expected[key].axes
            np.testing.assert_allclose(array.data, expected[key].data, atol=1e-5)


def test_a_site_that_is_sent_is_not_dropped_after_use(jobs_of, solved):
    asked = {"capture": ["*.context"], "analyses": ["head_norms"]}
    (answer,) = solved(jobs_of(("the cat sat",), **asked))
    assert len(answer.trace.tensors) == 2
    assert all(array.data.std() > 0 for array in answer.trace.tensors.values())


def test_of_streams_that_are_reduced_one_layer_counts_as_held(jobs_of, solved):
    (job,) = jobs_of((Z,), capture=[], analyses=["residual_stream"])
    (problem,) = solved([job], max_held=1)
    one_layer = 5 * 16 * 16  # three places of the stream, two updates
    assert problem.members["actual"] == one_layer
    (answer,) = solved([job], max_held=one_layer)
    assert answer.analyses["residual_stream"].arrays["decoder.residual_norm.after"].data.all()


def test_what_analyses_send_counts_too(jobs_of, solved):
    (problem,) = solved(jobs_of((Z,), capture=[], analyses=["value_weighted"]), 16 * 16)
    assert problem.members["actual"] == 2 * 4 * 16 * 16
    assert "HEADLIGHT_MAX_CELLS" in problem.detail


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
    ((_, problem),) = solve(whole, jobs, maps, max_held=maps)
    assert (problem.kind, problem.members["actual"]) == ("too-many-cells", maps + 4 * 16 * 16)
