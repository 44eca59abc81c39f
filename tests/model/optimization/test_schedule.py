"""The learning rate rises, stays and falls, by hand and against PyTorch's."""

import warnings

import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

from headlight.model.optimization.schedule import SCHEDULES, cosine, noam, warmup_stable_decay


def factors(steps, warmup, decay):
    return [
        warmup_stable_decay(step, steps=steps, warmup=warmup, decay=decay) for step in range(steps)
    ]


def pytorch_factors(steps, warmup, floor):
    """PyTorch's factors of a rate of 1: a line to 1 in the warmup's last step, then the cosine.

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
def test_every_factor_lies_above_0_and_up_to_1(name, steps, warmup, decay):
    schedule = SCHEDULES[name]
    made = [schedule(n, steps=steps, warmup=warmup, decay=decay) for n in range(steps)]
    assert all(0 < factor <= 1 for factor in made)


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule_rises_in_a_line_to_its_peak_and_never_rises_again(name):
    made = [SCHEDULES[name](n, steps=100, warmup=8, decay=30) for n in range(100)]
    assert made[:8] == [n / 8 for n in range(1, 9)]
    assert made[7:] == sorted(made[7:], reverse=True)
    assert made[99] < 0.5


# --- warmup, stable, decay ------------------------------------------------------------------------


def test_by_hand():
    assert factors(10, 4, 2) == [0.25, 0.5, 0.75, 1, 1, 1, 1, 1, 1, 0.5]
    assert factors(6, 0, 3) == pytest.approx([1, 1, 1, 1, 2 / 3, 1 / 3])


# --- cosine ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [20, 101])
@pytest.mark.parametrize("warmup", [0, 1, 7])
@pytest.mark.parametrize("floor", [0.0, 0.1])
def test_the_cosine_is_pytorchs(steps, warmup, floor):
    expected = pytorch_factors(steps, warmup, floor)
    factors = [cosine(step, steps=steps, warmup=warmup, floor=floor) for step in range(steps)]
    assert factors == pytest.approx(expected, abs=1e-12)


def test_the_cosine_stays_on_its_floor_of_a_tenth_after_the_last_step():
    def call(step):
        return cosine(step, steps=50, warmup=5)

    assert call(50) == call(51) == call(200) == pytest.approx(0.1)
    assert call(49) > 0.1


# --- noam -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d_model", "warmup"), [(512, 4000), (192, 1), (64, 37)])
def test_noam_is_the_formula_of_the_paper_once_scaled(d_model, warmup):
    peak = d_model**-0.5 * warmup**-0.5
    for step in [0, 1, 2, 35, 36, 37, 3998, 3999, 4000, 99_999]:
        n = step + 1
        expected = d_model**-0.5 * min(n**-0.5, n * warmup**-1.5)
        assert peak * noam(step, warmup=warmup) == pytest.approx(expected, rel=1e-12)
