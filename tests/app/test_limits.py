"""Every listed limit holds and is rejected as it says; a new limit needs a probe here."""

import json
import re
import threading
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import httpx
import pytest

from headlight.analyses import differences
from headlight.models import model_registry
from headlight.problems import Problem
from headlight.settings import Settings, limits_of
from tests.app.connections import wait_for

HERE = Path(__file__).parent
LIMITS = limits_of(Settings(), {})

# Limits that reject nothing, or that no request to this server can show, have separate tests.
SHOWN_BY = {
    "max_experiments": "routes/test_experiments.py::test_long_runs_need_a_place",
    "experiment_seconds": "routes/test_experiments.py::test_a_run_that_takes_too_long_is_stopped",
    "tile_bytes": "routes/test_long_texts.py::test_queries_and_keys_that_do_not_fit",
    "cache_bytes": "tracing/test_cache.py::test_the_bytes_counted_are_those_of_what_is_kept",
    "profile_seconds": "serving/test_profile_runs.py::test_a_process_that_takes_too_long_is_ended",
    "max_links": "serving/test_links.py::test_the_oldest_link_is_dropped",
    "links_bytes": "serving/test_links.py::test_the_oldest_links_make_room",
    "shutdown_seconds": "middleware/test_exceptions.py::test_a_request_that_is_cancelled_is_told",
    "body_seconds": "middleware/test_limits.py::test_a_body_that_does_not_arrive",
}


class Servers:
    """Makes servers with one changed limit, and sends them requests."""

    def __init__(self, client, client_with, atlas_dir):
        self.client = client
        self.atlas_dir = atlas_dir
        self.client_with = client_with

    def post(self, path, body, **changed):
        client = self.client_with(**changed) if changed else self.client
        return client.post(f"/api/v1/{path}", json=body)

    def trace(self, body, **changed):
        return self.post("trace", {"text": "the cat", **body}, **changed)

    def generate(self, body, **changed):
        return self.post("generate", {"text": "the cat", "n_tokens": 1, **body}, **changed)

    @contextmanager
    def busy(self, **changed):
        """Yield a client of a server whose inference thread is busy."""
        client, is_done = self.client_with(**changed), threading.Event()
        engine = client.app.state.services.engine
        wait_for(lambda: client.get("/readyz").status_code == 200)
        work = client.portal.start_task_soon(engine.run, is_done.wait)
        wait_for(lambda: engine.n_jobs)
        try:
            yield client
        finally:
            is_done.set()
            work.result()


@pytest.fixture
def servers(client, client_with, atlas_dir):
    return Servers(client, client_with, atlas_dir)


def requests_per_minute(servers):
    client = servers.client_with(requests_per_minute=1)
    assert client.get("/api/v1/limits").status_code == 200
    return client.get("/api/v1/limits")


def max_streams(servers):
    client = servers.client_with(max_streams=1)
    with client.app.state.services.streams.place():
        body = {"text": "the cat", "n_tokens": 1}
        return client.post("/api/v1/generate", json=body)


def max_outgoing_bytes(servers):
    client = servers.client_with()
    client.app.state.services.outgoing.limit = 1
    client.app.state.services.outgoing.reserve(1)
    return client.post("/api/v1/trace", json={"text": "the cat"})


def queue_length(servers):
    with servers.busy(queue_length=0) as client:
        return client.post("/api/v1/trace", json={"text": "the cat"})


def queue_seconds(servers):
    with servers.busy(queue_length=5, queue_seconds=0.2) as client:
        return client.post("/api/v1/trace", json={"text": "the cat"})


def work_seconds(servers):
    client, is_done = servers.client_with(work_seconds=0.2), threading.Event()
    wait_for(lambda: client.get("/readyz").status_code == 200)
    try:
        client.portal.call(client.app.state.services.engine.run, is_done.wait)
    except Problem as problem:
        return httpx.Response(problem.status_code, json=problem.document())
    finally:
        is_done.set()


def load_seconds(servers):
    client, is_done = servers.client_with(load_seconds=0.2), threading.Event()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model_registry, "load", lambda *_, **__: is_done.wait())
        answer = client.post("/api/v1/trace", json={"text": "the cat", "model": "dense"})
    is_done.set()
    return answer


def max_long_texts(servers):
    client = servers.client_with(max_characters=6)
    client.app.state.services.traces.long_texts.n_open = 4
    return client.post("/api/v1/trace", json={"text": "the cat", "resolution": 4})


def tile_of(servers, **members):
    client = servers.client
    trace = client.post("/api/v1/trace", json={"text": "the cat", "resolution": 4}).json()
    part = {"attention": trace["tiles"][0], "head": 0, "queries": "0:1", "keys": "0:1"}
    return client.get(f"/api/v1/traces/{trace['id']}/tile", params=part | members)


