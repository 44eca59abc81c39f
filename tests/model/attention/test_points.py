"""The points of a softmax say what a pass asks for."""

import pytest
import torch

from headlight.model.attention.layer import MultiHeadAttention


@pytest.fixture
def part(make_config, watch):
    torch.manual_seed(0)
    return watch(MultiHeadAttention(make_config(positional="alibi", n_kv_heads=2)))


def test_an_idle_pass_asks_for_nothing(part):
    points = part.part.points
    asked = (points.sees_weights, points.needs_matrix, points.is_edited)
    assert asked == (False, False, False)
    assert (points.observed_names, points.hooked_heads, points.path) == ([], (), "")


@pytest.mark.parametrize(
    ("site", "sees_weights", "needs_matrix"),
    [
        ("scores", True, True),
        ("weights", True, True),
        ("bias", False, True),
        ("entropy", True, False),
        ("mean_map", True, False),
        ("queries", False, False),
        ("context", False, False),
    ],
)
def test_a_captured_site_asks_for_what_it_needs(part, site, sees_weights, needs_matrix):
    points = part.part.points
    with part.capture_sites([f"part.{site}"]):
        assert points.sees_weights == sees_weights
        assert points.needs_matrix == needs_matrix
        assert not points.is_edited
    with part.edit(f"part.{site}", lambda tensor: tensor):
        assert points.is_edited == (site in ("scores", "weights", "bias"))


def test_heads_are_those_of_scores_and_weights(part):
    points = part.part.points
    with part.capture_sites(["part.scores"], (2,)), part.capture_sites(["part.weights"], (0,)):
        assert points.hooked_heads == (0, 2)


def test_the_path_is_known_while_something_is_observed(part):
    points = part.part.points
    with part.capture_sites(["part.max_map", "part.entropy"]):
        assert points.observed_names == ["entropy", "max_map"]
        assert points.path == "part"


def test_what_was_observed_passes_its_points(part):
    entropy = torch.rand(1, 4, 5)
    with part.capture_sites(["part.entropy"]) as captured:
        part.part.points.report({"entropy": entropy})
    assert captured["part.entropy"].equal(entropy)


def test_distances_between_two_texts_have_no_point(make_config):
    crossed = MultiHeadAttention(make_config(), is_causal=False, is_cross=True)
    assert "mean_distance" not in crossed.points.observed
    assert "mean_distance" in MultiHeadAttention(make_config()).points.observed
