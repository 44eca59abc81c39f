"""How large a capture would be is known before anything is computed."""

import pytest

from app.cells import count_cells
from model import tracing


@pytest.mark.parametrize("heads", [None, [1], [3, 0, 2]])
def test_counted_cells_are_those_of_every_site_in_a_real_trace(tiny, heads):
    trace = tracing.trace(tiny, "the cat sat", capture=["*"], heads=heads)
    sizes = {"n_tokens": len(trace.tokens), "n_heads": len(heads or range(4))}
    for site, array in trace.tensors.items():
        assert count_cells(tiny.description, [site], **sizes) == array.data.size, site
    every = sum(array.data.size for array in trace.tensors.values())
    assert count_cells(tiny.description, list(trace.tensors), **sizes) == every


def test_nothing_is_computed_for_a_capture_that_would_be_too_large(
    client_with, problem, monkeypatch
):
    client = client_with(max_cells=10)
    monkeypatch.setattr(tracing, "trace", None)
    response = client.post("/api/v1/trace", json={"text": "the cat sat"})
    problem(response, 422, "too-many-cells")


def test_what_an_analysis_needs_is_counted(client_with, problem, tiny):
    client = client_with(max_cells=10)
    asked = {"text": "z" * 15, "capture": [], "analyses": ["next_token"]}
    body = problem(client.post("/api/v1/trace", json=asked), 422, "too-many-cells")
    assert body["actual"] == 16 * tiny.tokenizer.vocab_size
    assert client.post("/api/v1/trace", json={**asked, "analyses": []}).status_code == 200
