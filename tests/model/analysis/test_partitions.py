"""How far two divisions of the same things agree."""

import itertools
import math

import numpy as np
import pytest

from headlight.model.analysis.partitions import (
    adjusted_mutual_information,
    expected_mutual_information,
)


def mutual_information(first: tuple[int, ...], second: tuple[int, ...]) -> float:
    """Σ p(a, b)·ln(p(a, b)/(p(a)·p(b))), counted pair by pair."""
    pairs = list(zip(first, second, strict=True))
    total = len(pairs)
    return sum(
        pairs.count((a, b))
        / total
        * math.log(total * pairs.count((a, b)) / (first.count(a) * second.count(b)))
        for a, b in set(pairs)
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((0, 0, 1, 1, 2, 2, 2), (0, 0, 0, 1, 1, 1, 2)),
        ((0, 1, 1, 1, 1, 1), (0, 0, 0, 1, 1, 1)),
        ((0, 1, 2, 3, 4), (0, 0, 0, 0, 1)),
    ],
)
def test_chance_is_the_mean_over_every_shuffle(
    first: tuple[int, ...], second: tuple[int, ...]
) -> None:
    shuffles = [mutual_information(first, other) for other in itertools.permutations(second)]
    found = expected_mutual_information(np.bincount(first), np.bincount(second))
    assert found == pytest.approx(sum(shuffles) / len(shuffles))


def test_two_halves_across_each_other_by_hand() -> None:
    # I = 0. Of the shuffles a third gives the same halves, I = ln 2, so E[I] = ln 2/3:
    # (0 − ln 2/3)/(ln 2 − ln 2/3) = −1/2.
    first, second = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    assert adjusted_mutual_information(first, second) == pytest.approx(-0.5)


def test_it_is_the_formula_on_random_divisions() -> None:
    drawn = np.random.default_rng(0)
    first, second = drawn.integers(3, size=7), drawn.integers(2, size=7)
    one, other = tuple(first.tolist()), tuple(second.tolist())
    chance = np.mean([mutual_information(one, each) for each in itertools.permutations(other)])
    room = (mutual_information(one, one) + mutual_information(other, other)) / 2 - chance
    expected = (mutual_information(one, other) - chance) / room
    assert adjusted_mutual_information(first, second) == pytest.approx(expected)


def test_the_names_of_the_groups_do_not_matter() -> None:
    drawn = np.random.default_rng(1)
    first, second = drawn.integers(4, size=50), drawn.integers(4, size=50)
    renamed = np.array([2, 0, 3, 1])
    assert adjusted_mutual_information(first, renamed[first]) == pytest.approx(1)
    assert adjusted_mutual_information(first, renamed[second]) == pytest.approx(
        adjusted_mutual_information(first, second)
    )


def test_it_is_symmetric() -> None:
    drawn = np.random.default_rng(2)
    first, second = drawn.integers(4, size=30), drawn.integers(6, size=30)
    assert adjusted_mutual_information(first, second) == pytest.approx(
        adjusted_mutual_information(second, first)
    )


def test_divisions_that_have_nothing_to_do_with_each_other_give_0_on_average() -> None:
    drawn = np.random.default_rng(3)
    pairs = drawn.integers(8, size=(400, 2, 20))
    found = [adjusted_mutual_information(first, second) for first, second in pairs]
    assert abs(np.mean(found)) < 0.02


@pytest.mark.parametrize("same", [[0, 0, 0], [0, 1, 2], [5]])
def test_divisions_that_leave_no_room_for_chance_agree(same: list[int]) -> None:
    assert adjusted_mutual_information(np.array(same), np.array(same)) == 1


def test_all_in_one_group_says_nothing_of_another_division() -> None:
    assert adjusted_mutual_information(np.array([0, 0, 0, 0]), np.array([0, 1, 2, 2])) == 0


def test_a_long_text_does_not_overflow() -> None:
    drawn = np.random.default_rng(4)
    first, second = drawn.integers(8, size=(2, 4096))
    assert abs(adjusted_mutual_information(first, second)) < 0.01
