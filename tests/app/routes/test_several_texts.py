"""Several texts in one request, token ids, chosen tokens, and weight matrices."""

import json

import numpy as np
import pytest
import safetensors.numpy

from headlight.client import Client
from headlight.client.decode import read_traces

TEXTS = ["the cat sat", "a small light reads the words aloud", "the mat"]
FILE = {"Accept": "application/x-safetensors"}


def several(client, headers=None, **members):
    return client.post("/api/v1/traces", json={"texts": TEXTS, **members}, headers=headers)


def single_trace(client, text, **members):
    return client.post("/api/v1/trace", json={"text": text, **members}).json()


# --- several texts --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "targets"),
    [
        ("tiny", None),
        ("translator", None),
        ("translator", ["le chat", "une lampe lit", "le tapis"]),
        ("filler", None),
    ],
)
def test_each_of_several_texts_has_the_answer_of_a_single_request(client, model, targets):
    options = {"model": model, "capture": ["logits"], "analyses": ["next_token", "head_labels"]}
    answer = several(client, **options, **({"targets": targets} if targets else {}))
    assert answer.status_code == 200, answer.text
    given = [{"target": target} for target in targets] if targets else [{}] * len(TEXTS)
    for text, target, body in zip(TEXTS, given, answer.json()["traces"], strict=True):
        expected = single_trace(client, text, **options, **target)
        assert body.keys() == expected.keys()
        for name in expected.keys() - {"tensors", "analyses", "timings"}:
            assert body[name] == expected[name], name
        np.testing.assert_allclose(
            body["tensors"]["logits"]["data"], expected["tensors"]["logits"]["data"], atol=1e-5
        )
        assert body["analyses"].keys() == expected["analyses"].keys()


@pytest.mark.parametrize("form", [{}, {"dtype": "uint16", "triangle": True}])
def test_several_traces_are_one_file_whose_arrays_are_numbered(client, form):
    options = {"analyses": ["value_weighted", "next_token"], "capture": ["*.weights"], **form}
    content = several(client, headers=FILE, **options).content
    names = safetensors.numpy.load(content)
    assert {name.split(".")[0] for name in names} == {"0", "1", "2"}
    for text, trace in zip(TEXTS, read_traces(content), strict=True):
        single = client.post("/api/v1/trace", json={"text": text, **options}, headers=FILE).content
        size = int.from_bytes(single[:8], "little")
        axes = json.loads(json.loads(single[8 : 8 + size])["__metadata__"]["axes"])
        assert trace.text == text
        assert [*trace.tensors] == [name for name in axes if not name.startswith("analyses.")]
        assert trace.analyses["next_token"]["texts"]


def test_several_texts_may_be_token_ids(client):
    ids = [[2, 5, 6, 7], [2, 9]]
    body = client.post("/api/v1/traces", json={"ids": ids, "capture": ["logits"]}).json()
    for text_ids, trace in zip(ids, body["traces"], strict=True):
        single = client.post("/api/v1/trace", json={"ids": text_ids, "capture": ["logits"]}).json()
        assert trace["id"] == single["id"]
        assert [token["id"] for token in trace["tokens"]] == text_ids
    both = client.post("/api/v1/traces", json={"ids": ids, "texts": ["a"]})
    assert both.json()["detail"] == "texts: send either texts or ids"
    unknown = client.post("/api/v1/traces", json={"ids": [[2], [10**6]]})
    assert unknown.json()["detail"].startswith("ids.1: there is no token 1000000")


def test_equal_texts_are_answered_each(client):
    answer = client.post("/api/v1/traces", json={"texts": ["the cat"] * 3, "capture": ["logits"]})
    assert len({trace["id"] for trace in answer.json()["traces"]}) == 1
    assert len(answer.json()["traces"]) == 3


@pytest.mark.parametrize(
    ("members", "kind", "words"),
    [
        ({"targets": ["a"]}, "invalid-request", "targets: there are 1 for 3 texts"),
        ({"targets": ["a", " ", "b"], "model": "translator"}, "empty-text", "texts.1: the target"),
        ({"texts": ["a", " "]}, "empty-text", "texts.1: "),
        ({"texts": ["a", "a" * 9000]}, "too-many-characters", "texts.1: "),
        ({"texts": ["a", "cat " * 70]}, "too-many-tokens", "texts.1: "),
        ({"capture": ["nowhere"]}, "unknown-site", "nowhere"),
        (
            {
                "texts": ["the cat sat", "a"],
                "edits": [{"kind": "set", "site": "logits", "value": 0, "positions": [3]}],
            },
            "unknown-position",
            "texts.1: ",
        ),
    ],
)
def test_a_text_that_cannot_be_read_is_named(client, problem, members, kind, words):
    assert words in problem(several(client, **members), 422, kind)["detail"]


