"""Client and AsyncClient against a real server: the same answers as plain numbers."""

import inspect
import socket
import subprocess
import sys
import time
from dataclasses import fields

import httpx
import numpy as np
import pytest

from headlight.client import (
    AsyncClient,
    Client,
    ConnectionFailed,
    Ended,
    InvalidRequest,
    Limit,
    Model,
    NotFound,
    OverLimit,
    ProblemError,
    Started,
    TimedOut,
    TokenWritten,
    Unavailable,
)
from headlight.model import tracing
from headlight.schemas import generation, traces
from headlight.schemas import models as cards
from headlight.schemas import server as server_schemas

TEXT = "The cat sat on the mat because it was tired."
WEIGHTS = "decoder.layers.{}.self_attention.weights"
SCORES = "decoder.layers.0.self_attention.scores"


def test_a_trace_holds_the_arrays_of_a_direct_computation(headlight, tiny):
    found = headlight.trace(TEXT, capture=["*.weights", SCORES, "*.expert_indices"])
    expected = tracing.trace(tiny, TEXT, capture=["*.weights", SCORES, "*.expert_indices"])
    assert list(found) == list(expected.tensors)
    assert found.tokens == expected.tokens
    for site, array in expected.tensors.items():
        assert found.tensors[site].axes == array.axes
        np.testing.assert_array_equal(found[site], array.data)
    assert found[SCORES][0, 0, 1] == -np.inf
    assert found["decoder.layers.1.experts.expert_indices"].dtype == np.int32
    assert (found.model, found.text, found.target, found.heads) == ("tiny", TEXT, None, None)
    assert found.timings["forward"] > 0


def test_options_go_with_the_question(headlight, tiny):
    off = {"kind": "heads_off", "heads": [1], "layer": 0}
    asked = {"capture": ["*.self_attention.*"], "layers": [0], "heads": [2, 1]}
    found = headlight.trace(TEXT, model="tiny", edits=[off], analyses=["next_token"], **asked)
    assert found.heads == (2, 1)
    assert found[WEIGHTS.format(0)].shape[0] == 2
    assert not found["decoder.layers.0.self_attention.context"][1].any()
    assert all(".layers.0." in site for site in found)
    assert list(found.analyses) == ["next_token"]


def test_numbers_sent_in_16_bits_come_out_as_floats_that_sum_to_1(headlight):
    exact, small = headlight.trace(TEXT), headlight.trace(TEXT, dtype="uint16")
    site = WEIGHTS.format(1)
    assert small[site].dtype == np.float32
    np.testing.assert_allclose(small[site], exact[site], atol=8e-6)
    np.testing.assert_allclose(small[site].sum(-1), 1, atol=1e-3)


def test_what_was_left_out_of_a_triangle_is_in_the_arrays(headlight):
    asked = {"capture": ["*.weights", SCORES], "analyses": ["rollout"]}
    whole, triangle = headlight.trace(TEXT, **asked), headlight.trace(TEXT, **asked, triangle=True)
    for site in whole:
        np.testing.assert_array_equal(triangle[site], whole[site])
    for name, array in whole.analyses["rollout"].arrays.items():
        np.testing.assert_array_equal(triangle.analyses["rollout"][name], array.data)


def test_analyses_are_arrays_with_what_stands_beside_them(headlight):
    found = headlight.trace(TEXT, analyses=["next_token", "head_labels"]).analyses
    n_tokens = len(found["next_token"]["texts"])
    assert found["next_token"]["probabilities"].shape == (n_tokens, 20)
    assert found["next_token"].arrays["ids"].axes == ("query", "rank")
    assert "induction" in found["head_labels"]["labels"]
    with pytest.raises(KeyError, match="there is no 'odds'; there is ids, probabilities, texts"):
        found["next_token"]["odds"]


def test_a_translator_reads_two_texts(headlight):
    found = headlight.trace("the cat", model="translator", target="a small light")
    assert found.target == "a small light"
    assert "".join(token.text for token in found.target_tokens or ()).endswith("a small light")


