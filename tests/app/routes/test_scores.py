"""Score attribution over REST: each text of a batch has its own cell, or the reason against it."""

import numpy as np
import pytest

CELL = {"attention": "decoder.layers.1.self_attention", "head": 1, "query": 3, "key": 2}
TEXTS = ["the cat sat on the mat", "a little light sat on a mat"]


def asked(client, path, **members):
    body = {"model": "tiny", "capture": [], "analyses": ["score_attribution"]}
    return client.post(f"/api/v1/{path}", json={**body, "score_attribution": CELL, **members})


def test_the_texts_of_a_batch_have_the_tables_that_each_has_alone(client):
    together = asked(client, "traces", texts=TEXTS).json()["traces"]
    for text, answer in zip(TEXTS, together, strict=True):
        alone = asked(client, "trace", text=text).json()["analyses"]["score_attribution"]
        made = answer["analyses"]["score_attribution"]
        np.testing.assert_allclose(made["table"]["data"], alone["table"]["data"], atol=1e-5)
        assert np.sum(made["table"]["data"]) == pytest.approx(made["score"], abs=1e-4)


def test_a_text_that_lacks_the_cell_is_named_with_the_reason(client):
    refused = asked(client, "traces", texts=[TEXTS[0], "a"])
    assert refused.status_code == 422
    assert "there is no query 3" in refused.json()["detail"]
    assert "texts.1" in refused.json()["detail"] or "text 1" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"query": 2, "key": 3}, "does not see the key at 3: its weight is 0"),
        ({"query": 0, "key": 0}, "sees one key only, so there is nothing to compare it with"),
        ({"key": 99}, "there is no key 99"),
        ({"head": 99}, "there is no head 99"),
        ({"rival": 2}, "key and rival are both 2"),
        ({"attention": "nowhere"}, "there is no attention 'nowhere'"),
        ({"split": "9.9"}, "no head '9.9' writes what this cell reads"),
        ({"split": "0.ff"}, "network 0.ff cannot be split"),
    ],
)
def test_a_cell_that_there_is_not_is_refused_in_one_sentence(client, changes, sentence):
    refused = asked(client, "trace", text=TEXTS[0], score_attribution={**CELL, **changes})
    assert refused.status_code == 422
    assert sentence in refused.json()["detail"]


def test_special_tokens_and_edits_are_told_in_a_note(client):
    off = [{"kind": "heads_off", "heads": [0], "layer": 0}]
    made = asked(
        client, "trace", text=TEXTS[0], edits=off, score_attribution={**CELL, "key": 0}
    ).json()["analyses"]["score_attribution"]
    assert made["notes"][:2] == [
        "the key at 0 is <s>, which is no word of the text",
        "the parts are those of the pass with its edits",
    ]
