"""Edits of sites over REST equal the same edits in process."""

import numpy as np
import pytest

from headlight.model.interventions.site_edit import SiteEdit
from headlight.model.tracing import trace
from tests.app.reading import events_of

STREAM = "decoder.layers.0.residual.after"
CONTEXT = "decoder.layers.0.self_attention.context"
TEXTS = TEXT, OTHER = "the cat sat on the mat", "a small light reads the words"


def post(client, path="trace", **members):
    return client.post(f"/api/v1/{path}", json={"text": TEXT, "capture": ["logits"], **members})


def logits(answer, site="logits"):
    assert answer.status_code == 200, answer.text
    return np.array(answer.json()["tensors"][site]["data"], dtype=np.float32)


@pytest.mark.parametrize(
    "edit",
    [
        {"kind": "set", "site": CONTEXT, "value": 0.5, "heads": [3, 1], "positions": [2, 0]},
        {"kind": "set", "site": STREAM, "value": list(range(16)), "positions": [1]},
        {"kind": "add", "site": CONTEXT, "value": [[1.5], [-2]], "positions": [1, 3]},
        {"kind": "scale", "site": "decoder.layers.1.experts.router_logits", "value": -1},
        {"kind": "scale", "site": "decoder.layers.1.self_attention.scores", "value": 0},
        {"kind": "mean", "site": CONTEXT, "heads": [2]},
        {"kind": "mean", "site": CONTEXT, "over": "heads", "positions": [1, 2]},
    ],
)
def test_an_edit_over_rest_equals_the_edit_in_process(client, tiny, edit):
    edited = logits(post(client, edits=[edit]))
    members = {**edit}
    for name in ("heads", "positions"):
        members[name] = tuple(members[name]) if name in members else None
    expected = trace(tiny, TEXT, capture=["logits"], interventions=[SiteEdit(**members)])["logits"]
    np.testing.assert_allclose(edited, expected, rtol=0, atol=1e-5)
    assert not np.allclose(edited, logits(post(client)), atol=1e-5)


def test_values_of_a_kept_trace_are_those_of_its_text(client_with):
    client = client_with(cache_bytes=10**7)
    source = post(client, text=OTHER, capture=[STREAM])
    place = {"kind": "set", "site": STREAM, "positions": [2]}
    by_text = {**place, "from": {"text": OTHER, "positions": [4]}}
    by_id = {**place, "from": {"trace": source.json()["id"], "positions": [4]}}
    patched = post(client, edits=[by_text], capture=[STREAM])
    np.testing.assert_array_equal(
        logits(patched, STREAM), logits(post(client, edits=[by_id], capture=[STREAM]), STREAM)
    )
    np.testing.assert_array_equal(logits(patched, STREAM)[2], logits(source, STREAM)[4])


def test_the_order_of_edits_of_a_site_decides_and_names_the_trace(client):
    add = {"kind": "add", "site": CONTEXT, "value": 1}
    double = {"kind": "scale", "site": CONTEXT, "value": 2}
    add_first, double_first = post(client, edits=[add, double]), post(client, edits=[double, add])
    assert add_first.json()["id"] != double_first.json()["id"]
    assert not np.allclose(logits(add_first), logits(double_first), atol=1e-4)


HEADS = {"site": CONTEXT, "value": 0}


@pytest.mark.parametrize(
    ("edit", "kind"),
    [
        ({"site": "nowhere", "value": 0}, "unknown-site"),
        *(
            ({"site": f"decoder.layers.1.self_attention.{part}", "value": 0}, "impossible-edit")
            for part in ("entropy", "first_token", "mean_distance", "logsumexp")
        ),
        (HEADS | {"heads": [4]}, "unknown-head"),
        (HEADS | {"positions": [64]}, "unknown-position"),
        ({"kind": "add", "value": [1, 2, 3]}, "impossible-edit"),
        ({"from": {"text": OTHER + " aloud"}}, "impossible-edit"),
        ({"from": {"text": " "}}, "empty-text"),
        ({"from": {"text": "a" * 8001}}, "too-many-characters"),
        ({"from": {"trace": "0" * 32}}, "unknown-trace"),
        ({"positions": [1], "from": {"text": "a", "target": "b"}}, "no-target"),
        ({}, "invalid-request"),
        ({"value": [[1], [2, 3]]}, "invalid-request"),
    ],
)
@pytest.mark.parametrize("path", ["trace", "generate"])
def test_an_edit_that_cannot_be_made_is_a_problem(client, problem, edit, kind, path):
    members = {} if path == "trace" else {"n_tokens": 2}
    edit = {"kind": "set", "site": STREAM, **edit}
    problem(post(client, path, edits=[edit], **members), 422, kind)


def test_edits_that_exceed_what_can_be_computed_are_a_problem_of_the_request(client, problem):
    edits = [{"kind": "scale", "site": "logits", "value": 1e6}] * 8
    problem(post(client, edits=edits), 422, "not-finite")
    problem(post(client, "generate", n_tokens=2, edits=edits), 422, "not-finite")


# --- generation -----------------------------------------------------------------------------------


def data_of(answer):
    return [data for _, data in events_of(answer)]


def test_captures_and_edits_of_generation_are_those_of_a_trace_of_the_whole_text(client):
    edits = [
        {"kind": "add", "site": STREAM, "value": 0.5, "positions": [1, 8]},
        {"kind": "heads_off", "heads": [1]},
    ]
    scores, experts = "self_attention.scores", "experts.expert_indices"
    sites = [STREAM, *(f"decoder.layers.1.{part}" for part in (scores, experts)), "logits"]
    options = {"edits": edits, "capture": sites}
    start, *tokens, _ = data_of(post(client, "generate", n_tokens=4, temperature=0, **options))
    ids = [token["id"] for token in (*start["tokens"], *tokens)]
    whole = post(client, text=None, ids=ids, **options).json()["tensors"]
    for index, token in enumerate(tokens):
        place = len(start["tokens"]) - 1 + index
        for site in sites:
            tensor = token["tensors"][site]
            assert tensor["dtype"] == whole[site]["dtype"]
            assert tensor["axes"] == [axis for axis in whole[site]["axes"] if axis != "query"]
            data = np.array(tensor["data"])
            assert list(data.shape) == tensor["shape"]
            expected = np.array(whole[site]["data"], dtype=float)
            expected = expected[place] if whole[site]["axes"][0] == "query" else expected[:, place]
            expected = expected[..., : data.shape[-1]]
            np.testing.assert_allclose(data, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    "edit",
    [
        {"kind": "mean", "site": STREAM},
        {"kind": "set", "site": "decoder.layers.0.self_attention.weights", "value": [0.5, 0.5]},
    ],
)
def test_edits_that_depend_on_the_length_are_rejected_in_generation(client, problem, edit):
    problem(post(client, "generate", n_tokens=2, edits=[edit]), 422, "impossible-edit")
