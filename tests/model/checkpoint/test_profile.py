"""The file of head profiles: its labels, its shape, and the revision it belongs to."""

import json

import pytest

from headlight.model.checkpoint.files import CheckpointError
from headlight.model.checkpoint.loading import describe
from headlight.model.checkpoint.profile import HEADS, labels_of, read_profile, to_json

PROFILE = {
    "text": ["held out.txt"],
    "revision": "r",
    "sentences": 1,
    "tokens": 9,
    "bits_per_byte": 1.5,
    "controlled": {"subject": 360},
    "attentions": {
        "decoder.layers.0.self_attention": [
            {
                "labels": ["previous"],
                "scores": {"previous": {"score": 0.9, "control": 0.1}},
                "entropy": 0.5,
                "distance": 1.0,
                "cost": 0.01,
                "strongest": [
                    {
                        "sentence": 0,
                        "query": 2,
                        "key": 1,
                        "weight": 0.99,
                        "query_span": [2, 5],
                        "key_span": [0, 1],
                    }
                ],
            }
        ]
    },
    "examples": [{"text": "A cät “sat”.", "target": ""}],
}


def scored(**scores):
    return {name: {"score": score, "control": control} for name, (score, control) in scores.items()}


def test_a_head_has_every_label_that_is_twice_its_control():
    scores = scored(previous=(0.3, 0.12), sink=(0.44, 0.23), punctuation=(0.31, 0.15))
    assert labels_of(scores) == ["punctuation", "previous"]
    assert labels_of(scored(subject=(0.49, 0.2), antecedent=(0.37, 0.36))) == ["subject"]
    assert labels_of(scored(induction=(0.2, 0.01))) == [], "a quarter is the least"


def test_parts_of_the_sink_are_no_labels_and_breadth_needs_no_control():
    scores = scored(first_word=(0.86, 0.1), sink=(0.92, 0.2), broad=(0.91, 0), monotonic=(0.4, 0))
    assert labels_of(scores) == ["sink", "broad"]


def test_a_profile_is_read_back_unchanged(tmp_path):
    assert read_profile(tmp_path, "r") is None
    (tmp_path / HEADS).write_text(to_json(PROFILE), encoding="utf-8")
    assert read_profile(tmp_path, "r") == PROFILE


def test_a_profile_of_other_weights_counts_for_nothing(tmp_path):
    (tmp_path / HEADS).write_text(to_json(PROFILE), encoding="utf-8")
    assert read_profile(tmp_path, "another") is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", json.dumps({**PROFILE, "tokens": "many"}), "[" * 100_000]
)
def test_a_damaged_profile_is_refused(tmp_path, text):
    (tmp_path / HEADS).write_text(text, encoding="utf-8")
    with pytest.raises(CheckpointError, match=HEADS):
        read_profile(tmp_path, "r")


def test_the_description_of_a_model_has_its_profile(make_folder):
    folder = make_folder()
    assert describe(folder).heads is None
    profile = {**PROFILE, "revision": describe(folder).revision}
    (folder / HEADS).write_text(to_json(profile), encoding="utf-8")
    assert describe(folder).heads == profile