def test_several_texts_together_keep_to_the_limit(client_with, problem):
    client = client_with(max_cells=6000)
    assert single_trace(client, TEXTS[1], capture=["logits"])["id"]
    texts = [f"{text} {number}" for text in TEXTS for number in range(3)]
    body = problem(several(client, texts=texts, capture=["logits"]), 422, "too-many-cells")
    assert body["limit"] == 6000
    assert body["actual"] > 6000


# --- token ids and special tokens -----------------------------------------------------------------


def tokens(client, **members):
    return client.post("/api/v1/tokenize", json=members)


def test_the_ids_of_a_text_give_its_tokens(client):
    whole = tokens(client, text="the cat").json()["tokens"]
    ids = [token["id"] for token in whole]
    assert tokens(client, ids=ids).json()["tokens"] == whole
    assert tokens(client, text="the cat", special_tokens=False).json()["tokens"] == whole[1:]
    assert tokens(client, ids=ids[1:]).json()["tokens"] == whole[1:]
    by_ids = client.post("/api/v1/trace", json={"ids": ids, "capture": ["logits"]}).json()
    by_text = single_trace(client, "the cat", capture=["logits"])
    assert by_ids["tensors"] == by_text["tensors"]
    assert by_ids["text"] == "the cat"


def test_ids_that_no_text_has_are_spelled_one_by_one(client):
    spelled = tokens(client, ids=[0, 70, 0, 200, 71]).json()["tokens"]
    assert [token["id"] for token in spelled] == [0, 70, 0, 200, 71]
    assert [token["is_special"] for token in spelled] == [True, False, True, False, False]
    text = client.post("/api/v1/trace", json={"ids": [0, 70, 0, 200, 71]}).json()["text"]
    assert [text[token["start"] : token["end"]] for token in spelled] == [
        token["text"] for token in spelled
    ]
    assert [token["word"] is None for token in spelled] == [True, False, True, False, False]


@pytest.mark.parametrize("path", ["trace", "generate", "tokenize"])
@pytest.mark.parametrize(
    ("members", "kind"),
    [
        ({"ids": [300]}, "unknown-token"),
        ({"ids": [5] * 65}, "too-many-tokens"),
        ({"ids": [1], "text": "a"}, "invalid-request"),
    ],
)
def test_ids_that_cannot_be_read_are_a_problem(client, problem, members, kind, path):
    extra = {"n_tokens": 1} if path == "generate" else {}
    problem(client.post(f"/api/v1/{path}", json={**members, **extra}), 422, kind)


def test_generation_continues_ids(client):
    options = {"n_tokens": 3, "seed": 1}
    ids = [token["id"] for token in tokens(client, text="the cat").json()["tokens"]]
    by_ids = client.post("/api/v1/generate", json={"ids": ids, **options})
    assert by_ids.text == client.post("/api/v1/generate", json={"text": "the cat", **options}).text


# --- chosen tokens --------------------------------------------------------------------------------


@pytest.mark.parametrize("analysis", ["next_token", "logit_lens"])
def test_chosen_tokens_have_their_logits_probabilities_and_ranks(client, analysis):
    options = {"capture": ["logits"], "analyses": [analysis]}
    predictions = {"top": 300, "tokens": [7, " cat"]}
    body = single_trace(client, "the cat sat", predictions=predictions, **options)
    answer = {
        name: np.array(part["data"])
        for name, part in body["analyses"][analysis].items()
        if name != "texts"
    }
    assert answer["ids"].shape[-1] == 300
    assert sorted(answer["ids"].reshape(-1, 300)[0]) == list(range(300))
    assert answer["chosen_ids"].tolist() == [
        7,
        tokens(client, text="a cat").json()["tokens"][-1]["id"],
    ]
    last = answer["chosen_logits"][-1] if analysis == "logit_lens" else answer["chosen_logits"]
    logits = np.array(body["tensors"]["logits"]["data"])
    np.testing.assert_allclose(last, logits[:, answer["chosen_ids"]], atol=1e-4)
    for place, token in enumerate(answer["chosen_ids"]):
        rank = (answer["ids"] == token).argmax(axis=-1) + 1
        np.testing.assert_array_equal(answer["chosen_ranks"][..., place], rank)
        np.testing.assert_allclose(
            np.take_along_axis(answer["probabilities"], rank[..., None] - 1, axis=-1)[..., 0],
            answer["chosen_probabilities"][..., place],
            atol=1e-6,
        )


