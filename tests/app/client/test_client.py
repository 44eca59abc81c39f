"""Client and AsyncClient against a real server: the same answers as plain numbers."""

import inspect
import json
import socket
import subprocess
import sys

import httpx
import numpy as np
import pytest

from headlight.client import (
    AsyncClient,
    Client,
    ConnectionFailed,
    Ended,
    InvalidRequest,
    NotFound,
    OverLimit,
    ProblemError,
    Started,
    TimedOut,
    TokenWritten,
    Unavailable,
    endpoints,
    named_array,
)
from headlight.model import tracing
from headlight.schemas import generation, traces
from tests.app.connections import wait_for

TEXT = "The cat sat on the mat because it was tired."
WEIGHTS = "decoder.layers.{}.self_attention.weights"
SCORES = "decoder.layers.0.self_attention.scores"


def test_a_trace_holds_the_arrays_of_a_direct_computation(headlight, tiny):
    trace = headlight.trace(TEXT, capture=["*.weights", SCORES, "*.expert_indices"])
    expected = tracing.trace(tiny, TEXT, capture=["*.weights", SCORES, "*.expert_indices"])
    assert list(trace) == list(expected.tensors)
    assert trace.tokens == expected.tokens
    for site, array in expected.tensors.items():
        assert trace.tensors[site].axes == array.axes
        np.testing.assert_array_equal(trace[site], array.data)
    assert trace[SCORES][0, 0, 1] == -np.inf
    assert trace["decoder.layers.1.experts.expert_indices"].dtype == np.int32
    assert (trace.model, trace.text, trace.target, trace.heads) == ("tiny", TEXT, None, None)
    assert trace.timings["forward"] > 0
    assert len(repr(trace).splitlines()) == 1 + len(trace.tensors)


def test_nan_is_an_error_that_names_the_argument(headlight):
    with pytest.raises(ValueError, match=r"^layers is \[nan\]; JSON holds finite numbers only$"):
        headlight.trace(TEXT, layers=np.nan)


def test_options_are_sent_with_the_text(headlight):
    off = {"kind": "heads_off", "heads": [1], "layer": 0}
    options = {"capture": ["*.self_attention.*"], "layers": [0], "heads": [2, 1]}
    trace = headlight.trace(TEXT, model="tiny", edits=[off], analyses=["next_token"], **options)
    assert trace.heads == (2, 1)
    assert trace[WEIGHTS.format(0)].shape[0] == 2
    assert not trace["decoder.layers.0.self_attention.context"][1].any()
    assert all(".layers.0." in site for site in trace)
    assert list(trace.analyses) == ["next_token"]


def test_arguments_may_be_numpy_or_a_single_item(headlight):
    trace = headlight.trace(
        TEXT, heads=np.int64(3), layers=np.array([0, 1]), capture="*.weights", analyses="rollout"
    )
    assert trace.heads == (3,)
    assert list(trace) == [WEIGHTS.format(0), WEIGHTS.format(1)]
    off = {"kind": "heads_off", "heads": np.array([1])}
    forced = np.array([5, 6], dtype=np.int32)
    assert headlight.trace(TEXT, edits=off).id == headlight.trace(TEXT, edits=[off]).id
    events = list(headlight.generate(TEXT, n_tokens=np.int64(2), forced=forced, heads=np.uint8(1)))
    assert [event.id for event in events[1:-1]] == [5, 6]
    assert headlight.positional(np.int64(8), model="tiny").length == 8


def test_an_analysis_holds_arrays_and_metadata(headlight):
    analyses = headlight.trace(TEXT, analyses=["next_token", "head_labels"]).analyses
    n_tokens = len(analyses["next_token"]["texts"])
    assert analyses["next_token"]["probabilities"].shape == (n_tokens, 20)
    assert analyses["next_token"].arrays["ids"].axes == ("query", "rank")
    assert "induction" in analyses["head_labels"]["labels"]
    assert set(dict(analyses["next_token"])) == {"ids", "probabilities", "texts"}
    assert len(analyses["next_token"]) == 3
    with pytest.raises(KeyError, match=r"analyses=\['rollout'\]; the analyses are .*head_labels"):
        analyses["rollout"]
    with pytest.raises(
        KeyError, match="there is no 'odds'; the names are ids, probabilities, texts"
    ):
        analyses["next_token"]["odds"]


def test_a_text_is_continued_event_by_event(headlight):
    start, *tokens, end = headlight.generate(TEXT, n_tokens=3, seed=1, heads=[0])
    assert isinstance(start, Started)
    assert isinstance(end, Ended)
    assert (start.model, end.n_tokens) == ("tiny", 3)
    assert all(isinstance(token, TokenWritten) for token in tokens)
    assert [token.position for token in tokens] == [len(start.tokens) + i for i in range(3)]
    assert tokens[0].attention.data.shape == (2, 1, len(start.tokens))
    np.testing.assert_allclose(tokens[0].attention.data.sum(-1), 1, atol=1e-5)
    assert tokens[0].experts[0].layer == 1
    assert len(tokens[0].alternatives) == 10


