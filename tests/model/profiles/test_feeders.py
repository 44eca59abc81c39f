"""The heads that feed a head are measured over its strongest cells, against shuffled heads."""

import json

import pytest

from headlight.model.checkpoint.loading import ZOO, load
from headlight.model.checkpoint.profile import HEADS, read_profile, to_json
from headlight.model.profiles.feeders import measure_feeders

PATH = "decoder.layers.1.self_attention"


@pytest.fixture(scope="module")
def stories():
    return load(ZOO / "stories")


def only(profile, chosen, *heads):
    """Return a profile in which only some heads of an attention have strongest cells."""
    attentions = {
        path: [
            head if path == chosen and number in heads else {**head, "strongest": []}
            for number, head in enumerate(of_path)
        ]
        for path, of_path in profile["attentions"].items()
    }
    return {**profile, "attentions": attentions}


def test_the_induction_heads_of_stories_are_fed_by_the_head_on_the_token_before(stories):
    measured = measure_feeders(stories, only(stories.description.heads, PATH, 0, 1))
    for head in (0, 1):
        first = measured[PATH][head]["keys"][0]
        assert first["name"] == "0.1"
        assert first["share"] > 0.3 > 10 * abs(first["control"])
    feeder = stories.description.heads["attentions"]["decoder.layers.0.self_attention"][1]
    assert feeder["labels"][0] == "previous"


def test_no_head_feeds_one_of_the_first_layer(stories):
    first = "decoder.layers.0.self_attention"
    measured = measure_feeders(stories, only(stories.description.heads, first, 1))
    for head in measured[first]:
        assert head == {"queries": [], "keys": [], "values": []}


def test_what_ships_is_what_is_measured(stories):
    model = load(ZOO / "positions-learned")
    measured = measure_feeders(model, model.description.heads)
    for path, heads in model.description.heads["feeders"].items():
        for stored, head in zip(heads, measured[path], strict=True):
            for side, feeders in stored.items():
                assert [each["name"] for each in feeders] == [each["name"] for each in head[side]]
                for each, again in zip(feeders, head[side], strict=True):
                    assert each["share"] == pytest.approx(again["share"], abs=1e-3)


@pytest.mark.parametrize("name", sorted(each.parent.name for each in ZOO.glob(f"*/{HEADS}")))
def test_every_profile_that_ships_names_feeders_before_each_head(name):
    profile = json.loads((ZOO / name / HEADS).read_text("utf-8"))
    assert profile["feeders"].keys() == profile["attentions"].keys()
    for path, heads in profile["feeders"].items():
        layer = int(path.split(".")[2])
        for head in heads:
            for feeder in (each for side in head.values() for each in side):
                prefix = feeder["name"].rpartition(".")[0]
                number = int(prefix.rpartition(".")[2])
                assert number < layer or path.endswith("cross_attention") or "cross" in prefix
                assert feeder["share"] >= 0.05


def test_an_older_profile_without_feeders_is_read(stories, tmp_path):
    profile = {name: each for name, each in stories.description.heads.items() if name != "feeders"}
    (tmp_path / HEADS).write_text(to_json(profile), "utf-8")
    assert read_profile(tmp_path, profile["revision"]) == profile


@pytest.mark.parametrize("name", ["stories", "stories-preferred", "stories-reward"])
def test_every_shipped_decoder_with_an_induction_head_has_the_pair(name):
    profile = json.loads((ZOO / name / HEADS).read_text("utf-8"))
    heads = {
        f"{path.split('.')[2]}.{number}": (head, profile["feeders"][path][number])
        for path, of_path in profile["attentions"].items()
        for number, head in enumerate(of_path)
    }
    induction = [feeders for head, feeders in heads.values() if "repetition" in head["labels"]]
    assert induction
    for feeders in induction:
        assert "previous" in heads[feeders["keys"][0]["name"]][0]["labels"]


@pytest.mark.parametrize("name", ["alibi", "learned", "rotary", "sinusoidal"])
def test_the_twins_of_two_layers_have_none(name):
    profile = json.loads((ZOO / f"positions-{name}" / HEADS).read_text("utf-8"))
    heads = [head for of_path in profile["attentions"].values() for head in of_path]
    assert not any({"induction", "repetition"} & {*head["labels"]} for head in heads)
