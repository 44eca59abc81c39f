"""The learning rate rises, stays and falls."""

import pytest

from model.training.schedule import warmup_stable_decay


def factors(steps: int, warmup: int, decay: int) -> list[float]:
    return [
        warmup_stable_decay(step, steps=steps, warmup=warmup, decay=decay) for step in range(steps)
    ]


def test_by_hand() -> None:
    assert factors(10, 4, 2) == [0.25, 0.5, 0.75, 1, 1, 1, 1, 1, 1, 0.5]
    assert factors(6, 0, 3) == pytest.approx([1, 1, 1, 1, 2 / 3, 1 / 3])


def test_no_step_is_made_with_a_rate_of_0() -> None:
    assert min(factors(100, 10, 30)) > 0


def test_a_short_run_neither_overshoots_nor_stops() -> None:
    assert all(0 < factor <= 1 for factor in factors(3, 90, 1))


def test_the_stable_part_does_not_depend_on_the_length_of_the_run() -> None:
    assert factors(1000, 10, 30)[:70] == factors(100, 10, 30)[:70]
