"""Every positional encoding is its formula and has the properties that the formula promises."""

import math

import pytest
import torch

from headlight.model.checkpoint.checkpoint import learned_encoding
from headlight.model.config import TransformerConfig
from headlight.model.positions import (
    alibi_bias,
    alibi_encoding,
    alibi_slopes,
    rotary_encoding,
    rotate,
    sinusoidal,
    sinusoidal_encoding,
)
from headlight.model.transformer import Transformer

SIZES = {"n_layers": 1, "n_heads": 3, "d_model": 12, "d_ff": 8, "vocab_size": 20, "max_tokens": 9}

# --- sinusoidal ----------------------------------------------------------------------------------


def test_every_number_is_the_papers_formula():
    encoding = sinusoidal(50, 16)
    assert encoding.shape == (50, 16)
    for position in (0, 1, 7, 49):
        for pair in range(8):
            angle = position / 10_000 ** (2 * pair / 16)
            assert encoding[position, 2 * pair].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert encoding[position, 2 * pair + 1].item() == pytest.approx(
                math.cos(angle), abs=1e-6
            )


@pytest.mark.parametrize("shift", [1, 3, 40])
def test_a_shift_is_one_rotation_for_all_positions(shift):
    d_model = 16
    encoding = sinusoidal(100, d_model)
    rotation = torch.zeros(d_model, d_model)
    for pair in range(d_model // 2):
        angle = shift / 10_000 ** (2 * pair / d_model)
        cos, sin = math.cos(angle), math.sin(angle)
        place = slice(2 * pair, 2 * pair + 2)
        rotation[place, place] = torch.tensor([[cos, sin], [-sin, cos]])
    torch.testing.assert_close(encoding[shift:], encoding[:-shift] @ rotation.T, rtol=0, atol=1e-5)


def test_the_similarity_of_two_positions_depends_on_their_distance_alone():
    encoding = sinusoidal(60, 32)
    similarity = encoding @ encoding.T
    for distance in (0, 1, 5, 20):
        stripe = similarity.diagonal(offset=distance)
        torch.testing.assert_close(stripe, stripe[:1].expand_as(stripe), rtol=0, atol=1e-4)
    assert similarity[0, 0].item() == pytest.approx(16, abs=1e-5)
    assert similarity[0].argmax() == 0


def test_far_positions_keep_their_digits():
    (encoding,) = sinusoidal(1, 4, start=1_000_000)
    angles = [1_000_000, 1_000_000 / 100]
    expected = [f(angle) for angle in angles for f in (math.sin, math.cos)]
    torch.testing.assert_close(encoding, torch.tensor(expected), rtol=0, atol=1e-7)


# --- rotary ---------------------------------------------------------------------------------------


@pytest.fixture
def vectors():
    """Two rows of three heads, ten positions, width 8."""
    return torch.randn(2, 3, 10, 8, generator=torch.Generator().manual_seed(0))


def test_every_pair_is_turned_by_the_papers_angle(vectors):
    turned = rotate(vectors, start=4)
    for place in range(10):
        for pair in range(4):
            angle = (4 + place) / 10_000 ** (2 * pair / 8)
            spin = torch.tensor(
                [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
            )
            here = slice(2 * pair, 2 * pair + 2)
            expected = vectors[..., place, here] @ spin.T
            torch.testing.assert_close(turned[..., place, here], expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("shift", [1, 7, 500])
def test_rotary_scores_depend_on_the_distance_alone(vectors, shift):
    queries, keys = vectors[0], vectors[1]
    here = rotate(queries, start=3) @ rotate(keys).transpose(-2, -1)
    there = rotate(queries, start=3 + shift) @ rotate(keys, start=shift).transpose(-2, -1)
    torch.testing.assert_close(there, here, rtol=0, atol=1e-5)
    elsewhere = rotate(queries, start=3 + shift) @ rotate(keys).transpose(-2, -1)
    assert not torch.allclose(elsewhere, here, atol=1e-2)


def test_far_rotations_keep_their_digits():
    turned = rotate(torch.tensor([[1.0, 0.0]]), start=1_000_000)
    expected = [math.cos(1_000_000), math.sin(1_000_000)]
    torch.testing.assert_close(turned[0], torch.tensor(expected), rtol=0, atol=1e-7)


# --- ALiBi ----------------------------------------------------------------------------------------

HALVES = [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]


@pytest.mark.parametrize(
    ("n_heads", "slopes"),
    [
        (1, [1 / 256]),
        (2, [1 / 16, 1 / 256]),
        (3, [1 / 16, 1 / 256, 1 / 4]),
        (8, HALVES),
        # Those of 8 heads, then the first, third, fifth and seventh of 16.
        (12, [*HALVES, 2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5]),
        (16, [2 ** -(head / 2) for head in range(1, 17)]),
    ],
)
def test_slopes_follow_the_papers_rule(n_heads, slopes):
    torch.testing.assert_close(alibi_slopes(n_heads), torch.tensor(slopes))


def test_the_bias_grows_by_the_slope_with_every_step_away():
    bias = alibi_bias(2, 2, 4)
    steps = torch.tensor([[-2.0, -1.0, 0.0, -1.0], [-3.0, -2.0, -1.0, 0.0]])
    torch.testing.assert_close(bias, torch.stack([steps / 16, steps / 256]))
    assert not bias[bias == 0].signbit().any()  # no −0


def test_the_bias_of_the_last_queries_is_the_last_rows_of_all():
    assert alibi_bias(6, 3, 9).equal(alibi_bias(6, 9, 9)[:, -3:])


# --- as named arrays: those that a model computes with a text -------------------------------------


def captured(site, length, **choices):
    """Return the activation of a model at a site for a text of that length."""
    model = Transformer(TransformerConfig(**SIZES, **choices))
    with torch.no_grad(), model.capture([site]) as found:
        model(torch.arange(length)[None])
    return found[site]


def test_sinusoidal_is_what_a_model_adds():
    arrays = sinusoidal_encoding(7, 12)
    added = captured("decoder.embedding.positional", 7)
    assert arrays["encoding"].axes == ("position", "d_model")
    torch.testing.assert_close(torch.from_numpy(arrays["encoding"].data), added)


def test_frequencies_are_the_papers():
    found = sinusoidal_encoding(1, 8)["frequencies"]
    assert found.axes == ("pair",)
    assert found.data.tolist() == pytest.approx([1, 0.1, 0.01, 0.001])


def test_rotary_angles_turn_as_rotate_does():
    arrays = rotary_encoding(6, 4)
    assert {array.axes for array in arrays.values()} == {("position", "pair")}
    turned = rotate(torch.tensor([1.0, 0.0, 1.0, 0.0]).expand(6, 4))
    torch.testing.assert_close(torch.from_numpy(arrays["cos"].data), turned[:, 0::2])
    torch.testing.assert_close(torch.from_numpy(arrays["sin"].data), turned[:, 1::2])
    assert arrays["angles"].data[5].tolist() == pytest.approx([5, 0.05])


def test_alibi_is_the_bias_of_a_model_with_as_many_heads():
    arrays = alibi_encoding(5, 3)
    bias = captured("decoder.layers.0.self_attention.bias", 5, positional="alibi")
    torch.testing.assert_close(torch.from_numpy(arrays["bias"].data), bias)
    assert arrays["bias"].data[1, 4, 3] == -arrays["slopes"].data[1]
    assert arrays["slopes"].axes == ("head",)


def test_learned_is_the_start_of_the_models_own_table():
    model = Transformer(TransformerConfig(**SIZES, positional="learned"))
    (found,) = learned_encoding(model, 4).values()
    torch.testing.assert_close(
        torch.from_numpy(found.data), model.decoder.embedding.positions.weight.detach()[:4]
    )


def test_both_stacks_of_an_encoder_decoder_have_a_table():
    config = TransformerConfig(**SIZES, positional="learned", kind="encoder-decoder")
    arrays = learned_encoding(Transformer(config), 9)
    assert {name: array.data.shape for name, array in arrays.items()} == {
        "encoder.encoding": (9, 12),
        "decoder.encoding": (9, 12),
    }