def test_without_chosen_tokens_the_answer_is_as_before(client):
    next_token = single_trace(client, "the cat", analyses=["next_token"])["analyses"]["next_token"]
    assert next_token.keys() == {"ids", "probabilities", "texts"}
    top = single_trace(client, "the cat", analyses=["next_token"], predictions={"top": 3})
    assert top["analyses"]["next_token"]["ids"]["data"] == [
        row[:3] for row in next_token["ids"]["data"]
    ]


@pytest.mark.parametrize(
    ("predictions", "kind"),
    [({"tokens": [300]}, "unknown-token"), ({"tokens": ["the cat sat on"]}, "not-one-token")],
)
def test_tokens_that_cannot_be_chosen_are_a_problem(client, problem, predictions, kind):
    body = json.dumps({"text": "the cat", "predictions": predictions})
    headers = {"Content-Type": "application/json"}
    problem(client.post("/api/v1/trace", content=body, headers=headers), 422, kind)


def test_chosen_tokens_count_against_the_limit(client_with, problem):
    client = client_with(max_cells=3000)
    options = {"text": "the cat sat", "capture": ["logits"], "analyses": ["next_token"]}
    assert client.post("/api/v1/trace", json=options).status_code == 200
    many = client.post("/api/v1/trace", json={**options, "predictions": {"top": 300}})
    problem(many, 422, "too-many-cells")


# --- weights --------------------------------------------------------------------------------------


def weights(client, *names, model="tiny", **headers):
    query = "&".join(f"name={name}" for name in names)
    return client.get(f"/api/v1/models/{model}/weights?{query}", headers=headers)


def test_weights_are_a_file_of_the_matrices_of_the_model(client, tiny, from_safetensors):
    path = "decoder.layers.1.self_attention"
    answer = weights(client, f"{path}.W_*", "W_U")
    assert answer.status_code == 200, answer.text
    assert int(answer.headers["content-length"]) == len(answer.content)
    arrays, metadata = from_safetensors(answer.content)
    matrices = tiny.weights()
    assert arrays.keys() == {f"{path}.W_{letter}" for letter in "QKVO"} | {"W_U"}
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, matrices[name].read())
        assert metadata["axes"][name] == list(matrices[name].axes)
    assert metadata["revision"] == tiny.description.revision


def test_weights_that_are_known_are_not_sent_again(client):
    first = weights(client, "*.W_O")
    tag = first.headers["etag"]
    again = weights(client, "*.W_O", **{"If-None-Match": tag})
    assert again.status_code == 304
    assert not again.content
    assert weights(client, "*.W_Q").headers["etag"] != tag
    assert weights(client, "*.W_O", model="dense").headers["etag"] != tag


def test_weights_that_cannot_be_had_are_a_problem(client, client_with, problem):
    assert ".W_Q" in problem(weights(client, "*.W_X"), 422, "unknown-weight")["detail"]
    problem(weights(client), 422, "invalid-request")
    problem(weights(client, "*", model="nobody"), 404, "unknown-model")
    problem(weights(client, "*", Accept="application/json"), 406, "not-acceptable")
    body = problem(weights(client_with(max_weights=1000), "*"), 422, "too-many-weights")
    assert body["limit"] == 1000 < body["actual"]


def test_the_client_reads_several_traces_weights_and_ids(server):
    with Client(server.url) as headlight:
        traces = headlight.traces(TEXTS, capture="logits", analyses="next_token")
        assert [trace.text for trace in traces] == TEXTS
        single = headlight.trace(TEXTS[0], capture="logits", analyses="next_token")
        np.testing.assert_allclose(traces[0]["logits"], single["logits"], atol=1e-5)
        matrices = headlight.weights(["*.W_O", "W_U"], model="tiny")
        assert matrices["W_U"].axes == ("vocab", "d_model")
        ids = [token.id for token in headlight.tokenize(TEXTS[0])]
        by_ids = headlight.trace(ids=np.array(ids), capture="logits")
        np.testing.assert_array_equal(by_ids["logits"], single["logits"])
        edit = {"kind": "set", "site": "logits", "value": np.zeros(300), "positions": [1]}
        assert not headlight.trace(TEXTS[0], capture="logits", edits=edit)["logits"][1].any()
        events = list(headlight.generate(TEXTS[0], n_tokens=1, capture="logits", edits=edit))
        assert len(events[1].tensors["logits"].data) == 300