def test_leaving_the_loop_closes_the_stream(headlight, server):
    for event in headlight.generate(TEXT, n_tokens=30):
        if isinstance(event, TokenWritten):
            break
    wait_for(lambda: server.services.streams.n_open == 0)


def test_an_experiment_is_described_and_run(headlight):
    names = [each.id for each in headlight.experiments().experiments]
    assert headlight.experiment_description(names[0]).id == names[0]
    result = headlight.experiment("by_hand", example="animal", keys=np.eye(4)[:, :2])
    assert result.parameters["example"] == "animal"
    assert result.arrays["weights"].axes == ("query", "key")
    assert result["weights"].sum() == pytest.approx(1)
    assert result["key"].tolist() == ["animal", "street", "it", "tired"]
    causal = headlight.experiment("by_hand", is_causal=True)
    assert np.isnan(causal["scores"][0, 1:]).all()
    with pytest.raises(KeyError, match="the arrays are queries"):
        result["colour"]


def test_an_experiment_is_streamed_frame_by_frame(headlight):
    sizes = {"steps": 2, "length": 2, "d_model": 8, "n_layers": 1, "n_heads": 1, "batch": 4}
    start, *frames, end = headlight.experiment_frames("learn_task", **sizes)
    assert start.parameters["steps"] == 2
    steps = [named_array(frame.arrays["frame"]).data.tolist() for frame in frames]
    assert steps == [[0], [1], [2]]
    assert end.n_frames == 3


def test_an_error_of_the_server_is_an_exception_of_its_kind(headlight):
    with pytest.raises(NotFound) as raised:
        headlight.trace(TEXT, model="gpt")
    assert raised.value.kind == "unknown-model"
    assert raised.value.members["available"]
    with pytest.raises(OverLimit) as over:
        headlight.trace("a" * 8001)
    assert (over.value.limit, over.value.actual) == (8000, 8001)
    with pytest.raises(InvalidRequest):
        headlight.trace("a\udcff")
    with pytest.raises(InvalidRequest) as invalid:
        list(headlight.generate(TEXT, n_tokens=1, layers=[9]))
    assert invalid.value.kind == "unknown-layer"
    with pytest.raises(NotFound):
        headlight.model("../limits")


def test_an_unreachable_server_is_named(make):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    headlight = make(f"http://127.0.0.1:{port}")
    with pytest.raises(ConnectionFailed, match=f"http://127.0.0.1:{port}"):
        headlight.models()
    assert not headlight.is_ready()


def test_a_silent_server_times_out(make):
    with socket.create_server(("127.0.0.1", 0)) as mute:
        headlight = make(f"http://127.0.0.1:{mute.getsockname()[1]}", timeout=0.2)
        with pytest.raises(TimedOut):
            headlight.models()


def test_an_address_needs_a_scheme(make):
    with pytest.raises(ValueError, match="localhost:8000"):
        make("localhost:8000")


def test_a_trace_is_available_by_its_id(make, serving, settings):
    with serving(settings.model_copy(update={"cache_bytes": 1_000_000})) as keeping:
        headlight = make(keeping.url)
        first = headlight.trace(TEXT, capture=["*.weights"])
        again = headlight.trace_by_id(first.id)
        np.testing.assert_array_equal(again[WEIGHTS.format(0)], first[WEIGHTS.format(0)])
        assert headlight.trace_by_id(first.id) is again
        small = headlight.trace_by_id(first.id, dtype="uint16", triangle=True)
        np.testing.assert_allclose(small[WEIGHTS.format(0)], first[WEIGHTS.format(0)], atol=8e-6)
        with pytest.raises(NotFound):
            headlight.trace_by_id("0" * 32)


def test_a_kept_trace_is_not_sent_again(answering, client):
    asked = {"accept": "application/x-safetensors"}
    content = client.post("/api/v1/trace", json={"text": TEXT}, headers=asked).content
    sent = httpx.Response(200, content=content, headers={"ETag": '"abc"'})
    headlight, asked = answering(sent, httpx.Response(304), httpx.Response(200, content=content))
    first = headlight.trace_by_id("1f/..")
    assert first.text == TEXT
    assert headlight.trace_by_id("1f/..") is first
    assert headlight.trace_by_id("1f/..", dtype="uint16") is not first
    assert [request.headers.get("If-None-Match") for request in asked] == [None, '"abc"', None]
    assert asked[0].url.raw_path == b"/api/v1/traces/1f%2F.."


def busy(status=503, kind="queue-full", **headers):
    document = {"type": f"urn:headlight:problem:{kind}", "status": status, "detail": "wait"}
    return httpx.Response(status, json=document, headers=headers)


