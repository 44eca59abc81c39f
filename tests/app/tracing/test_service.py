"""Requests that wait together share passes; a trace needs no server."""

import json
import math
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest
import torch

from headlight.models.model_registry import registry_of
from headlight.problems import Problem
from headlight.schemas.traces import TraceRequest
from headlight.serialization.formats import ResponseFormat
from headlight.serialization.trace import encode
from headlight.tracing import service
from headlight.tracing.service import trace_now

N_CLIENTS = 12


@pytest.fixture
def gate(server, monkeypatch):
    """Hold the first batch until it opens; note the sizes of all."""
    sizes, may_go_on = [], threading.Event()
    real = service.solve

    def solve(checkpoint, jobs, *options, **limits):
        sizes.append(len(jobs))
        may_go_on.wait(20)
        return real(checkpoint, jobs, *options, **limits)

    monkeypatch.setattr(service, "solve", solve)
    yield sizes, may_go_on
    may_go_on.set()


def post(server, **request):
    return httpx.post(f"{server.url}/api/v1/trace", json=request, timeout=60)


def wait_for_jobs(server, count):
    for _ in range(2000):
        if server.services.engine.n_jobs == count:
            return
        threading.Event().wait(0.01)
    raise AssertionError(f"{server.services.engine.n_jobs} jobs, not {count}")


def test_clients_that_wait_together_get_the_answers_of_single_requests(server, gate, from_json):
    sizes, may_go_on = gate
    texts = [" ".join(["the cat sat"] * (1 + n % 4)) + f" {n}" for n in range(N_CLIENTS)]
    with ThreadPoolExecutor(N_CLIENTS + 1) as pool:
        first = pool.submit(post, server, text="first")
        wait_for_jobs(server, 1)
        waiting = [pool.submit(post, server, text=text) for text in texts]
        wait_for_jobs(server, 1 + N_CLIENTS)
        may_go_on.set()
        assert first.result().status_code == 200
        answers = [answer.result() for answer in waiting]
    assert sizes == [1, N_CLIENTS]
    for text, answer in zip(texts, answers, strict=True):
        body = json.loads(answer.content)
        assert body["text"] == text
        expected = trace_now(
            TraceRequest(text=text), server.services.registry, server.services.settings
        )
        assert body["id"] == expected.id
        for site, array in from_json(body).items():
            np.testing.assert_allclose(array, expected.trace.tensors[site].data, atol=1e-5)


def test_a_trace_in_bfloat16_has_rows_that_sum_to_1_and_another_id(settings):
    request = TraceRequest(text="the cat sat")
    exact = trace_now(request, registry_of(settings), settings)
    halved = settings.model_copy(update={"precision": "bfloat16"})
    rough = trace_now(request, registry_of(halved), halved)
    site = "decoder.layers.1.self_attention.weights"
    weights, reference = (answer.trace.tensors[site].data for answer in (rough, exact))
    assert np.abs(weights.sum(axis=-1) - 1).max() < 1e-6
    assert 0 < np.abs(weights - reference).max() < 0.02
    assert rough.id != exact.id


def test_a_trace_without_a_server_keeps_nothing_for_tiles(settings):
    answer = trace_now(TraceRequest(text="the cat", resolution=2), registry_of(settings), settings)
    assert (answer.tiles, answer.trace.kept) == ((), {})


def test_numbers_that_are_not_finite_are_not_sent(settings):
    registry = registry_of(settings)
    with torch.no_grad():
        registry.checkpoint().model.decoder.norm.scale.fill_(math.nan)
    answer = trace_now(TraceRequest(text="the cat"), registry, settings)
    with pytest.raises(Problem, match="holds nan") as caught:
        encode(answer, ResponseFormat())
    assert (caught.value.status_code, caught.value.kind) == (503, "model-unavailable")


@pytest.mark.parametrize("asked", [{"capture": ["*"]}, {"capture": ["logits"]}])
def test_large_answers_are_encoded_off_the_worker_thread_and_are_equal(client, monkeypatch, asked):
    order = {"text": "the cat sat on the mat", **asked}
    small = client.post("/api/v1/trace", json=order).json()
    monkeypatch.setattr(service, "LARGE_BYTES", 0)
    monkeypatch.setattr(service, "INLINE_BYTES", 0)
    assert client.post("/api/v1/trace", json=order).json() | {"timings": 0} == small | {
        "timings": 0
    }


def test_a_panic_of_the_tokenizer_rejects_its_text_and_the_server_goes_on(
    serving, settings, problem, capfd
):
    with serving(settings) as server:
        backend = server.services.registry.checkpoint().tokenizer._backend
        backend.enable_truncation(4, stride=4)
        for path in ("trace", "tokenize"):
            answer = httpx.post(
                f"{server.url}/api/v1/{path}", json={"text": "the cat sat on the mat"}, timeout=60
            )
            problem(answer, 422, "unreadable-text")
        assert "panicked" in capfd.readouterr().err, "this was not a panic"
        backend.no_truncation()
        assert post(server, text="the cat sat on the mat").status_code == 200
        assert httpx.get(f"{server.url}/readyz").status_code == 200
