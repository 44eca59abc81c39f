"""Nothing is kept of what was asked: no cache, label or log grows with what clients send."""

import gc
import time

import pytest

N_WARM, N_MORE = 64, 40

PATIENCE = 0.5
"""Seconds. A timer that nobody needs any more is kept by the event loop until its time has come."""


def ask(client, number):
    """Send one request of every kind, with a name that no other request has."""
    name = f"n{number}"
    client.post("/api/v1/tokenize", json={"text": f"the cat {name}"})
    client.post("/api/v1/trace", json={"text": f"a {name}", "capture": [f"*weight{'?' * number}*"]})
    client.post("/api/v1/trace", json={"text": "a", "capture": ["logits"], "layers": [number]})
    client.post("/api/v1/trace", json={"text": "a", name: number})
    client.post("/api/v1/trace", content=name, headers={"content-type": f"application/{name}"})
    client.post("/api/v1/trace", json={"text": "a"}, headers={"accept": f"text/{name}"})
    client.get(f"/api/v1/models/{name}", headers={"x-request-id": name, f"x-{name}": name})
    client.get(f"/api/v1/traces/{number:032x}", headers={"if-none-match": f'"{name}"'})
    client.get(f"/api/v1/positional?scheme=rotary&length=1&width=2&{name}=1")
    client.get(f"/static/{name}.js", headers={"accept-encoding": f"{name};q=1"})
    client.get(f"/{name}", headers={"host": f"{name}.example"})
    client.request(name, "/healthz")


def n_objects(client):
    time.sleep(PATIENCE + 0.1)
    client.get("/metrics")
    gc.collect()
    return len(gc.get_objects())


@pytest.fixture
def client(client_with):
    """Return a client of a server that keeps no traces."""
    times = dict.fromkeys(("queue_seconds", "work_seconds", "body_seconds"), PATIENCE)
    return client_with(cache_bytes=0, **times)


@pytest.mark.slow
def test_what_is_kept_does_not_grow_with_what_is_asked(client):
    for number in range(N_WARM):
        ask(client, number)
    before, series = n_objects(client), len(client.get("/metrics").text)
    for number in range(N_WARM, N_WARM + N_MORE):
        ask(client, number)
    assert n_objects(client) - before < 2 * N_MORE, "two objects of a dozen requests would be many"
    assert len(client.get("/metrics").text) < series + 500
