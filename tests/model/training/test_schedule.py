"""The learning rate rises, stays and falls, by hand and against PyTorch's."""

import math
import warnings

import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

from headlight.model.training.schedule import SCHEDULES, cosine, noam, warmup_stable_decay


def factors(steps: int, warmup: int, decay: int) -> list[float]:
    return [
        warmup_stable_decay(step, steps=steps, warmup=warmup, decay=decay) for step in range(steps)
    ]


def cosine_factors(steps: int, warmup: int, floor: float) -> list[float]:
    return [cosine(step, steps=steps, warmup=warmup, floor=floor) for step in range(steps)]


def pytorch_factors(steps: int, warmup: int, floor: float) -> list[float]:
    """What PyTorch makes of a rate of 1: the line to 1 in the warmup's last step, then the cosine.

    Its cosine begins at the step after the warmup.
    """
    optimizer = torch.optim.SGD([torch.zeros(1, dtype=torch.float64)], lr=1.0)
    fall = CosineAnnealingLR(optimizer, T_max=steps - warmup, eta_min=floor)
    if warmup:
        rise = LinearLR(optimizer, start_factor=1 / warmup, total_iters=warmup - 1)
        schedule = SequentialLR(optimizer, [rise, fall], milestones=[warmup])
    rates = []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        with warnings.catch_warnings(action="ignore"):  # SequentialLR calls its parts in a way
            (schedule if warmup else fall).step()  # that they themselves deprecate
    return rates


# --- every schedule -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize(
    ("steps", "warmup", "decay"), [(100, 10, 30), (3, 90, 1), (1, 0, 0), (10, 10, 10), (7, 1, 7)]
)
def test_every_factor_lies_above_0_and_up_to_1(
    name: str, steps: int, warmup: int, decay: int
) -> None:
    schedule = SCHEDULES[name]
    made = [schedule(n, steps=steps, warmup=warmup, decay=decay) for n in range(steps)]
    assert all(0 < factor <= 1 for factor in made)


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule_rises_in_a_line_to_its_peak_and_never_rises_again(name: str) -> None:
    made = [SCHEDULES[name](n, steps=100, warmup=8, decay=30) for n in range(100)]
    assert made[:8] == [n / 8 for n in range(1, 9)]
    assert made[7:] == sorted(made[7:], reverse=True)
    assert made[99] < 0.5


def test_schedules_are_found_by_their_names() -> None:
    assert all(name == schedule.__name__ for name, schedule in SCHEDULES.items())
    assert set(SCHEDULES) == {"warmup_stable_decay", "cosine", "noam"}


# --- warmup, stable, decay ------------------------------------------------------------------------


def test_by_hand() -> None:
    assert factors(10, 4, 2) == [0.25, 0.5, 0.75, 1, 1, 1, 1, 1, 1, 0.5]
    assert factors(6, 0, 3) == pytest.approx([1, 1, 1, 1, 2 / 3, 1 / 3])


def test_no_step_is_made_with_a_rate_of_0() -> None:
    assert min(factors(100, 10, 30)) > 0


def test_a_short_run_neither_overshoots_nor_stops() -> None:
    assert all(0 < factor <= 1 for factor in factors(3, 90, 1))


def test_the_stable_part_does_not_depend_on_the_length_of_the_run() -> None:
    assert factors(1000, 10, 30)[:70] == factors(100, 10, 30)[:70]


# --- cosine ---------------------------------------------------------------------------------------


def test_the_cosine_by_hand() -> None:
    half = math.sqrt(0.5)
    expected = [0.5, 1, 1, (1 + half) / 2, 0.5, (1 - half) / 2]
    assert cosine_factors(6, 2, 0.0) == pytest.approx(expected, abs=1e-15)
    assert cosine_factors(4, 0, 0.5) == pytest.approx([1, (3 + half) / 4, 0.75, (3 - half) / 4])


@pytest.mark.parametrize("steps", [20, 101])
@pytest.mark.parametrize("warmup", [0, 1, 7])
@pytest.mark.parametrize("floor", [0.0, 0.1])
def test_the_cosine_is_pytorchs(steps: int, warmup: int, floor: float) -> None:
    expected = pytorch_factors(steps, warmup, floor)
    assert cosine_factors(steps, warmup, floor) == pytest.approx(expected, abs=1e-12)


def test_the_cosine_stays_on_its_floor_of_a_tenth_after_the_last_step() -> None:
    def call(step: int) -> float:
        return cosine(step, steps=50, warmup=5)

    assert call(50) == call(51) == call(200) == pytest.approx(0.1)
    assert call(49) > 0.1


def test_a_cosine_shorter_than_its_warmup_only_rises() -> None:
    assert cosine_factors(3, 4, 0.1) == [0.25, 0.5, 0.75]


# --- noam -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d_model", "warmup"), [(512, 4000), (192, 1), (64, 37)])
def test_noam_is_the_formula_of_the_paper_once_scaled(d_model: int, warmup: int) -> None:
    peak = d_model**-0.5 * warmup**-0.5
    for step in [0, 1, 2, 35, 36, 37, 3998, 3999, 4000, 99_999]:
        n = step + 1
        expected = d_model**-0.5 * min(n**-0.5, n * warmup**-1.5)
        assert peak * noam(step, warmup=warmup) == pytest.approx(expected, rel=1e-12)


def test_noam_by_hand() -> None:
    assert [noam(step, warmup=4) for step in (0, 1, 3, 8, 15)] == [0.25, 0.5, 1, 2 / 3, 0.5]
    assert [noam(step, warmup=0) for step in (0, 3)] == [1, 0.5]


def test_noam_does_not_depend_on_the_length_of_the_run() -> None:
    short, long = (
        [noam(step, steps=steps, warmup=9, decay=decay) for step in range(50)]
        for steps, decay in ((50, 20), (1000, 5))
    )
    assert short == long
