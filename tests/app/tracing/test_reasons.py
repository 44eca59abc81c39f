"""The reasons of a prediction, against passes with the same edits, one by one."""

import numpy as np
import pytest
from fastapi.testclient import TestClient

from headlight.main import create_app
from headlight.model.analysis import reasons as rules
from headlight.settings import Settings
from tests.tiny_checkpoints import save_checkpoint

KEYS = "The keys to the cabinet"


def array_of(encoded):
    return np.array(encoded["data"]).reshape(encoded["shape"])


FOREIGN = ("gpt2", "llama", "bert")


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    """Return ``ask(text, model="stories", **request)``: a trace of a shipped or a tiny model."""
    folder = tmp_path_factory.mktemp("models")
    for name in FOREIGN:
        save_checkpoint(name, folder / name)
    settings = Settings(device="cpu", precision="float32", models_dir=folder)
    with TestClient(create_app(settings), base_url="http://localhost") as client:

        def post(text, model="stories", status=200, **request):
            body = {"text": text, "model": model, "capture": [], **request}
            answer = client.post("/api/v1/trace", json=body)
            assert answer.status_code == status, answer.text
            return answer.json()

        yield post


def reasons_of(trace):
    return trace["analyses"]["reasons"]


def edit_of(reason):
    """Return the edit by which the page switches a part off."""
    heads = {} if reason["head"] is None else {"heads": [reason["head"]]}
    return {"kind": "set", "site": reason["site"], "value": 0, **heads}


@pytest.mark.parametrize(
    ("model", "text"),
    [
        ("stories", KEYS),
        ("fill", "The keys to the cabinet [MASK] lost."),
        ("translate", "The cat drinks milk."),
        ("sums", "12*13="),
        ("positions-alibi", "The red fox ran."),
        *((name, "the cat sat on the mat") for name in FOREIGN),
    ],
)
def test_each_reason_is_the_pass_without_the_part(ask, model, text):
    found = reasons_of(ask(text, model, analyses=["reasons"]))
    tokens = [found["token"]["id"], found["against"]["id"]]
    chosen = {"top": 1, "tokens": tokens}
    for reason in found["reasons"][:6]:
        edited = ask(
            text, model, analyses=["next_token"], predictions=chosen, edits=[edit_of(reason)]
        )["analyses"]["next_token"]
        after = array_of(edited["chosen_probabilities"])[found["position"]]
        np.testing.assert_allclose(reason["probabilities"], after, atol=2e-5)
        top = array_of(edited["ids"])[found["position"], 0]
        assert reason["top"]["id"] == top
    own = ask(text, model, analyses=["next_token"], predictions=chosen)["analyses"]["next_token"]
    before = array_of(own["chosen_probabilities"])[found["position"]]
    np.testing.assert_allclose(found["probabilities"], before, atol=2e-5)
    without = [reason["probabilities"][0] for reason in found["reasons"]]
    assert without == sorted(without), "that without which the token loses most comes first"


def test_the_head_that_decides_reads_the_noun_and_the_rival_is_the_other_number(ask):
    found = reasons_of(ask(KEYS, analyses=["reasons"]))
    assert (found["token"]["text"], found["against"]["text"]) == (" were", " was")
    assert found["rule"] == "gains"
    decisive = found["reasons"][found["decisive"]]
    assert (decisive["layer"], decisive["head"], decisive["key"]) == (3, 3, 3)
    assert decisive["top"]["text"] == " was"
    to_token, to_rival = decisive["adds"]
    assert to_token > 0 > to_rival, "it speaks for the plural and against the singular"


def test_what_a_head_adds_is_its_share_of_the_attribution(ask):
    found = reasons_of(ask(KEYS, analyses=["reasons"]))
    same = {"token": found["token"]["id"], "against": found["against"]["id"]}
    trace = ask(KEYS, analyses=["logit_attribution"], logit_difference=same)
    heads = array_of(trace["analyses"]["logit_attribution"]["self_attention.heads"])
    np.testing.assert_allclose(array_of(found["self_attention.heads"]), heads, atol=1e-4)
    for reason in found["reasons"]:
        if reason["head"] is not None:
            to_token, to_rival = reason["adds"]
            expected = heads[reason["layer"], reason["head"]]
            assert to_token - to_rival == pytest.approx(expected, abs=1e-3)


def test_a_rival_that_is_given_or_stands_in_the_text_is_kept(ask):
    given = ask(KEYS, analyses=["reasons"], logit_difference={"against": " is"})
    assert reasons_of(given)["rule"] == "given"
    assert reasons_of(given)["against"]["text"] == " is"
    text = "Tom saw Ann. Ann saw Tom. Tom saw"
    trace = reasons_of(ask(text, analyses=["reasons"], logit_difference={"token": " Tom"}))
    if trace["rule"] == "text":
        assert trace["against"]["text"] == " Ann"


def test_edits_act_in_every_pass_and_one_text_has_one_answer(ask):
    off = [{"kind": "heads_off", "heads": [3], "layer": 3}]
    found = reasons_of(ask(KEYS, analyses=["reasons"], edits=off))
    assert found["probabilities"][0] < 0.5
    gone = [each for each in found["reasons"] if (each["layer"], each["head"]) == (3, 3)]
    assert gone[0]["probabilities"] == pytest.approx(found["probabilities"], abs=1e-5)


def test_no_head_decides_where_none_takes_much_away(ask):
    assert (
        reasons_of(ask("The cat drinks milk.", "translate", analyses=["reasons"]))["decisive"]
        is None
    )


def test_a_larger_model_tries_the_parts_that_add_most(ask, monkeypatch):
    every = reasons_of(ask(KEYS, analyses=["reasons"]))
    monkeypatch.setattr(rules, "ALL_PARTS", 8)
    few = reasons_of(ask(KEYS, analyses=["reasons"], capture=["logits"]))
    assert len(few["reasons"]) == rules.MOST_HEADS + rules.MOST_NETWORKS
    assert (few["against"], few["decisive"] is None) == (every["against"], False)


@pytest.mark.parametrize(
    ("word", "shape"),
    [("Mary", "name"), ("12", "number"), ("boys", "word"), ("the", ""), ("'", ""), ("I", "")],
)
def test_only_words_of_a_kind_stand_for_each_other(word, shape):
    assert rules.word_kind(word) == shape
