"""Sinusoidal positions: the formula, and what the formula promises."""

import math

import pytest
import torch

from model.positions import sinusoidal


def test_every_number_is_the_papers_formula() -> None:
    encoding = sinusoidal(50, 16)
    assert encoding.shape == (50, 16)
    for position in (0, 1, 7, 49):
        for pair in range(8):
            angle = position / 10_000 ** (2 * pair / 16)
            assert encoding[position, 2 * pair].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert encoding[position, 2 * pair + 1].item() == pytest.approx(
                math.cos(angle), abs=1e-6
            )


def test_position_0_is_sines_of_0_and_cosines_of_0() -> None:
    assert sinusoidal(1, 6).tolist() == [[0, 1, 0, 1, 0, 1]]


@pytest.mark.parametrize("shift", [1, 3, 40])
def test_a_shift_is_one_rotation_for_all_positions(shift: int) -> None:
    d_model = 16
    encoding = sinusoidal(100, d_model)
    rotation = torch.zeros(d_model, d_model)
    for pair in range(d_model // 2):
        angle = shift / 10_000 ** (2 * pair / d_model)
        cos, sin = math.cos(angle), math.sin(angle)
        place = slice(2 * pair, 2 * pair + 2)
        rotation[place, place] = torch.tensor([[cos, sin], [-sin, cos]])
    torch.testing.assert_close(encoding[shift:], encoding[:-shift] @ rotation.T, rtol=0, atol=1e-5)


def test_the_similarity_of_two_positions_depends_on_their_distance_alone() -> None:
    encoding = sinusoidal(60, 32)
    similarity = encoding @ encoding.T
    for distance in (0, 1, 5, 20):
        stripe = similarity.diagonal(offset=distance)
        torch.testing.assert_close(stripe, stripe[:1].expand_as(stripe), rtol=0, atol=1e-4)
    assert similarity[0, 0].item() == pytest.approx(16, abs=1e-5)
    assert similarity[0].argmax() == 0


def test_counting_may_start_anywhere() -> None:
    torch.testing.assert_close(sinusoidal(5, 8, start=20), sinusoidal(25, 8)[20:])


def test_far_positions_keep_their_digits() -> None:
    (encoding,) = sinusoidal(1, 4, start=1_000_000)
    angles = [1_000_000, 1_000_000 / 100]
    expected = [f(angle) for angle in angles for f in (math.sin, math.cos)]
    torch.testing.assert_close(encoding, torch.tensor(expected), rtol=0, atol=1e-7)


def test_the_encoding_is_float32_within_1() -> None:
    encoding = sinusoidal(300, 64)
    assert encoding.dtype == torch.float32
    assert encoding.abs().max() <= 1
