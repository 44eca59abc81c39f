"""Maps, rows and tiles of texts of any length, over HTTP."""

import base64
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from safetensors.numpy import load

from headlight.client.decode import read_trace
from headlight.tracing import service
from tests.app.conftest import client_of
from tests.app.connections import wait_for
from tests.app.reading import events_of

FILE = {"accept": "application/x-safetensors"}
EVENTS = {"accept": "text/event-stream"}
TEXT = "the cat sat on the mat and the dog sat on the cat. "
PATH = "decoder.layers.1.self_attention"


@pytest.fixture(scope="module")
def client(settings):
    """Yield a server for which a text of 80 characters is long."""
    with client_of(settings, max_characters=80, cache_bytes=2**22) as client:
        yield client


def ask(client, **members):
    return client.post("/api/v1/trace", json={"text": TEXT, **members}, headers=FILE)


def tile(client, trace_id, **members):
    part = {"attention": PATH, "head": 1, "queries": "2:6", "keys": "0:5"}
    return client.get(f"/api/v1/traces/{trace_id}/tile", params=part | members)


def test_maps_and_rows_are_those_of_the_weights(client):
    whole = read_trace(ask(client, capture=["*.weights"]).content)
    trace = read_trace(ask(client, resolution=7, queries=[3, 1]).content)
    n = len(whole.tokens)
    width = -(-n // 7)
    assert {site.rpartition(".")[2] for site in trace} == {"mean_map", "max_map", "rows"}
    assert len(trace.tensors) == 6
    weights = whole[f"{PATH}.weights"]
    np.testing.assert_allclose(trace[f"{PATH}.rows"], weights[:, [3, 1]], atol=1e-6)
    for place in ((0, 0), (1, 0), (-(-n // width) - 1, 1)):
        cells = weights[:, place[0] * width :, place[1] * width :][:, :width, :width]
        mean, greatest = (trace[f"{PATH}.{name}"][:, *place] for name in ("mean_map", "max_map"))
        np.testing.assert_allclose(mean, cells.mean((1, 2)), atol=1e-6)
        np.testing.assert_allclose(greatest, cells.max((1, 2)), atol=1e-6)


def test_a_text_may_be_longer_than_the_model_was_trained_on(client):
    text = TEXT * 20
    short = client.post("/api/v1/trace", json={"text": TEXT * 1, "capture": []})
    assert short.status_code == 200
    trace = read_trace(ask(client, text=text, resolution=16, capture=["*.entropy"]).content)
    card = client.get("/api/v1/models/tiny").json()
    assert card["trained_tokens"] < len(trace.tokens) <= card["longest_text"]
    assert trace.tensors[f"{PATH}.entropy"].data.shape == (4, len(trace.tokens))
    assert trace[f"{PATH}.max_map"].max() <= 1


def test_the_limit_counts_the_numbers_that_are_returned(client_with, problem):
    client = client_with(max_cells=1100)
    assert ask(client, resolution=8).status_code == 200  # 2 layers · 4 heads · 2 · 8²
    body = problem(ask(client, resolution=16), 422, "too-many-cells")
    assert body["actual"] > body["limit"] == 1100


def test_a_tile_is_exact_and_comes_without_a_pass(client):
    trace = read_trace(ask(client, resolution=4).content)
    passes = client.get("/metrics").text
    answer = tile(client, trace.id).json()
    assert answer["tokens_per_bin"] == [1, 1]
    assert list(answer["tensors"]) == ["mean_map"]
    weights = read_trace(ask(client, capture=["*.weights"]).content)[f"{PATH}.weights"]
    shown = np.array(answer["tensors"]["mean_map"]["data"])
    np.testing.assert_allclose(shown, weights[1, 2:6, :5], atol=1e-6)
    pooled = tile(client, trace.id, resolution=2)
    assert pooled.json()["tokens_per_bin"] == [2, 3]
    assert sorted(pooled.json()["tensors"]) == ["max_map", "mean_map"]
    assert "headlight" in passes
    file = client.get(
        f"/api/v1/traces/{trace.id}/tile",
        params={"attention": PATH, "head": 1, "queries": "2:6", "keys": "0:5"},
        headers=FILE,
    )
    np.testing.assert_array_equal(load(file.content)["mean_map"], shown.astype(np.float32))


@pytest.mark.parametrize(
    ("members", "status", "kind"),
    [
        ({"queries": []}, 422, "invalid-request"),
        ({"queries": [900]}, 422, "unknown-position"),
        ({"resolution": 4, "layers": [9]}, 422, "unknown-layer"),
        ({"resolution": 4, "heads": [9]}, 422, "unknown-head"),
    ],
)
def test_a_wrong_request_is_told(client, problem, members, status, kind):
    problem(ask(client, **members), status, kind)


@pytest.mark.parametrize(
    ("members", "kind"),
    [
        ({"attention": "decoder.layers.9.self_attention"}, "unknown-site"),
        ({"head": 9}, "unknown-head"),
        ({"queries": "2:900"}, "outside-map"),
        ({"keys": "three"}, "invalid-request"),
    ],
)
def test_a_wrong_tile_is_told(client, problem, members, kind):
    trace = read_trace(ask(client, resolution=4).content)
    problem(tile(client, trace.id, **members), 422, kind)


def test_a_tile_of_no_trace_is_not_found(client, problem):
    body = problem(tile(client, "0" * 32), 404, "unknown-trace")
    assert "POST it to /api/v1/trace again with a resolution" in body["detail"]


def test_queries_and_keys_that_do_not_fit_are_not_kept(client_with, problem):
    client = client_with(tile_bytes=100)
    answer = client.post("/api/v1/trace", json={"text": TEXT, "resolution": 4}).json()
    assert answer["tiles"] == []
    problem(tile(client, answer["id"]), 404, "unknown-trace")


@pytest.mark.parametrize("n_times", [1, 20])
def test_the_events_of_a_pass_end_with_its_address(client, n_times):
    body = {"text": TEXT * n_times, "resolution": 4}
    events = events_of(client.post("/api/v1/trace", json=body, headers=EVENTS))
    assert [name for name, _ in events[:1] + events[-1:]] == ["progress", "end"]
    maps = [data for name, data in events if name == "map"]
    assert all(data["read"] <= data["tokens"][0] for data in maps)
    shares = [data["share"] for name, data in events if name == "progress"]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    trace = client.get(events[-1][1]["location"]).json()
    assert trace["id"] == events[-1][1]["id"]
    assert trace["resolution"] == 4
    assert tile(client, trace["id"]).status_code == 200


def test_the_maps_of_a_pass_come_while_it_is_read(client, monkeypatch):
    traces, looked = client.app.state.services.traces, threading.Event()
    solve = service.solve

    def watched(*given, on_map, **options):
        def look(*of_map):
            on_map(*of_map)
            looked.set()
            wait_for(lambda: not progresses[0]._maps, seconds=10)

        return solve(*given, on_map=look, **options)

    progresses = []
    compute = traces.compute

    def noted(job, left, progress=None, sent_as=None):
        progresses.append(progress)
        return compute(job, left, progress, sent_as)

    monkeypatch.setattr(service, "solve", watched)
    monkeypatch.setattr(traces, "compute", noted)
    body = {"text": TEXT * 21, "resolution": 4}
    events = events_of(client.post("/api/v1/trace", json=body, headers=EVENTS))
    assert looked.is_set()
    maps = [data for name, data in events if name == "map"]
    last = {(data["attention"], data["head"]): data for data in maps}
    assert len(last) == 8  # 2 layers of 4 heads
    trace = read_trace(ask(client, text=TEXT * 21, resolution=4).content)
    sent = np.frombuffer(base64.b64decode(last[PATH, 1]["mean"]), "<f4").reshape(4, 4)
    np.testing.assert_allclose(sent, trace[f"{PATH}.mean_map"][1], atol=1e-6)


def test_an_error_of_a_pass_is_an_event(client):
    body = {"text": TEXT, "queries": [900]}
    ((_, _), (name, data)) = events_of(client.post("/api/v1/trace", json=body, headers=EVENTS))
    assert (name, data["status"]) == ("error", 422)
    assert data["type"].endswith("unknown-position")


def test_marks_without_end_are_rejected_before_they_are_sorted(client_with, problem):
    text = "a" + "\u0301" * 2000
    answer = client_with().post("/api/v1/trace", json={"text": text, "resolution": 4})
    problem(answer, 422, "unreadable-text")


def test_a_long_text_is_a_miss_once_and_then_a_hit(client):
    metrics = client.app.state.services.metrics

    def counts():
        (hits,), (misses,) = (each.collect() for each in (metrics.cache_hits, metrics.cache_misses))
        return [each.samples[0].value for each in (hits, misses)]

    hits, misses = counts()
    for expected in ([hits, misses + 1], [hits + 1, misses + 1]):
        assert ask(client, text=TEXT * 3, resolution=3).status_code == 200
        assert counts() == expected


def test_a_long_text_that_takes_too_long_is_told_the_limit(client_with, problem):
    client = client_with(max_characters=3, long_seconds=1e-9)
    body = problem(ask(client, resolution=4), 504, "too-slow")
    assert "1e-09 s" in body["detail"]


def test_long_texts_are_read_one_after_the_other(client, monkeypatch):
    traces = client.app.state.services.traces
    begun, may_end, solve = [], threading.Event(), service.solve

    def held(checkpoint, jobs, *options, **named):
        begun.append(jobs[0].id)
        may_end.wait(20)
        return solve(checkpoint, jobs, *options, **named)

    monkeypatch.setattr(service, "solve", held)
    with ThreadPoolExecutor() as pool:
        try:
            answers = [pool.submit(ask, client, text=TEXT * n, resolution=5) for n in (4, 5)]
            wait_for(lambda: traces.long_texts._thread.statistics().tasks_waiting == 1, seconds=10)
            assert len(begun) == 1
        finally:
            may_end.set()
        assert [answer.result().status_code for answer in answers] == [200, 200]
    assert len(begun) == 2
