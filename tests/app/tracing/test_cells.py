"""How large a capture would be is known before anything is computed."""

import pytest

from headlight.model import tracing
from headlight.model.checkpoint import load
from headlight.tracing.cells import count_cells


@pytest.mark.parametrize("heads", [None, [1], [3, 0, 2]])
@pytest.mark.parametrize("model", ["tiny", "turning", "slanted", "filler"])
def test_counted_cells_are_those_of_every_site_in_a_real_trace(zoo, model, heads):
    checkpoint = load(zoo / model)
    require_counted(checkpoint, tracing.plan(checkpoint, "the cat sat", capture=["*"], heads=heads))


@pytest.mark.parametrize("target", ["a small light reads", None])
def test_cells_of_a_translator_are_counted_from_both_texts(translator, target):
    plan = tracing.plan(translator, "the cat sat", target, capture=["*"], heads=[3, 0])
    assert plan.target_tokens is not None
    assert len(plan.target_tokens) != len(plan.tokens)
    require_counted(translator, plan)


def require_counted(checkpoint, plan):
    trace = tracing.run(checkpoint, plan)
    for site, array in trace.tensors.items():
        assert count_cells(checkpoint.description, plan, [site]) == array.data.size, site
    every = sum(array.data.size for array in trace.tensors.values())
    assert count_cells(checkpoint.description, plan, list(trace.tensors)) == every


@pytest.fixture
def forbid_computing(monkeypatch):
    """Makes a pass or a translation an error."""
    monkeypatch.setattr(tracing, "run", None)
    monkeypatch.setattr(tracing, "translate", None)


def test_nothing_is_computed_for_a_capture_that_would_be_too_large(
    client_with, problem, forbid_computing
):
    client = client_with(max_cells=10)
    response = client.post("/api/v1/trace", json={"text": "the cat sat"})
    problem(response, 422, "too-many-cells")


def test_nothing_is_translated_where_the_source_alone_would_be_too_large(
    client_with, problem, forbid_computing
):
    asked = {"text": "z" * 15, "model": "translator", "capture": ["encoder.*.scores"]}
    response = client_with(max_cells=2 * 4 * 16 * 16 - 1).post("/api/v1/trace", json=asked)
    assert problem(response, 422, "too-many-cells")["actual"] == 2 * 4 * 16 * 16


def test_a_translation_that_would_be_too_large_is_refused(client_with, problem, monkeypatch):
    monkeypatch.setattr(tracing, "translate", lambda *_, **__: [[40] * 9])
    site = "decoder.layers.0.cross_attention.weights"
    asked = {"text": "z" * 15, "model": "translator", "capture": [site]}
    client = client_with(max_cells=4 * 16 * 10 - 1)
    body = problem(client.post("/api/v1/trace", json=asked), 422, "too-many-cells")
    assert body["actual"] == 4 * 16 * 10
    assert client.post("/api/v1/trace", json={**asked, "heads": [0]}).status_code == 200


@pytest.mark.parametrize("options", [{}, {"heads": [2]}])
def test_what_an_analysis_makes_is_counted_where_it_is_more_than_it_reads(
    client_with, problem, options
):
    client = client_with(max_cells=10)
    asked = {"text": "z" * 15, "capture": [], "analyses": ["head_outputs"], "layers": [1]}
    body = problem(client.post("/api/v1/trace", json=asked | options), 422, "too-many-cells")
    n_heads = len(options.get("heads", range(4)))
    assert body["actual"] == n_heads * 16 * 4 + n_heads * 16 * 16


@pytest.mark.parametrize("analysis", ["next_token", "logit_lens"])
def test_what_an_analysis_needs_is_counted(client_with, problem, tiny, analysis):
    client = client_with(max_cells=10)
    asked = {"text": "z" * 15, "capture": [], "analyses": [analysis]}
    body = problem(client.post("/api/v1/trace", json=asked), 422, "too-many-cells")
    streams = 2 * 16 * 16 if analysis == "logit_lens" else 0
    assert body["actual"] == 16 * tiny.tokenizer.vocab_size + streams
    assert client.post("/api/v1/trace", json={**asked, "analyses": []}).status_code == 200
