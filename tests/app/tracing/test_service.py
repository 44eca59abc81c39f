"""Requests that wait together share passes, over real connections."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest

from headlight.schemas.traces import TraceRequest

N_CLIENTS = 12


@pytest.fixture
def gate(server, monkeypatch):
    """Holds the first batch until it opens; the sizes of all batches are noted."""
    sizes, may_go_on = [], threading.Event()
    real = server.services.tracer.solve

    def solve(orders):
        sizes.append(len(orders))
        may_go_on.wait(20)
        return real(orders)

    monkeypatch.setattr(server.services.tracer, "solve", solve)
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


def test_clients_that_wait_together_get_what_each_would_get_alone(server, gate, from_json):
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
        expected = server.services.tracer.trace(TraceRequest(text=text))
        assert body["id"] == expected.id
        for site, array in from_json(body).items():
            np.testing.assert_allclose(array, expected.trace.tensors[site].data, atol=1e-5)


def test_what_cannot_share_a_pass_waits_for_its_own(server, gate):
    sizes, may_go_on = gate
    others = [
        {"text": "one"},
        {"text": "two", "heads": [0]},
        {"text": "three", "edits": [{"kind": "no_scaling"}]},
        {"text": "four", "model": "dense"},
        {"text": "five", "layers": [0]},
    ]
    with ThreadPoolExecutor() as pool:
        first = pool.submit(post, server, text="first")
        wait_for_jobs(server, 1)
        waiting = [pool.submit(post, server, **other) for other in others]
        wait_for_jobs(server, 1 + len(others))
        may_go_on.set()
        answers = [first, *waiting]
        assert [answer.result().status_code for answer in answers] == [200] * len(answers)
    assert sizes == [1] * 6
