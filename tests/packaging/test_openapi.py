"""The committed description of the API is that of the code, and its examples are true.

`make openapi` runs this file with HEADLIGHT_RENEW_OPENAPI set: then what is asked here is written
to `app/api_examples.json` and `app/openapi.json` instead of compared with them.
"""

import json
import os
import re
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import jsonschema_rs
import numpy as np
import pytest
from fastapi.testclient import TestClient

from headlight.main import EXAMPLES, create_app, examples, operations_of
from headlight.problems import Problem
from headlight.settings import Settings
from tests.app.conftest import wait_until_ready
from tests.app.reading import events_of

RENEW = "HEADLIGHT_RENEW_OPENAPI" in os.environ
DOCUMENT = EXAMPLES.with_name("openapi.json")
STALE = "the API is described in another way than app/openapi.json has it: run `make openapi`"
SETTINGS = Settings(device="cpu", cache_bytes=10_000_000, memory_bytes=8_000_000_000)
JSON, EVENTS, PROBLEM = "application/json", "text/event-stream", "application/problem+json"
TEXT = "The cat"


@dataclass(frozen=True)
class Ask:
    """A request that the documentation shows; `kept` names what is kept of a long answer."""

    operation: str
    path: str
    summary: str
    _: KW_ONLY
    name: str = "example"
    body: Any = None
    parameters: dict[str, Any] = field(default_factory=dict)
    shorten: Callable[[Any], Any] | None = None
    kept: str = ""


def only_one_model(body):
    return {**body, "models": body["models"][:1]}


def only_one_head(body):
    """Keep one head of the profile, with one of its sentences."""
    if (heads := body["heads"]) is None:
        return body
    (path, of_path), *_ = heads["attentions"].items()
    head = {**of_path[0], "strongest": of_path[0]["strongest"][:1]}
    short = {"attentions": {path: [head]}, "examples": heads["examples"][:1]}
    return {**body, "heads": {**heads, **short}}


def only_two_each(body):
    return {name: value[:2] if isinstance(value, list) else value for name, value in body.items()}


def only_some_limits(body):
    return {name: body[name] for name in ("max_characters", "max_cells", "max_tokens")}


def only_some_nodes(body):
    """Keep the nodes of the edges, and the beginning of the lists."""
    short = {name: body[name][:2] for name in ("writers", "readers", "ranking", "curve")}
    return {**body, **short}


