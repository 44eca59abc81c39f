"""GET and POST /api/v1/experiments: descriptions, results, events, and requests that are wrong."""

import asyncio
import json
import time
from pathlib import Path

import httpx
import numpy as np
import pytest
from pydantic import TypeAdapter

from headlight.model.cancellation import check
from headlight.model.experiments.experiment import Cost, Experiment, Parameters, Quantity
from headlight.model.experiments.experiment_registry import EXPERIMENTS
from headlight.model.experiments.shipped import shipped
from headlight.routes import experiments as routes
from headlight.schemas.experiments import ExperimentEvent, ExperimentResult
from headlight.serving.experiment_runs import MAX_QUEUED, Experiments
from headlight.settings import MAX_EXPERIMENTS
from tests.app.connections import wait_for
from tests.app.reading import events_of

PATH = "/api/v1/experiments"
EVENTS = {"Accept": "text/event-stream"}
JSON = {"Accept": "application/json"}
TINY = {"steps": 3, "length": 3, "d_model": 8, "n_heads": 1, "n_layers": 1, "batch": 4}


class Endless:
    """An experiment whose second frame never comes; it counts the runs that have not ended."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.n_running = 0

    def run(self, _):
        self.n_running += 1
        try:
            yield {"frame": np.array([0])}
            while True:
                check()
                time.sleep(0.005)
        finally:
            self.n_running -= 1

    def experiment(self):
        made = Experiment(
            id="endless",
            order=0,
            group="Time",
            tab="Endless",
            title="Endless",
            parameters=Parameters,
            run=self.run,
            cost=lambda _: Cost(seconds=self.seconds, megabytes=1),
            way_out="ask for less",
            is_streamed=True,
        )
        vars(made)["quantities"] = {"frame": Quantity("frame", "Frames.")}
        return made


@pytest.fixture
def endless(monkeypatch):
    """Return a function that makes the experiment `endless` known, with an estimated time."""

    def make(seconds=10.0):
        made = Endless(seconds)
        known = {**EXPERIMENTS, "endless": made.experiment()}
        monkeypatch.setattr(routes, "known_experiments", lambda: known)
        return made

    return make


# --- descriptions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_description_has_parameters_arrays_and_sources(client, name):
    description = client.get(f"{PATH}/{name}").json()
    experiment = EXPERIMENTS[name]
    assert description["see"] == experiment.see
    assert description["parameters"]["properties"].keys() == set(experiment.parameters.model_fields)
    assert description["arrays"].keys() == set(experiment.quantities)
    assert all(source["url"].startswith("https://") for source in description["sources"])


@pytest.mark.parametrize("method", ["get", "post"])
def test_an_unknown_experiment_is_a_404_that_names_the_known_ones(client, problem, method):
    body = {"json": {}} if method == "post" else {}
    response = getattr(client, method)(f"{PATH}/alchemy", **body)
    assert problem(response, 404, "unknown-experiment")["available"] == list(EXPERIMENTS)


def test_a_run_of_a_model_that_is_not_installed_says_how_it_is(client, problem, monkeypatch):
    monkeypatch.setattr("headlight.model.checkpoint.loading.ZOO", Path("nowhere"))
    shipped.cache_clear()
    response = client.post(f"{PATH}/thinking", json={})
    assert "'sums-imitation'" in problem(response, 404, "unknown-model")["detail"]


# --- results --------------------------------------------------------------------------------------


def test_a_result_is_that_of_the_model_package(client):
    response = client.post(f"{PATH}/scaling", json={"width": 8, "seed": 3})
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"
    result = ExperimentResult.model_validate_json(response.content)
    expected = EXPERIMENTS["scaling"].result({"width": 8, "seed": 3})
    assert result.arrays.keys() == expected.keys()
    for name, array in expected.items():
        sent = result.arrays[name]
        assert (sent.axes, sent.shape) == (list(array.axes), list(array.data.shape))
        np.testing.assert_array_equal(np.array(sent.data), array.data)


def test_masked_scores_are_null_and_booleans_and_texts_stay_what_they_are(client):
    arrays = client.post(f"{PATH}/by_hand", json={"is_causal": True}).json()["arrays"]
    assert arrays["scores"]["data"][0][1:] == [None] * 5
    assert (arrays["key"]["dtype"], arrays["key"]["data"][0]) == ("string", "Life")
    assert arrays["divisor"]["shape"] == []
    arrays = client.post(f"{PATH}/minhash", json={}).json()["arrays"]
    assert (arrays["is_equal"]["dtype"], type(arrays["is_equal"]["data"][0])) == ("bool", bool)


def test_frames_joined_are_the_result(client):
    events = events_of(client.post(f"{PATH}/learn_task", json=TINY, headers=EVENTS))
    assert [name for name, _ in events] == ["start", *["frame"] * 4, "end"]
    adapter = TypeAdapter(ExperimentEvent)
    for name, data in events:
        adapter.validate_python({"event": name, "data": data})
    whole = client.post(f"{PATH}/learn_task", json=TINY, headers=JSON).json()
    assert events[0][1] == {"experiment": "learn_task", "parameters": whole["parameters"]}
    frames = [data for name, data in events if name == "frame"]
    assert [frame["index"] for frame in frames] == [0, 1, 2, 3]
    accuracy = [number for frame in frames for number in frame["arrays"]["accuracy"]["data"]]
    assert accuracy == whole["arrays"]["accuracy"]["data"]
    assert events[-1][1] == {"n_frames": 4}


@pytest.mark.parametrize(
    ("name", "headers", "media_type"),
    [
        ("learn_task", {}, "application/json"),
        ("learn_task", EVENTS, "text/event-stream"),
        ("by_hand", {}, "application/json"),
        ("by_hand", EVENTS, "text/event-stream"),
    ],
)
def test_the_accept_header_decides_between_json_and_events(client, name, headers, media_type):
    body = TINY if name == "learn_task" else {}
    response = client.post(f"{PATH}/{name}", json=body, headers={"Accept": "*/*", **headers})
    assert response.headers["content-type"].split(";")[0] == media_type


# --- wrong requests -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "body", "field", "message"),
    [
        ("scaling", {"width": 0}, "width", "at least 1 and at most 2048"),
        (
            "scaling",
            {"width": "8"},
            "width",
            "'8' is not a whole number; it must be at least 1 and at most 2048",
        ),
        ("scaling", {"depth": 1}, "depth", "unknown member; the members are seed, "),
        ("depth", {"n_heads": 3}, "body", "n_heads (3) must divide d_model (32)"),
    ],
)
def test_a_wrong_parameter_is_named(client, problem, name, body, field, message):
    details = problem(client.post(f"{PATH}/{name}", json=body), 422, "invalid-request")
    assert details["errors"][0]["field"] == field
    assert message in details["errors"][0]["message"]


def test_a_run_that_would_take_too_long_names_limit_and_actual(client, problem):
    body = {"steps": 1000, "batch": 64, "d_model": 48, "n_layers": 3, "length": 12}
    details = problem(client.post(f"{PATH}/learn_task", json=body), 422, "too-many-seconds")
    assert details["limit"] == 60 < details["actual"]
    assert "choose fewer steps" in details["detail"]


# --- places, time and disconnects -----------------------------------------------------------------


def open_runs(server, n, **options):
    """Open streams of `endless` that have sent their first frame."""
    streams = []
    for _ in range(n):
        http = httpx.Client(timeout=30, headers=EVENTS)
        stream = http.stream("POST", f"{server.url}{PATH}/endless", json={})
        response = stream.__enter__()
        assert response.status_code == 200
        lines = response.iter_lines()
        next(lines)
        streams.append((stream, lines))  # a lost iterator would close its stream
    return streams


def close(streams):
    for stream, _ in streams:
        stream.__exit__(None, None, None)


def test_long_runs_need_a_place_and_short_ones_do_not(server, endless, problem):
    made = endless(seconds=10)
    most = MAX_EXPERIMENTS + MAX_QUEUED
    streams = open_runs(server, MAX_EXPERIMENTS)
    try:
        server.services.experiments.long.n_open = most  # as if the queue were full
        response = httpx.post(f"{server.url}{PATH}/endless", json={})
        server.services.experiments.long.n_open = MAX_EXPERIMENTS
        details = problem(response, 503, "too-many-experiments")
        assert response.headers["retry-after"] == "1"
        assert (details["limit"], details["actual"]) == (most, most)
        assert httpx.post(f"{server.url}{PATH}/by_hand", json={}).status_code == 200
        trace = httpx.post(f"{server.url}/api/v1/trace", json={"text": "the cat"}, timeout=30)
        assert trace.status_code == 200
    finally:
        close(streams)
    wait_for(lambda: made.n_running == 0 and server.services.experiments.long.n_open == 0)


def test_a_third_long_run_waits_and_moves_up_when_another_ends(server, endless):
    made = endless(seconds=10)
    running = open_runs(server, MAX_EXPERIMENTS)
    waiting = open_runs(server, 2)
    try:
        events = [lines for _, lines in waiting]
        assert [next(lines) for lines in events] == ['data: {"ahead":1}', 'data: {"ahead":2}']
        assert made.n_running == MAX_EXPERIMENTS
        close(waiting[:1])  # one that gives up lets the others move up
        assert [next(events[1]) for _ in range(3)][1:] == ["event: waiting", 'data: {"ahead":1}']
        close(running[:1])
        assert [next(events[1]) for _ in range(2)][1] == "event: start"
        assert made.n_running == MAX_EXPERIMENTS
    finally:
        close([*running[1:], *waiting[1:]])
    wait_for(lambda: made.n_running == 0 and server.services.experiments.long.n_open == 0)


def test_waiting_does_not_count_as_computing(endless):
    made = endless(seconds=10)

    async def scenario():
        experiments = Experiments(1, 0.3)
        with experiments.run(made.experiment(), Parameters()) as first:
            await first.frame()
            with experiments.run(made.experiment(), Parameters()) as second:
                assert second.is_waiting
                await asyncio.sleep(0.4)
                first.close()
                experiments._turns.give_back(first._turn)
                await second.begin()
                assert not second.is_waiting
                frame = await second.frame()
                experiments._turns._n_taken += 1  # which the block of the first gives back
        return frame

    assert json.loads(asyncio.run(scenario()))["index"] == 0


def test_a_json_answer_waits_for_its_turn_too(server, endless):
    made = endless(seconds=10)
    streams = open_runs(server, MAX_EXPERIMENTS)
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{server.url}{PATH}/endless", json={}, headers=JSON, timeout=0.5)
    assert made.n_running == MAX_EXPERIMENTS
    wait_for(lambda: server.services.experiments.long.n_open == MAX_EXPERIMENTS)
    close(streams)
    wait_for(lambda: made.n_running == 0 and server.services.experiments.long.n_open == 0)


def test_a_client_that_leaves_ends_the_run(server, endless):
    made = endless()
    streams = open_runs(server, 1)
    wait_for(lambda: made.n_running == 1)
    close(streams)
    wait_for(lambda: made.n_running == 0)
    wait_for(lambda: server.services.experiments.long.n_open == 0)


def test_a_run_ends_with_its_block_even_between_two_frames(endless):
    made = endless()

    async def scenario():
        with Experiments(1, 60).run(made.experiment(), Parameters()) as run:
            await run.frame()
            assert made.n_running == 1
        assert made.n_running == 0
        return run

    assert asyncio.run(scenario())


def test_a_client_that_leaves_before_a_json_answer_ends_the_run(server, endless):
    made = endless()
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{server.url}{PATH}/endless", json={}, headers=JSON, timeout=0.5)
    wait_for(lambda: made.n_running == 0)
    wait_for(lambda: server.services.experiments.long.n_open == 0)


def test_a_run_that_takes_too_long_is_stopped(client, endless, problem, monkeypatch):
    made = endless()
    monkeypatch.setattr(client.app.state.services.experiments, "seconds", 0.2)
    response = client.post(f"{PATH}/endless", json={}, headers=JSON)
    assert "ask for less" in problem(response, 504, "too-slow")["detail"]
    *_, (name, data) = events_of(client.post(f"{PATH}/endless", json={}, headers=EVENTS))
    assert (name, data["type"]) == ("error", "urn:headlight:problem:too-slow")
    assert made.n_running == 0


def test_an_error_in_an_experiment_ends_its_stream_with_an_event(client, monkeypatch):
    def fail(_):
        yield {"frame": np.array([0])}
        raise RuntimeError("a secret of the machine")

    made = Endless(1)
    made.run = fail
    known = {"endless": made.experiment()}
    monkeypatch.setattr(routes, "known_experiments", lambda: known)
    *_, (name, data) = events_of(client.post(f"{PATH}/endless", json={}, headers=EVENTS))
    assert (name, data["status"]) == ("error", 500)
    assert "secret" not in json.dumps(data)