def test_a_busy_server_is_tried_again_after_retry_after(answering):
    limits = httpx.Response(200, json={})
    headlight, asked = answering(
        busy(429, **{"Retry-After": "0"}), busy(**{"Retry-After": "0"}), limits
    )
    assert headlight.limits() == {}
    assert len(asked) == 3


def test_the_number_of_retries_is_bounded(answering):
    headlight, asked = answering(*[busy(**{"Retry-After": "0"}) for _ in range(9)], retries=3)
    with pytest.raises(Unavailable) as raised:
        headlight.limits()
    assert len(asked) == 4
    assert raised.value.retry_after == 0


@pytest.mark.parametrize(
    ("status", "headers"),
    [(503, {}), (504, {"Retry-After": "0"}), (503, {"Retry-After": "3600"})],
    ids=["no-retry-after", "too-slow", "an-hour"],
)
def test_other_errors_and_long_waits_are_not_retried(answering, status, headers):
    headlight, asked = answering(busy(status, **headers))
    with pytest.raises(ProblemError):
        headlight.limits()
    assert len(asked) == 1


def test_a_stream_is_retried_too(answering):
    end = 'event: end\ndata: {"reason": "length", "n_tokens": 0, "text": ""}\n\n'
    headlight, asked = answering(busy(**{"Retry-After": "0"}), httpx.Response(200, text=end))
    assert list(headlight.generate("a", n_tokens=1)) == [
        Ended(reason="length", n_tokens=0, text="")
    ]
    assert len(asked) == 2


def test_every_request_carries_the_key_and_the_headers(answering):
    headlight, asked = answering(
        httpx.Response(200, json={}), api_key="secret", headers={"X-Team": "b"}
    )
    headlight.limits()
    assert asked[0].headers["Authorization"] == "Bearer secret"
    assert asked[0].headers["X-Team"] == "b"


def test_the_key_of_the_environment_is_the_default(answering, monkeypatch):
    monkeypatch.setenv("HEADLIGHT_API_KEY", "of-the-environment")
    for given, sent in ((None, "Bearer of-the-environment"), ("mine", "Bearer mine"), ("", None)):
        headlight, asked = answering(httpx.Response(200, json={}), api_key=given)
        headlight.limits()
        assert asked[0].headers.get("Authorization") == sent


@pytest.mark.parametrize("key", ["wröng", "a b", "a\r\nX-B: c"])
def test_an_unsendable_key_is_rejected_without_repeating_it(make, monkeypatch, key):
    with pytest.raises(ValueError, match="API key that was given") as caught:
        make(api_key=key)
    assert key not in str(caught.value)
    monkeypatch.setenv("HEADLIGHT_API_KEY", key)
    with pytest.raises(ValueError, match="API key in HEADLIGHT_API_KEY"):
        make()


def test_the_client_loads_neither_pytorch_nor_the_server():
    code = "import sys, headlight.client; print(*sys.modules)"
    process = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    loaded = set(process.stdout.split())
    assert (
        loaded & {"torch", "fastapi", "starlette", "plotly", "headlight.model.transformer"} == set()
    )
    rooms = {name.split(".")[1] for name in loaded if name.startswith("headlight.")}
    assert rooms == {"analyses", "client", "distribution", "forms", "model", "schemas"}


NAMES = {
    "healthz": "is_alive",
    "readyz": "is_ready",
    "experiment": "experiment_description",
    "run_experiment": "experiment",
}


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_every_operation_of_the_api_has_a_method(kind, client):
    paths = client.get("/openapi.json").json()["paths"]
    operations = {
        operation["operationId"] for path in paths.values() for operation in path.values()
    }
    assert len(operations) >= 9
    methods = {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if name[0] != "_"}
    assert {NAMES.get(name, name) for name in operations} <= methods


@pytest.mark.parametrize(
    ("method", "schema"),
    [
        ("trace", traces.TraceRequest),
        ("traces", traces.TracesRequest),
        ("tokenize", traces.TokenizeRequest),
        ("generate", generation.GenerateRequest),
        ("positional", traces.PositionalRequest),
    ],
)
def test_a_method_takes_what_its_request_takes(method, schema):
    taken = [inspect.signature(getattr(kind, method)).parameters for kind in (Client, AsyncClient)]
    assert list(taken[0].values()) == list(taken[1].values())
    assert set(taken[0]) - {"self"} == set(schema.model_fields)


def test_a_text_of_another_script_is_sent_without_escapes():
    text = "ж" * 1000 + "\ud800"  # a lone surrogate is one that UTF-8 does not have
    body = endpoints.trace(text).request()["content"]
    assert len(body) < 2100
    assert json.loads(body)["text"] == text


def test_why_says_the_lines_of_a_loaded_model_and_shows_the_page(headlight, tiny):
    why = headlight.why(TEXT)
    assert repr(why) == repr(tiny.why(TEXT))
    assert "word_show=thread" in why.show().html
    with pytest.raises(InvalidRequest, match="is not one token"):
        headlight.why(TEXT, token="no such token at all")
