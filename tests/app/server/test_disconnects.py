"""Clients that disconnect, over real connections: their requests are neither computed nor kept."""

import asyncio
import gc
import threading
import time
from contextlib import contextmanager

import httpx

from headlight.model.layers import TransformerLayer
from headlight.model.transformer import Stack
from headlight.serving.engine import Job
from tests.app.connections import connect, raw_post, wait_for

N_ABANDONED = 100
SECONDS_PER_TEXT = 0.02


def trace(server, text):
    answer = httpx.post(f"{server.url}/api/v1/trace", json={"text": text}, timeout=60)
    assert answer.status_code == 200, answer.text
    in_flight = server.services.metrics.in_flight
    # A request is counted after its last byte was sent.
    wait_for(lambda: next(iter(in_flight.collect())).samples[0].value == 0)


def n_requests(server):
    """Return the number of requests that the server has finished."""
    (family,) = (
        metric
        for metric in server.services.metrics.registry.collect()
        if metric.name == "headlight_requests"
    )
    return sum(sample.value for sample in family.samples)


def n_alive(kind):
    gc.collect()
    return sum(type(item) is kind for item in gc.get_objects())


@contextmanager
def thread_held(engine):
    """Return a function that keeps the inference thread busy inside the block."""
    has_begun, may_end = threading.Event(), threading.Event()

    def hold():
        has_begun.set()
        may_end.wait(60)

    holder = threading.Thread(target=lambda: asyncio.run(engine.run(hold)))
    holder.start()
    has_begun.wait(60)
    try:
        yield
    finally:
        may_end.set()
        holder.join()


def test_abandoned_requests_are_not_computed_before_the_next(server, monkeypatch):
    forward_at_once = Stack.forward

    def forward(self, ids, **options):
        time.sleep(SECONDS_PER_TEXT * len(ids))
        return forward_at_once(self, ids, **options)

    monkeypatch.setattr(Stack, "forward", forward)
    trace(server, "the first")
    n_seen, n_jobs = n_requests(server), n_alive(Job)
    with thread_held(server.services.engine):
        for n in range(N_ABANDONED):
            with connect(server) as connection:
                connection.sendall(raw_post("trace", text=f"abandoned {n}"))
        wait_for(lambda: n_requests(server) == n_seen + N_ABANDONED)
        assert server.services.engine.n_jobs == 1
        wait_for(lambda: n_alive(Job) <= n_jobs + 1)
    trace(server, "the next")


def hold_layers(monkeypatch):
    """Let every layer wait; returns those that began, and the event that lets them go on."""
    entered, may_go_on = [], threading.Event()
    forward_at_once = TransformerLayer.forward

    def forward(self, *inputs, **options):
        entered.append(self)
        may_go_on.wait(20)
        return forward_at_once(self, *inputs, **options)

    monkeypatch.setattr(TransformerLayer, "forward", forward)
    return entered, may_go_on


def test_a_pass_stops_before_its_next_layer_when_its_client_leaves(server, monkeypatch):
    entered, may_go_on = hold_layers(monkeypatch)
    engine = server.services.engine
    with connect(server) as connection:
        connection.sendall(raw_post("trace", text="nobody waits for this"))
        wait_for(lambda: entered)
        (job,) = engine._jobs()
    wait_for(lambda: not job.is_wanted)
    may_go_on.set()
    wait_for(lambda: engine.n_jobs == 0)
    assert len(entered) == 1
