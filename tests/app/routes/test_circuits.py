"""POST /api/v1/models/{model}/circuit, the tasks, and the edits of edges in a trace."""

import pytest

PAIRS = [
    {"clean": "the cat sat on", "corrupted": "the cat sat mat", "right": " the", "wrong": " mat"},
    {"clean": "the mat sat on", "corrupted": "the mat sat mat", "right": " the", "wrong": " mat"},
]


def post(client, model="tiny", **body):
    body = {"pairs": PAIRS, "n_edges": 12, "holds_out": False, **body}
    return client.post(f"/api/v1/models/{model}/circuit", json=body)


def difference(client, edits=()):
    body = {"text": PAIRS[0]["clean"], "capture": ["logits"], "edits": list(edits)}
    answer = client.post("/api/v1/trace", json=body).json()
    return answer["tensors"]["logits"]["data"][-1]


def test_the_tasks_have_their_rules(client):
    tasks = client.get("/api/v1/tasks").json()["tasks"]
    assert {"agreement", "repetition", "carrying"} <= {task["name"] for task in tasks}
    assert all(task["rule"].endswith(".") for task in tasks)


def test_a_task_says_what_a_model_lacks(client):
    assert {task["lacks"] for task in client.get("/api/v1/tasks").json()["tasks"]} == {None}
    tasks = client.get("/api/v1/tasks", params={"model": "tiny"}).json()["tasks"]
    lacks = {task["name"]: task["lacks"] for task in tasks}
    assert "fit its tokenizer" in lacks["greater_than"]
    assert client.get("/api/v1/tasks", params={"model": "none"}).status_code == 404


@pytest.mark.parametrize("model", ["tiny", "turning", "slanted"])
def test_a_circuit_names_its_edges_and_how_faithful_its_run_is(client, model):
    answer = post(client, model).json()
    assert 0 < len(answer["edges"]) <= 12
    for edge in answer["edges"]:
        writer, reader = (answer[f"{end}s"][edge[end]] for end in ("writer", "reader"))
        assert edge["name"] == f"{writer['name']}→{reader['name']}"
    assert answer["curve"][-1]["n_edges"] == answer["n_edges"]
    assert answer["curve"][-1]["faithfulness"] == pytest.approx(1, abs=1e-3)
    assert answer["curve"][0]["faithfulness"] == pytest.approx(0, abs=1e-3)
    assert answer["chosen"]["n_pairs"] == 2
    assert answer["held_out"] is None


def test_given_edges_are_only_measured(client):
    found = post(client).json()
    names = [edge["name"] for edge in found["edges"]]
    measured = post(client, edges=names).json()
    assert measured["chosen"]["value"] == pytest.approx(found["chosen"]["value"], abs=1e-4)
    assert [edge["score"] for edge in measured["edges"]] == [None] * len(names)


def test_a_cut_in_a_trace_is_the_run_without_the_edge(client):
    name = "1.ff→logits"
    clean = difference(client)
    cut = difference(client, [{"kind": "cut", "edges": [name], "text": PAIRS[0]["corrupted"]}])
    assert max(abs(a - b) for a, b in zip(clean, cut, strict=True)) > 1e-4
    every = [f"{each}→logits" for each in ("tokens", "0.0", "0.1", "0.2", "0.3", "0.ff", "1.0")]
    every += ["1.1→logits", "1.2→logits", "1.3→logits", "1.ff->logits"]
    edits = [{"kind": "cut", "edges": every, "text": PAIRS[0]["corrupted"]}]
    body = {"text": PAIRS[0]["corrupted"], "capture": ["logits"]}
    other = client.post("/api/v1/trace", json=body).json()["tensors"]["logits"]["data"][-1]
    assert difference(client, edits) == pytest.approx(other, abs=1e-4)


def test_a_generation_may_have_a_cut_and_a_hidden_key(client):
    edits = [
        {"kind": "cut", "edges": ["1.ff→logits"]},
        {"kind": "knock_out", "queries": [3], "keys": [1], "layer": 0, "heads": [2]},
        {
            "kind": "corpus_mean",
            "site": "decoder.layers.0.self_attention.context",
            "heads": [1],
            "texts": ["the cat sat"],
        },
    ]
    body = {"text": "the cat sat", "n_tokens": 3, "temperature": 0, "edits": edits}
    answer = client.post("/api/v1/generate", json=body)
    assert answer.status_code == 200
    assert "event: end" in answer.text


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"pairs": [{**PAIRS[0], "corrupted": "the mat"}]}, "invalid-pairs"),
        ({"pairs": [{**PAIRS[0], "right": " the cat"}]}, "invalid-pairs"),
        ({"pairs": [{**PAIRS[0], "corrupted": PAIRS[0]["clean"]}]}, "invalid-pairs"),
        ({"pairs": [], "task": "nothing"}, "invalid-pairs"),
        ({"pairs": [], "task": None}, "invalid-request"),
        ({"task": "agreement"}, "invalid-request"),
        ({"edges": ["1.0→logit"]}, "unknown-edge"),
        ({"n_edges": 0}, "invalid-request"),
        ({"pairs": [{**PAIRS[0], "clean": "the " * 500}]}, "invalid-pairs"),
    ],
)
def test_a_bad_request_gets_one_clear_sentence(client, body, kind):
    answer = post(client, **body)
    assert answer.status_code == 422
    assert answer.json()["type"].endswith(f":{kind}")
    assert answer.json()["detail"]


def test_too_many_edges_and_tokens_are_refused_with_the_limit(client, monkeypatch):
    monkeypatch.setattr("headlight.circuits.find.MAX_WORK", 100)
    problem = post(client, score="exact").json()
    assert problem["limit"] == 100 < problem["actual"]


@pytest.mark.parametrize(
    ("edit", "kind"),
    [
        ({"kind": "cut", "edges": ["9.9→logits"]}, "unknown-edge"),
        ({"kind": "cut", "edges": ["1.ff→logits"], "text": " "}, "empty-text"),
        ({"kind": "knock_out", "queries": [0], "keys": [0]}, "impossible-edit"),
        ({"kind": "corpus_mean", "site": "nothing"}, "unknown-site"),
        ({"kind": "resample", "site": "nothing", "texts": ["the cat"]}, "unknown-site"),
    ],
)
def test_an_impossible_edit_is_refused(client, edit, kind):
    body = {"text": "the cat sat", "capture": ["logits"], "edits": [edit]}
    answer = client.post("/api/v1/trace", json=body)
    assert (answer.status_code, answer.json()["type"].rpartition(":")[2]) == (422, kind)


def test_an_unknown_model_is_not_found(client):
    assert post(client, "nobody").status_code == 404