def test_what_the_server_tells_of_itself_is_plain_data(headlight):
    models = headlight.models()
    assert models.default == "tiny"
    assert models["tiny"] == headlight.model("tiny")
    assert models["tiny"].moe.top_k == 2
    assert models["dense"].moe is None
    assert models["tiny"].sites[0].axes == ("query", "d_model")
    with pytest.raises(KeyError, match="there is no model 'gpt'; there is dense, filler"):
        models["gpt"]
    limit = headlight.limits()["max_characters"]
    assert (limit.value, limit.unit, limit.env) == (
        4000,
        "characters",
        "HEADLIGHT_MAX_CHARACTERS",
    )
    assert "headlight_" in headlight.metrics()
    assert headlight.is_alive()
    assert headlight.is_ready()


def test_tokens_are_those_of_the_tokenizer(headlight, tiny):
    assert headlight.tokenize(TEXT) == tuple(tiny.tokenizer.encode(TEXT))


def test_an_encoding_of_positions_is_arrays(headlight):
    found = headlight.positional(8, scheme="rotary", width=4)
    assert (found.scheme, found.length, found.width, found.heads) == ("rotary", 8, 4, None)
    np.testing.assert_allclose(found["cos"], np.cos(found["angles"]), atol=1e-6)
    assert headlight.positional(8, model="tiny")["encoding"].shape == (8, 16)


def test_a_text_is_written_on_event_by_event(headlight):
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
    until = time.monotonic() + 10
    while server.services.streams.n_open and time.monotonic() < until:
        time.sleep(0.01)
    assert server.services.streams.n_open == 0


def test_what_is_refused_is_an_exception_that_says_why(headlight):
    with pytest.raises(
        NotFound, match=r"there is no model 'gpt'.* \(404 unknown-model\)"
    ) as raised:
        headlight.trace(TEXT, model="gpt")
    assert raised.value.members["available"]
    with pytest.raises(OverLimit) as over:
        headlight.trace("a" * 4001)
    assert (over.value.limit, over.value.actual) == (4000, 4001)
    with pytest.raises(InvalidRequest, match="surrogate"):
        headlight.trace("a\udcff")
    with pytest.raises(InvalidRequest, match="there is no layer 9"):
        list(headlight.generate(TEXT, n_tokens=1, layers=[9]))
    with pytest.raises(NotFound):
        headlight.model("../limits")


def test_a_place_where_nobody_answers_is_named(make):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    headlight = make(f"http://127.0.0.1:{port}")
    with pytest.raises(
        ConnectionFailed, match=f"nothing answers at http://127.0.0.1:{port}; `head"
    ):
        headlight.models()
    assert not headlight.is_ready()


def test_a_server_that_says_nothing_is_given_up(make):
    with socket.create_server(("127.0.0.1", 0)) as mute:
        headlight = make(f"http://127.0.0.1:{mute.getsockname()[1]}", timeout=0.2)
        with pytest.raises(TimedOut, match="did not answer in time"):
            headlight.models()


def test_an_address_has_to_be_one(make):
    with pytest.raises(ValueError, match="'localhost:8000' is no address of a server"):
        make("localhost:8000")


def test_a_trace_can_be_had_again_by_its_id(make, serving, settings):
    with serving(settings.model_copy(update={"cache_bytes": 1_000_000})) as keeping:
        headlight = make(keeping.url)
        first = headlight.trace(TEXT, capture=["*.weights"])
        again = headlight.trace_by_id(first.id)
        np.testing.assert_array_equal(again[WEIGHTS.format(0)], first[WEIGHTS.format(0)])
        assert headlight.trace_by_id(first.id) is again
        small = headlight.trace_by_id(first.id, dtype="uint16", triangle=True)
        np.testing.assert_allclose(small[WEIGHTS.format(0)], first[WEIGHTS.format(0)], atol=8e-6)
        with pytest.raises(NotFound, match="is not kept here; ask for it again"):
            headlight.trace_by_id("0" * 32)


def test_a_trace_that_is_known_is_not_sent_again(answering, client):
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


def refusal(status=503, kind="queue-full", **headers):
    document = {"type": f"urn:headlight:problem:{kind}", "status": status, "detail": "wait"}
    return httpx.Response(status, json=document, headers=headers)


