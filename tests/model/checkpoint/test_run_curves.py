"""The curves of a run: their points, their file, and what is damaged."""

import json
import math
from itertools import pairwise

import pytest

from headlight.model.checkpoint.files import CheckpointError
from headlight.model.checkpoint.loading import ZOO
from headlight.model.checkpoint.run_curves import (
    CURVES,
    curves_of,
    read_curves,
    to_json,
    write_curves,
)


def lines(count, **figures):
    return [
        {"step": step + 1, "valid_loss": 1.0 if step % 2 else None}
        | {name: value(step) for name, value in figures.items()}
        for step in range(count)
    ]


def picture(curves, title):
    return next((each for each in curves["pictures"] if each["title"] == title), None)


def test_a_point_is_the_mean_since_the_point_before():
    found = picture(curves_of(lines(150, rule=float)), "Points by the rule")
    (line,) = found["lines"]
    assert line["steps"] == [number * 150 // 60 for number in range(1, 61)]
    before = [0, *line["steps"]]
    assert line["values"] == [
        pytest.approx(sum(range(first, last)) / (last - first), rel=1e-3)
        for first, last in zip(before, line["steps"], strict=False)
    ]


@pytest.mark.parametrize("count", [61, 130, 340, 1300])
def test_no_point_has_fewer_steps_than_another_but_one(count):
    found = picture(curves_of(lines(count, rule=float)), "Points by the rule")
    steps = [0, *found["lines"][0]["steps"]]
    sizes = {last - first for first, last in pairwise(steps)}
    assert max(sizes) - min(sizes) <= 1
    assert (len(steps), steps[-1]) == (61, count)


def test_what_a_run_writes_in_nats_is_drawn_in_bits():
    found = picture(curves_of(lines(2, kl=lambda _: math.log(8))), "Divergence from the start")
    assert found["lines"][0]["values"] == [3, 3]


def test_the_loss_of_a_reward_model_is_that_of_a_pair():
    assert picture(curves_of(lines(4)), "Loss")["unit"] == "bits a token"
    assert picture(curves_of(lines(4), loss_of="a pair"), "Loss")["unit"] == "bits a pair"
    (rater,) = ZOO.glob("stories-reward")
    assert picture(read_curves(rater), "Loss")["unit"] == "bits a pair"


def test_a_figure_of_one_step_is_no_curve_nor_the_loss_of_a_policy():
    assert picture(curves_of(lines(1, rule=float)), "Points by the rule") is None
    assert picture(curves_of(lines(4, reward=float)), "Loss") is None


def test_a_run_writes_what_is_read(tmp_path):
    metrics = lines(8, loss=float)
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in metrics))
    assert read_curves(tmp_path) is None
    write_curves(tmp_path, tmp_path / "metrics.jsonl")
    assert read_curves(tmp_path) == curves_of(metrics)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "unexpected end"),
        ('{"pictures": [{"title": "Loss"}]}', "is malformed"),
        (
            to_json(curves_of(lines(4, loss=float))).replace("[1, 2, 3, 4]", "[1, 2]"),
            "is malformed",
        ),
    ],
)
def test_a_damaged_file_is_named(tmp_path, text, reason):
    (tmp_path / CURVES).write_text(text)
    with pytest.raises(CheckpointError, match=f"{CURVES}.*{reason}"):
        read_curves(tmp_path)
