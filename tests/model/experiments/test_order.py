"""Permuted sentences against the theory, and the turn of the encoding against the encoding."""

import numpy as np
import pytest
from pydantic import ValidationError

from headlight.model.experiments.order import EXPERIMENT, positions
from headlight.model.positions import sinusoidal


@pytest.mark.parametrize("order", ["reversed", "shuffled", "rotated"])
def test_without_positions_only_the_rows_are_permuted(order):
    result = EXPERIMENT.result({"order": order, "seed": 7})
    without, with_positions = result["difference"].data
    assert without.max() < 1e-12
    assert with_positions.max() > 0.05
    weights, permuted = result["weights"].data, result["permuted_weights"].data
    np.testing.assert_allclose(permuted[0], weights[0], atol=1e-12)
    assert np.abs(permuted[1] - weights[1]).max() > 0.05
    place = result["place"].data
    assert sorted(place) == list(range(len(place)))
    assert (place != np.arange(len(place))).any()


def test_equal_words_have_equal_weights_only_without_positions():
    result = EXPERIMENT.result({"text": "one two one three"})
    without, with_positions = result["weights"].data
    np.testing.assert_allclose(without[0], without[2], atol=1e-12)
    assert np.abs(with_positions[0] - with_positions[2]).max() > 1e-3
    np.testing.assert_allclose(result["weights"].data.sum(axis=-1), 1)


def test_the_encoding_is_that_of_the_models():
    np.testing.assert_allclose(positions(40, 16), sinusoidal(40, 16).numpy(), atol=1e-7)


@pytest.mark.parametrize(("position", "offset"), [(0, 0), (3, 5), (100, -40), (500, 500)])
def test_a_turned_encoding_is_the_encoding_of_the_later_position(position, offset):
    result = EXPERIMENT.result({"position": position, "offset": offset, "d_model": 64})
    np.testing.assert_allclose(result["turned"].data, result["end"].data, atol=1e-12)
    expected = positions(position + offset + 1, 64)[-1].reshape(-1, 2)
    np.testing.assert_allclose(result["end"].data, expected)
    np.testing.assert_allclose(result["angle"].data, offset * result["frequency"].data)
    assert result["frequency"].data[0] == 1


def test_products_depend_only_on_the_distance():
    result = EXPERIMENT.result({"position": 10})
    from_zero, from_ten = result["products"].data
    np.testing.assert_allclose(from_ten[10:], from_zero[:-10], atol=1e-9)
    np.testing.assert_allclose(from_ten[10::-1], from_zero[:11], atol=1e-9)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"text": "alone"}, "text has 1 words; 2 to 24 are needed"),
        ({"text": "a " * 25}, "text has 25 words; 2 to 24 are needed"),
        ({"pair": 8, "d_model": 16}, "must be below 8, half of d_model"),
        ({"position": 3, "offset": -4}, "is below 0, the first position"),
    ],
)
def test_what_does_not_fit_is_named(values, message):
    with pytest.raises(ValidationError, match=message):
        EXPERIMENT.validate(values)