def test_a_busy_server_is_asked_again_when_it_says_so(answering):
    limits = httpx.Response(200, json={})
    headlight, asked = answering(
        refusal(429, **{"Retry-After": "0"}), refusal(**{"Retry-After": "0"}), limits
    )
    assert headlight.limits() == {}
    assert len(asked) == 3


def test_it_is_asked_no_more_often_than_that(answering):
    headlight, asked = answering(*[refusal(**{"Retry-After": "0"}) for _ in range(9)], retries=3)
    with pytest.raises(Unavailable) as raised:
        headlight.limits()
    assert len(asked) == 4
    assert raised.value.retry_after == 0


@pytest.mark.parametrize(
    ("status", "headers"),
    [(503, {}), (504, {"Retry-After": "0"}), (503, {"Retry-After": "3600"})],
    ids=["says-no-time", "too-slow", "wants-an-hour"],
)
def test_what_does_not_get_better_soon_is_not_asked_again(answering, status, headers):
    headlight, asked = answering(refusal(status, **headers))
    with pytest.raises(ProblemError, match="wait"):
        headlight.limits()
    assert len(asked) == 1


def test_a_stream_is_asked_for_again_as_well(answering):
    end = 'event: end\ndata: {"reason": "length", "n_tokens": 0, "text": ""}\n\n'
    headlight, asked = answering(refusal(**{"Retry-After": "0"}), httpx.Response(200, text=end))
    assert list(headlight.generate("a", n_tokens=1)) == [
        Ended(reason="length", n_tokens=0, text="")
    ]
    assert len(asked) == 2


def test_the_key_and_other_headers_go_with_every_question(answering):
    headlight, asked = answering(
        httpx.Response(200, json={}), api_key="secret", headers={"X-Team": "b"}
    )
    headlight.limits()
    assert asked[0].headers["Authorization"] == "Bearer secret"
    assert asked[0].headers["X-Team"] == "b"


def test_without_a_key_the_one_of_the_environment_goes_along(answering, monkeypatch):
    monkeypatch.setenv("HEADLIGHT_API_KEY", "of-the-environment")
    for given, sent in ((None, "Bearer of-the-environment"), ("mine", "Bearer mine"), ("", None)):
        headlight, asked = answering(httpx.Response(200, json={}), api_key=given)
        headlight.limits()
        assert asked[0].headers.get("Authorization") == sent


@pytest.mark.parametrize("key", ["wröng", "a b", "a\r\nX-B: c"])
def test_a_key_that_cannot_be_sent_is_refused_and_not_repeated(make, monkeypatch, key):
    with pytest.raises(ValueError, match="the API key that was given cannot be sent") as caught:
        make(api_key=key)
    assert key not in str(caught.value)
    monkeypatch.setenv("HEADLIGHT_API_KEY", key)
    with pytest.raises(ValueError, match="the API key in HEADLIGHT_API_KEY cannot be sent"):
        make()


def test_the_client_loads_neither_pytorch_nor_the_server():
    code = "import sys, headlight.client; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = set(found.stdout.split())
    assert (
        loaded & {"torch", "fastapi", "starlette", "plotly", "headlight.model.transformer"} == set()
    )
    rooms = {name.split(".")[1] for name in loaded if name.startswith("headlight.")}
    assert rooms == {"client", "model", "schemas"}


NAMES = {"healthz": "is_alive", "readyz": "is_ready"}


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
        ("tokenize", traces.TokenizeRequest),
        ("generate", generation.GenerateRequest),
        ("positional", traces.PositionalRequest),
    ],
)
def test_a_method_takes_what_its_request_takes(method, schema):
    taken = [inspect.signature(getattr(kind, method)).parameters for kind in (Client, AsyncClient)]
    assert list(taken[0].values()) == list(taken[1].values())
    assert set(taken[0]) - {"self"} == set(schema.model_fields)


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (Model, cards.ModelAnswer),
        (Limit, server_schemas.LimitAnswer),
        (Started, generation.Started),
        (TokenWritten, generation.TokenWritten),
        (Ended, generation.Ended),
    ],
)
def test_an_answer_has_the_members_that_the_server_sends(kind, schema):
    assert {field.name for field in fields(kind)} == set(schema.model_fields)
