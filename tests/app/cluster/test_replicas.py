"""Two servers that share a hub: nothing depends on which of them answers."""

import asyncio
import re

import pytest
from fastapi.testclient import TestClient

from headlight.cluster.hub import Hub, value_of
from headlight.main import create_app
from headlight.serving.replicas import Quota
from tests.app.conftest import wait_until_ready

TEXT = "the cat sat on the mat"


class Near:
    """A hub in this process, as a replica sees it; `is_lost`: it does not answer."""

    def __init__(self, hub, replica):
        self.hub, self.replica, self.is_lost = hub, replica, False

    async def keep(self, trace_id, request):
        if not self.is_lost:
            await self.hub.keep(trace_id, request, self.replica)

    async def request_of(self, trace_id):
        return None if self.is_lost else await self.hub.request_of(trace_id)

    async def take(self, client, per_minute):
        return None if self.is_lost else await self.hub.take(client, per_minute)

    async def push(self, snapshot):
        await self.hub.push(self.replica, snapshot)

    async def others(self):
        return await self.hub.others(self.replica)

    async def keep_link(self, state):
        return None if self.is_lost else value_of(await self.hub.keep_link(state))

    async def state_of_link(self, link_id):
        return None if self.is_lost else value_of(await self.hub.state_of_link(link_id))


@pytest.fixture
def replicas(settings, tmp_path):
    """Yield two clients, each of a server on a machine of its own that shares with the other."""
    hub = Hub(settings.model_copy(update={"links_dir": tmp_path / "hub"}))
    changed = settings.model_copy(update={"cache_bytes": 2**24, "requests_per_minute": 40})
    apps = [
        create_app(changed.model_copy(update={"links_dir": tmp_path / name}), Near(hub, name))
        for name in ("one", "two")
    ]
    with (
        TestClient(apps[0], base_url="http://localhost") as one,
        TestClient(apps[1], base_url="http://localhost") as two,
    ):
        for client in (one, two):
            wait_until_ready(client.get)
        yield one, two


def untimed(answer):
    assert answer.status_code == 200, answer.text
    return {name: value for name, value in answer.json().items() if name != "timings"}


def test_a_trace_of_one_is_found_by_its_id_at_the_other(replicas):
    one, two = replicas
    body = {"text": TEXT, "heads": [1], "edits": [{"kind": "heads_off", "heads": [0]}]}
    computed = one.post("/api/v1/trace", json=body)
    location = computed.headers["content-location"]
    assert untimed(two.get(location)) == untimed(computed)
    assert untimed(two.get(location)) == untimed(one.get(location))


def test_tiles_of_one_are_made_by_the_other(replicas):
    one, two = replicas
    trace = one.post("/api/v1/trace", json={"text": TEXT, "resolution": 4}).json()
    part = {"attention": trace["tiles"][0], "head": 0, "queries": "0:5", "keys": "0:5"}
    path = f"/api/v1/traces/{trace['id']}/tile"
    assert untimed(two.get(path, params=part)) == untimed(one.get(path, params=part))


def test_a_link_of_one_opens_at_the_other(replicas):
    one, two = replicas
    kept = one.post("/api/v1/links", json={"state": "#text=the+cat"})
    assert kept.status_code == 201
    location = kept.headers["location"]
    assert two.get(location).json() == {"state": "#text=the+cat"}
    unknown = two.get(f"{location[:-22]}{'A' * 22}")
    assert (unknown.status_code, unknown.json()["type"]) == (
        404,
        "urn:headlight:problem:unknown-link",
    )


def test_an_edit_takes_values_from_a_trace_of_the_other(replicas):
    one, two = replicas
    site = "decoder.layers.0.residual.after"
    source = one.post("/api/v1/trace", json={"text": TEXT, "capture": [site]}).json()
    body = {
        "text": "the mat sat on the cat",
        "capture": ["logits"],
        "edits": [{"kind": "patch", "site": site, "from": {"trace": source["id"]}}],
    }
    assert untimed(two.post("/api/v1/trace", json=body)) == untimed(
        one.post("/api/v1/trace", json=body)
    )


def test_an_unknown_trace_is_unknown_everywhere(replicas, problem):
    for client in replicas:
        problem(client.get(f"/api/v1/traces/{'0' * 32}"), 404, "unknown-trace")


def test_a_trace_is_unknown_if_the_hub_is_lost(replicas, problem):
    one, two = replicas
    location = one.post("/api/v1/trace", json={"text": TEXT}).headers["content-location"]
    two.app.state.services.shared.is_lost = True
    problem(two.get(location), 404, "unknown-trace")


def test_a_quota_holds_over_both(replicas, problem):
    statuses = [replicas[number % 2].get("/api/v1/limits").status_code for number in range(41)]
    assert statuses == [200] * 40 + [429]
    problem(replicas[1].get("/api/v1/limits"), 429, "too-many-requests")
    replicas[0].app.state.services.shared.is_lost = True
    assert replicas[0].get("/api/v1/limits").status_code == 200, "it counts by itself then"


def count_of(text, series):
    (value,) = re.findall(rf"^{re.escape(series)} (.*)$", text, re.MULTILINE)
    return float(value)


def test_metrics_add_up(replicas):
    one, two = replicas
    for client, n in ((one, 2), (two, 3)):
        for _ in range(n):
            client.post("/api/v1/tokenize", json={"text": "a"})
    services = two.app.state.services
    asyncio.run(services.shared.push(services.metrics.snapshot()))
    text = one.get("/metrics").text
    series = 'headlight_requests_total{method="POST",route="/api/v1/tokenize",status="200"}'
    assert count_of(text, series) == 5
    bucket = 'headlight_request_seconds_bucket{le="+Inf",route="/api/v1/tokenize"}'
    assert count_of(text, bucket) == 5
    assert len(re.findall(r"^headlight_info\{.*\} 1\.0$", text, re.MULTILINE)) == 1


def test_gauges_of_a_replica_that_ended_do_not_count_and_its_counters_do(replicas):
    metrics = replicas[0].app.state.services.metrics
    metrics.tokens_written.inc(3)
    metrics.in_flight.set(0)
    gone = [
        ("headlight_tokens_written", "", "counter", [("headlight_tokens_written_total", {}, 4.0)]),
        ("headlight_requests_in_flight", "", "gauge", [("headlight_requests_in_flight", {}, 9.0)]),
    ]
    alive, ended = (metrics.exposition("", [(is_alive, gone)])[0] for is_alive in (True, False))
    assert count_of(alive.decode(), "headlight_tokens_written_total") == 7
    assert count_of(ended.decode(), "headlight_tokens_written_total") == 7
    assert count_of(alive.decode(), "headlight_requests_in_flight") == 9
    assert count_of(ended.decode(), "headlight_requests_in_flight") == 0


def test_the_hub_knows_who_has_a_trace_last():
    async def run():
        hub = Hub()
        await hub.keep("a", b"{}", "one")
        await hub.keep("a", b"{}", "two")
        assert await hub.holder("a") == "two"
        assert await hub.holder("b") is None
        assert isinstance(await hub.take("me", 3), Quota)

    asyncio.run(run())
