"""Figures as a card holds them."""

import numpy as np
import yaml

from headlight.model.evaluation.figures import rounded


def test_every_float_is_rounded_to_four_digits_however_deep_it_lies() -> None:
    figures = {"a": 0.123456, "b": {"c": 0.99999, "d": {"e": 1 / 3}}, 7: 2.0}
    assert rounded(figures) == {"a": 0.1235, "b": {"c": 1.0, "d": {"e": 0.3333}}, 7: 2.0}


def test_what_is_no_float_stays() -> None:
    figures = {"count": 3, "is_there": True, "nothing": None, "name": "x"}
    assert rounded(figures) == figures


def test_the_figures_given_are_not_changed() -> None:
    figures = {"a": {"b": 0.123456}}
    rounded(figures)
    assert figures == {"a": {"b": 0.123456}}


def test_a_number_of_numpy_becomes_plain_data() -> None:
    found = rounded({"a": np.float64(0.123456)})
    assert yaml.safe_load(yaml.safe_dump(found)) == {"a": 0.1235}
