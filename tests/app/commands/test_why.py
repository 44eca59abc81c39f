"""The thread of a prediction as lines: `headlight why`, and `why` of a loaded model."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from headlight import load
from headlight.cli import app
from headlight.client.thread import lines_of
from headlight.model.trace import Token

STORY = "The red fox ran. The blue dog sat. The red"


def run(*arguments):
    return CliRunner().invoke(app, ["why", *arguments])


def test_each_step_has_its_share_and_what_is_left_without_it():
    result = run("stories", STORY, "--token", " fox", "--against", " dog")
    assert result.exit_code == 0, result.output
    first, *rest = " ".join(result.output.split()).split(" 1. ")
    assert first.startswith("“ fox” rather than “ dog”: +")
    assert "makes" in rest[0]
    assert "→logits, the difference goes from" in rest[0]
    assert "The largest part of it came from the token" in rest[0]
    assert "“s” of “keys” (3)" in run("stories", "The keys to the cabinet").output


def test_json_has_the_steps_of_the_analysis():
    result = run("stories", STORY, "--json")
    thread = json.loads(result.output)["analyses"]["attention_thread"]
    assert thread["steps"][0]["side"] == "logits"
    assert thread["steps"][0]["edge"].endswith("→logits")


def test_a_token_that_is_none_is_an_error_in_one_sentence():
    result = run("stories", STORY, "--token", "no such token at all")
    assert result.exit_code != 0
    assert "is not one token" in " ".join(result.output.split())


def test_a_loaded_model_says_the_same_lines_and_shows_its_page(tmp_path):
    model = load("stories")
    why = model.why(STORY, token=" fox", against=" dog")
    printed = " ".join(run("stories", STORY, "--token", " fox", "--against", " dog").output.split())
    assert " ".join(repr(why).split()) == printed
    page = why.show().html
    assert '"#view=word&word_show=thread&query=12&token=' in page.replace("\\u0026", "&")
    with pytest.raises(ValueError, match="is not one token"):
        model.why(STORY, token="no such token at all")


class Told:
    """A trace whose thread is written by hand."""

    text = "ab"
    tokens = tuple(
        Token(id=at, text=text, start=0, end=1, word=at, is_special=False)
        for at, text in enumerate(("a", "b"))
    )
    target_tokens = None

    def __init__(self, **changes):
        step = {
            "name": "1.1",
            "kind": "head",
            "side": "logits",
            "share": 0.5,
            "others": [],
            "opposite": None,
            "attention": "decoder.layers.1.self_attention",
            "head": 1,
            "query": 1,
            "key": 0,
            "weight": 0.75,
            "adds": [1.0, -2.0],
            "edge": "1.1→logits",
            "before": 3.0,
            "after": 1.0,
            **changes,
        }
        thread = {"token": {"text": "a"}, "against": {"text": "b"}, "steps": [step]}
        self.both = self, {**thread, "logits": np.array([3.0, 0.0])}


def test_a_head_that_writes_against_the_rival_is_told_so():
    assert "speaks against “b”" in " ".join(lines_of(*Told().both))
    assert "speaks against" not in " ".join(lines_of(*Told(adds=[2.0, -1.0]).both))


def test_a_part_that_changes_nothing_is_told_so():
    assert "other parts stand in" not in " ".join(lines_of(*Told().both))
    assert "other parts stand in" in " ".join(lines_of(*Told(after=2.9).both))


def test_a_part_is_the_cause_only_if_half_of_the_weight_is_lost_without_it():
    key = {"side": "key", "opposite": {"name": "0.ff", "share": 0.1}, "before": 0.8}
    assert "because of head 1.1" in " ".join(lines_of(*Told(**key, after=0.1).both))
    assert "because" not in " ".join(lines_of(*Told(**key, after=0.5).both))