AGREEMENT = {
    "clean": "The dogs with the girl",
    "corrupted": "The dog with the girl",
    "right": " were",
    "wrong": " was",
}
ATLAS, STORIES = "/api/v1/models/{model}/atlas", {"model": "stories"}
TRACE_ID = "{trace_id}"
LINK_ID = "Zr1lq5hYQbSx0d3nJm7vWw"
LINK = {"id": LINK_ID, "path": f"/s/{LINK_ID}", "expires": "2027-01-31T12:00:00Z"}
"""The members of a link that differ in every answer, as the examples have them."""
TRACE = "/api/v1/trace"
LINKS = "/api/v1/links"
HEADS = {"capture": ["decoder.layers.*.self_attention.weights"], "layers": [1], "heads": [0, 3]}
EXPERIMENTS = "/api/v1/experiments"
EXPERIMENT = f"{EXPERIMENTS}/{{experiment}}"
BY_HAND = {"experiment": "by_hand"}
TEXTS = {"model": "translate", "text": "the cat", "target": "le chat"}
OFF = {"edits": [{"kind": "heads_off", "heads": [3], "layer": 0}]}
PATCH = {"kind": "set", "site": "decoder.layers.1.residual.after", "from": {"text": "A dog"}}
CHOSEN = {"top": 2, "tokens": [" is"]}
ROTARY = {"scheme": "rotary", "length": 3, "width": 4}
ASKS = [
    Ask(
        "models", "/api/v1/models", "Every model", shorten=only_one_model, kept="one of the models"
    ),
    Ask(
        "model",
        "/api/v1/models/{model}",
        "A dense decoder with rotary positions",
        parameters={"model": "positions-rotary"},
        shorten=only_one_head,
        kept="one of the heads",
    ),
    Ask("tokenize", "/api/v1/tokenize", "A text in tokens", body={"text": TEXT}),
    Ask(
        "trace",
        TRACE,
        "The weights of two heads of one layer",
        name="heads",
        body={"text": TEXT, **HEADS},
    ),
    Ask(
        "trace",
        TRACE,
        "Which source word each target word comes from",
        name="alignment",
        body={**TEXTS, "capture": [], "analyses": ["alignment"]},
    ),
    Ask(
        "trace",
        TRACE,
        "A head switched off, in 16 bits, without what no query sees",
        name="edited",
        body={"text": TEXT, **HEADS, **OFF, "dtype": "uint16", "triangle": True},
    ),
    Ask(
        "trace",
        TRACE,
        "The stream of another text put in place of this text's: activation patching",
        name="patched",
        body={"text": TEXT, "capture": [], "edits": [PATCH], "predictions": CHOSEN}
        | {"analyses": ["next_token"]},
    ),
    Ask("tasks", "/api/v1/tasks", "The tasks that ship"),
    Ask(
        "circuit",
        "/api/v1/models/{model}/circuit",
        "Six edges that let a verb agree with its subject",
        parameters={"model": "stories-small"},
        body={"pairs": [AGREEMENT], "holds_out": False, "rule": "top", "n_edges": 6},
        shorten=only_some_nodes,
        kept="some of the nodes, of the ranking and of the curve",
    ),
    Ask("traces", "/api/v1/traces", "Two texts", body={"texts": [TEXT, "A dog"], **HEADS}),
    Ask(
        "trace_by_id",
        "/api/v1/traces/{trace_id}",
        "The trace of two heads again",
        parameters={"trace_id": TRACE_ID},
    ),
    Ask(
        "trace",
        TRACE,
        "The maps of two heads in at most 4 bins a side, and one exact row",
        name="overview",
        body={"text": TEXT, "resolution": 4, "queries": [2], "layers": [1], "heads": [0, 3]},
    ),
    Ask(
        "tile",
        "/api/v1/traces/{trace_id}/tile",
        "The exact weights of a rectangle",
        parameters={"trace_id": TRACE_ID, "attention": "decoder.layers.1.self_attention"}
        | {"head": 3, "queries": "1:3", "keys": "0:3"},
    ),
    Ask("atlas", ATLAS, "The corpus and its size", parameters=STORIES),
    Ask(
        "atlas_head",
        f"{ATLAS}/head",
        "A head over the corpus",
        parameters=STORIES | {"attention": "decoder.layers.1.self_attention", "head": 2},
        shorten=only_two_each,
        kept="two of each list",
    ),
    Ask(
        "atlas_spread",
        f"{ATLAS}/spread",
        "From where a head does least to where it does most",
        parameters=STORIES | {"attention": "decoder.layers.1.self_attention", "head": 2},
        shorten=only_two_each,
        kept="two of each list",
    ),
    Ask(
        "atlas_search",
        f"{ATLAS}/search",
        "Heads from a pronoun to a noun",
        parameters=STORIES | {"from_tag": "pronoun", "to_tag": "noun", "n_sentences": 2},
        shorten=only_two_each,
        kept="two of each list",
    ),
    Ask(
        "atlas_matches",
        f"{ATLAS}/matches",
        "The heads of another model",
        parameters=STORIES | {"other": "fill"},
        shorten=only_two_each,
        kept="two of each list",
    ),
    Ask("experiments", EXPERIMENTS, "Every experiment"),
    Ask("experiment", EXPERIMENT, "Attention by hand: parameters and arrays", parameters=BY_HAND),
    Ask(
        "run_experiment",
        EXPERIMENT,
        "The attention of “it”, as printed and as computed",
        name="by_hand",
        body={"example": "animal"},
        parameters=BY_HAND,
    ),
    Ask("positional", "/api/v1/positional", "Rotary angles of three positions", parameters=ROTARY),
    Ask(
        "limits",
        "/api/v1/limits",
        "Every limit",
        shorten=only_some_limits,
        kept="three of the limits",
    ),
    Ask(
        "share", LINKS, "A link to a text and a model", body={"state": "text=The+cat&model=stories"}
    ),
    Ask("link", f"{LINKS}/{{link_id}}", "The state again", parameters={"link_id": LINK_ID}),
    Ask("healthz", "/healthz", "Alive"),
    Ask("readyz", "/readyz", "Ready"),
]
GENERATE = {"text": TEXT, "n_tokens": 1, "temperature": 0, "n_alternatives": 2, "layers": [0]}
GENERATED = ("likeliest", "The likeliest token, without chance", GENERATE)
READ = ("read", "The progress of a long text", {"text": TEXT, "resolution": 4})
LEARN = {"steps": 1, "length": 2, "d_model": 8, "n_layers": 1, "n_heads": 1, "batch": 4}
LEARNED = ("learn_task", "One training step of a tiny transformer", LEARN)
RUN: dict[str, tuple[str, dict[str, Any]]] = {
    "scaling": ("Scores of widths 1 and 2", {"width": 2, "n_samples": 50, "n_keys": 2}),
    "recurrence": ("Gradients through two states", {"length": 2, "width": 2}),
    "depth": ("Two layers", {"n_layers": 2, "d_model": 4, "n_heads": 1, "n_tokens": 2}),
    "balance": ("One training step of two experts", {"steps": 1, "n_experts": 2, "n_clusters": 1}),
    "minhash": ("Two words", {"first": "banana", "second": "bandana", "n_hashes": 4}),
    "schedule": ("Two steps", {"steps": 2, "warmup": 1, "decay": 1, "optimizer_steps": 2}),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Yield the models that ship, behind the application."""
    settings = SETTINGS.model_copy(update={"links_dir": tmp_path_factory.mktemp("links")})
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        wait_until_ready(client.get, 60)
        yield client


@pytest.fixture(scope="module")
def asked(server):
    """Return the examples as the models answer them now."""
    measured = rounded({"operations": answers(server), "problems": dict(problems(server))})
    if RENEW:
        EXAMPLES.write_text(json.dumps(measured, indent=1, ensure_ascii=False) + "\n")
        examples.cache_clear()
        DOCUMENT.write_text(described())
    return measured


def answers(server):
    shown: dict[str, Any] = {}
    trace_id = ""
    link_id = server.post(LINKS, json={"state": "text=The+cat&model=stories"}).json()["id"]
    for ask in ASKS:
        parameters = {n: trace_id if v == TRACE_ID else v for n, v in ask.parameters.items()}
        sent = parameters | {n: link_id for n in parameters if n == "link_id"}
        reply = answer(server, ask, sent)
        reply |= LINK if ask.operation == "share" else {}
        trace_id = reply["id"] if ask.name in ("heads", "overview") else trace_id
        example = {"summary": ask.summary, JSON: ask.shorten(reply) if ask.shorten else reply}
        example |= {"shortened": f"Shortened to {ask.kept}"} if ask.kept else {}
        example |= {"parameters": parameters} if parameters else {}
        example |= {"request": ask.body} if ask.body else {}
        shown.setdefault(ask.operation, {})[ask.name] = example
    shown["generate"] = dict(events(server, "/api/v1/generate", *GENERATED))
    shown["trace"] |= dict(events(server, TRACE, *READ))
    shown["run_experiment"] |= {name: ran(server, name, *RUN[name]) for name in RUN}
    shown["run_experiment"] |= dict(events(server, f"{EXPERIMENTS}/learn_task", *LEARNED))
    named = {"model": "stories", "name": ["decoder.layers.0.self_attention.W_O", "W_U"]}
    shown["weights"] = {"example": {"summary": "Two matrices", "parameters": named}}
    code = server.get(f"{LINKS}/{link_id}/qr.svg").text
    drawn = re.sub(' d="[^"]*"', ' d="…"', code).replace(link_id, LINK_ID)
    short = {"summary": "Shortened to the frame", "parameters": {"link_id": LINK_ID}}
    shown["link_qr"] = {"example": short | {"image/svg+xml": drawn}}
    series = server.get("/metrics").text.splitlines()
    picked = "\n".join(line for line in series if "headlight_queue_length" in line) + "\n"
    shown["metrics"] = {"example": {"summary": "Shortened to one series", "text/plain": picked}}
    return shown


def answer(server, ask, parameters):
    path = ask.path.format_map(parameters)
    query = {name: value for name, value in parameters.items() if f"{{{name}}}" not in ask.path}
    response = server.request("POST" if ask.body else "GET", path, json=ask.body, params=query)
    assert response.is_success, response.text
    return response.json()


def ran(server, name, summary, body):
    """Return a run as a request; its result would be longer than an example is read."""
    response = server.post(f"{EXPERIMENTS}/{name}", json=body, headers={"accept": JSON})
    assert response.json()["parameters"].items() >= body.items()
    return {"summary": summary, "request": body}


def events(server, path, name, summary, body):
    """Yield a request of events, and an example of each kind of event."""
    yield name, {"summary": summary, "request": body}
    for event, data in events_of(server.post(path, json=body, headers={"accept": EVENTS})):
        sent = {"event": event, "data": json.dumps(rounded(data), ensure_ascii=False)}
        yield event, {"summary": f"The event {event}", EVENTS: sent}


def problems(server):
    """Yield a problem of every status, each as a server answers it."""
    tokenize = "/api/v1/tokenize"
    guarded = Settings(device="cpu", api_keys="an-example-of-a-key", requests_per_minute=1)
    slow = Settings(device="cpu", work_seconds=1)
    said = {"content-type": JSON}
    with (
        TestClient(create_app(guarded), base_url="http://localhost") as strict,
        ExitStack() as places,
    ):
        streams = server.app.state.services.streams  # type: ignore[attr-defined]
        for _ in range(streams.limit):
            places.enter_context(streams.place())
        refused = [
            server.post(tokenize, content="{", headers=said),
            strict.get("/api/v1/limits"),
            server.post(tokenize, json={"text": "a", "model": "gpt"}),
            server.post(TRACE, json={"text": "a"}, headers={"accept": "text/html"}),
            server.post(tokenize, content=b" " * 5_000_000, headers=said),
            server.post(tokenize, content="{}", headers={"content-type": "text/plain"}),
            server.post(TRACE, json={"text": "a" * 8001}),
            strict.get("/api/v1/limits"),
            server.post("/api/v1/generate", json=GENERATE),
        ]
    yield "504", too_slow(slow)
    for response in refused:
        assert response.headers["content-type"] == PROBLEM, response.text
        # On a busy machine some of the minute has passed.
        told = response.text.replace("again in 59 s", "again in 60 s")
        yield str(response.status_code), json.loads(told)


def too_slow(settings):
    """Return the problem of work that goes on for longer than it may."""
    is_done = threading.Event()
    with TestClient(create_app(settings), base_url="http://localhost") as hasty:
        wait_until_ready(hasty.get)
        assert hasty.portal is not None
        try:
            hasty.portal.call(hasty.app.state.services.engine.run, is_done.wait)  # type: ignore[attr-defined]
        except Problem as problem:
            return problem.document()
        finally:
            is_done.set()
    raise AssertionError("it was not too slow")


def described():
    return json.dumps(create_app(Settings()).openapi(), indent=1, ensure_ascii=False) + "\n"


REQUEST_ID = "5f1c0e6b9a2d4783"


def rounded(data):
    """Numbers as short as an example needs them, and no member that differs in every answer."""
    if isinstance(data, float):
        return float(f"{data:.6g}")
    if isinstance(data, dict):
        constant = {
            "request_id": REQUEST_ID,
            "timings": dict.fromkeys(data.get("timings", ()), 1.0),
        }
        return {name: constant.get(name) or rounded(value) for name, value in data.items()}
    return [rounded(value) for value in data] if isinstance(data, list | tuple) else data


def assert_alike(actual, shown, where=""):
    """Return the same, but for times, request ids and the last digits of numbers."""
    if where.endswith((".timings", ".request_id", "text/plain", ".reason")):
        return
    if where.endswith(f"{EVENTS}.data"):
        actual, shown = json.loads(actual), json.loads(shown)
    if isinstance(actual, dict) and isinstance(shown, dict):
        assert actual.keys() == shown.keys(), where
        for name in actual:
            assert_alike(actual[name], shown[name], f"{where}.{name}")
    elif isinstance(actual, list) and isinstance(shown, list):
        assert len(actual) == len(shown), where
        for place, pair in enumerate(zip(actual, shown, strict=True)):
            assert_alike(*pair, f"{where}.{place}")
    elif isinstance(actual, float):
        np.testing.assert_allclose(actual, shown, rtol=1e-3, atol=1e-4, err_msg=where)
    else:
        assert actual == shown, where


def test_every_example_is_what_the_models_answer(asked):
    try:
        assert_alike(asked, json.loads(EXAMPLES.read_text()))
    except AssertionError as error:
        error.add_note("the examples of the API are no longer true: run `make openapi`")
        raise


@pytest.fixture(scope="module")
def document(request):
    """Return the description of the code, with the examples that are committed or just renewed."""
    if RENEW:
        request.getfixturevalue("asked")
    schema: dict[str, Any] = json.loads(described())
    return schema


def test_the_committed_description_is_that_of_the_code(document):
    assert json.loads(DOCUMENT.read_text()) == document, STALE


def contents(document):
    """Yield everything that is sent or answered: where, its media type, its schema and examples."""
    for path, operation in operations_of(document):
        parts = {"asked": operation.get("requestBody", {}), **operation["responses"]}
        for status, part in parts.items():
            for media_type, content in part.get("content", {}).items():
                yield f"{path} {status}", media_type, content


def shown_in(content):
    values = [each["value"] for each in content.get("examples", {}).values()]
    if "x-itemSchema" in content:
        assert all(isinstance(value, str) and value.endswith("\n\n") for value in values)
        lines = [value.strip().split("\n") for value in values]
        values = [dict(line.split(": ", 1) for line in each) for each in lines]
    return values + ([content["example"]] if "example" in content else [])


def test_every_request_and_every_answer_has_an_example(document):
    lacking = [
        (where, media_type)
        for where, media_type, content in contents(document)
        if not shown_in(content) and media_type != "application/x-safetensors"
    ]
    assert lacking == []
    assert all(
        "example" in parameter or not parameter["required"]
        for _, operation in operations_of(document)
        for parameter in operation.get("parameters", ())
    )


def test_every_example_is_as_its_schema_says(document):
    for where, media_type, content in contents(document):
        whole = {
            "components": document["components"],
            **content.get("x-itemSchema", content["schema"]),
        }
        for value in shown_in(content):
            jsonschema_rs.validator_for(whole).validate(value), (where, media_type)


def test_every_operation_has_a_name_a_summary_and_its_errors(document):
    names = [operation["operationId"] for _, operation in operations_of(document)]
    assert len(set(names)) == len(names)
    for path, operation in operations_of(document):
        assert operation["operationId"].isidentifier()
        assert 3 < len(operation["summary"]) < 100, path
        assert operation["description"], path
        is_guarded = path.startswith(("/api/", "/metrics"))
        assert {"401", "429"} <= operation["responses"].keys() or not is_guarded, path
        for status, part in operation["responses"].items():
            if status not in ("200", "201", "304"):
                (content,) = part["content"].items()
                assert content[0] == PROBLEM
                shown = str(content[1]["example"]["status"])
                assert status in (f"{shown[0]}XX", shown)


def test_generated_clients_take_the_first_type_of_a_success_and_read_it(document, server):
    """openapi-python-client takes the first type it knows, and `default` for what it does not."""
    for path, operation in operations_of(document):
        assert {"4XX", "5XX"} <= operation["responses"].keys(), path
        content = operation["responses"].get("200", {}).get("content", {})
        assert JSON not in content or next(iter(content)) == JSON, path
        assert content.get(EVENTS, {"schema": {"type": "string"}})["schema"]["type"] == "string"
    for ask in [
        *ASKS,
        Ask("run_experiment", f"{EXPERIMENTS}/schedule", "", body=RUN["schedule"][1]),
    ]:
        if ask.body and "{" not in ask.path:
            answer = server.post(ask.path, json=ask.body, headers={"accept": "*/*"})
            assert answer.headers["content-type"] == JSON, ask.path


def test_the_key_is_described_and_probes_need_none(document):
    assert set(document["components"]["securitySchemes"]) == {"bearer", "header"}
    open_paths = {path for path, each in operations_of(document) if each.get("security") == []}
    assert open_paths == {"/healthz", "/readyz"}


def test_a_renewal_is_never_left_on():
    assert not (RENEW and os.environ.get("CI")), "CI compares; it does not renew"