def max_edited_tokens(servers):
    body = {"text": "the cat sat on the mat", "analyses": ["patching"]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(differences, "MAX_EDITED_TOKENS", 64)
        return servers.trace(body | {"patching": {"text": "the mat sat on the cat"}})


def link_days(servers):
    client = servers.client_with()
    link = client.post("/api/v1/links", json={"state": "view=map"}).json()
    client.app.state.services.links.clock = datetime.fromisoformat(link["expires"]).timestamp
    return client.get(f"/api/v1/links/{link['id']}")


PROBES = {
    "link_days": link_days,
    "max_link_bytes": lambda servers: servers.post("links", {"state": "text=a"}, max_link_bytes=5),
    "max_long_characters": lambda servers: servers.trace(
        {"resolution": 4}, max_characters=3, max_long_characters=6
    ),
    "max_long_texts": max_long_texts,
    "search_seconds": lambda servers: servers.client_with(
        search_seconds=1e-9, atlas_dir=servers.atlas_dir
    ).get("/api/v1/models/tiny/atlas/search"),
    "long_seconds": lambda servers: servers.trace(
        {"resolution": 4}, max_characters=3, long_seconds=1e-9
    ),
    "max_resolution": lambda servers: servers.trace({"resolution": 1025}),
    "max_queries": lambda servers: servers.trace({"queries": list(range(257))}),
    "max_tile_bins": lambda servers: tile_of(servers, resolution=2**16 + 1),
    "max_tile_cells": lambda servers: tile_of(servers, queries="0:9000", keys="0:9000"),
    "requests_per_minute": requests_per_minute,
    "max_characters": lambda servers: servers.trace({}, max_characters=6),
    "max_cells": lambda servers: servers.trace({}, max_cells=10),
    "max_held": lambda servers: servers.trace({}, max_held=10),
    "max_body_bytes": lambda servers: servers.trace({"text": "a" * 5_000_000}),
    "max_header_bytes": lambda servers: servers.client.get("/", headers={"x-long": "a" * 40_000}),
    "max_new_tokens": lambda servers: servers.generate({"n_tokens": 3}, max_new_tokens=2),
    "max_streams": max_streams,
    "max_outgoing_bytes": max_outgoing_bytes,
    "memory_bytes": lambda servers: servers.trace({}, memory_bytes=1),
    "queue_length": queue_length,
    "queue_seconds": queue_seconds,
    "work_seconds": work_seconds,
    "load_seconds": load_seconds,
    "max_globs": lambda servers: servers.trace({"capture": ["*"] * 65}),
    "max_glob_characters": lambda servers: servers.trace({"capture": ["*" * 201]}),
    "max_model_id_characters": lambda servers: servers.trace({"model": "m" * 65}),
    "max_messages": lambda servers: servers.trace(
        {"text": None, "messages": [{"role": "user", "content": "a"}] * 1001}
    ),
    "max_analyses": lambda servers: servers.trace({"analyses": ["next_token"] * 65}),
    "max_positional_size": lambda servers: servers.client.get(
        "/api/v1/positional", params={"scheme": "sinusoidal", "length": 2**20 + 1, "width": 2}
    ),
    "max_alternatives": lambda servers: servers.generate({"n_alternatives": 101}),
    "max_stops": lambda servers: servers.generate({"stop": ["a"] * 9}),
    "max_candidates": lambda servers: servers.generate({"beams": 17}),
    "max_numbers": lambda servers: servers.trace({"heads": [0] * 257}),
    "max_edits": lambda servers: servers.trace({"edits": [{"kind": "no_scaling"}] * 17}),
    "max_texts": lambda servers: servers.client.post("/api/v1/traces", json={"texts": ["a"] * 65}),
    "max_ids": lambda servers: servers.client.post(
        "/api/v1/tokenize", json={"ids": [1] * (2**15 + 1)}
    ),
    "max_positions": lambda servers: servers.trace(
        {"edits": [{"kind": "set", "site": "logits", "value": 0, "positions": [1] * 4097}]}
    ),
    "max_edited_tokens": max_edited_tokens,
    "max_values": lambda servers: servers.trace(
        {"edits": [{"kind": "set", "site": "logits", "value": [0] * (2**15 + 1)}]}
    ),
    "max_weights": lambda servers: servers.client_with(max_weights=10).get(
        "/api/v1/models/tiny/weights", params={"name": "W_U"}
    ),
    "max_tokens": lambda servers: servers.trace({"text": "the cat " * 100}),
}


@pytest.mark.parametrize("name", PROBES)
def test_more_than_a_limit_allows_is_refused_as_it_says(servers, problem, name):
    status, kind = LIMITS[name].refusal.split()
    answer = PROBES[name](servers)
    body = json.loads(answer.content)
    if name in ("max_streams", "queue_length", "queue_seconds", "max_outgoing_bytes"):
        assert answer.headers["retry-after"] == "1"
    assert (str(answer.status_code), body["type"].rpartition(":")[2]) == (status, kind)
    if LIMITS[name].env is None and "limit" in body and name != "max_outgoing_bytes":
        assert body["limit"] in (LIMITS[name].value, 64), "64: the tokens of the tests' models"


@pytest.mark.parametrize("name", SHOWN_BY)
def test_the_others_have_their_own_test(name):
    path, _, test = SHOWN_BY[name].partition("::")
    assert re.search(rf"^(async )?def {test}", (HERE / path).read_text(), re.MULTILINE)


def test_no_limit_is_without_a_test():
    assert set(PROBES) | set(SHOWN_BY) == set(LIMITS)
