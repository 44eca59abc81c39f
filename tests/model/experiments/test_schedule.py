"""Schedules against the project's and PyTorch's; optimizers against closed forms."""

import numpy as np
import pytest

from headlight.model.experiments.schedule import EXPERIMENT, OPTIMIZERS
from headlight.model.optimization.schedule import SCHEDULES


def result(**values):
    return EXPERIMENT.result(
        {"steps": 60, "warmup": 6, "decay": 12, "optimizer_steps": 30} | values
    )


def path(name, **values):
    return result(**values)["path"].data[OPTIMIZERS.index(name)]


def factors(name, **values):
    arrays = result(**values)
    return arrays["factor"].data[arrays["schedule"].data.tolist().index(name)]


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_factors_are_those_of_training(name):
    expected = [SCHEDULES[name](step, steps=60, warmup=6, decay=12) for step in range(60)]
    assert factors(name).tolist() == expected


def test_sgd_on_a_ravine_shrinks_each_coordinate_by_one_minus_rate_times_curvature():
    points = path("sgd", x=1.0, y=2.0, curvature=10.0, sgd_rate=0.05)
    powers = np.arange(31)
    assert points[:, 0] == pytest.approx(0.95**powers)
    assert points[:, 1] == pytest.approx(2 * 0.5**powers)


@pytest.mark.parametrize(("rate", "grows"), [(0.19, False), (0.21, True)])
def test_sgd_diverges_above_two_over_the_curvature(rate, grows):
    distances = np.abs(path("sgd", curvature=10.0, sgd_rate=rate)[:, 1])
    assert (distances[-1] > distances[0]) == grows


def test_momentum_by_hand():
    points = path("momentum", x=1.0, y=0.0, sgd_rate=0.1, momentum=0.5)
    # velocities 1, 0.5·1 + 0.9, … of the gradient x.
    assert points[:3, 0] == pytest.approx([1, 0.9, 0.9 - 0.1 * 1.4])


def test_the_first_step_of_adam_has_the_length_of_the_rate_in_each_direction():
    points = path("adam", x=2.0, y=-1.0, weight_decay=0.0, adam_rate=0.3)
    assert points[1] == pytest.approx([1.7, -0.7], abs=1e-6)


def test_adamw_decays_beside_the_step_and_adam_through_the_gradient():
    values = {"x": 2.0, "y": 1.0, "adam_rate": 0.1, "weight_decay": 0.5}
    adam, adamw = path("adam", **values), path("adamw", **values)
    assert adam[1] == pytest.approx([1.9, 0.9], abs=1e-6)
    assert adamw[1] == pytest.approx([2 * 0.95 - 0.1, 0.95 - 0.1], abs=1e-6)
    without = {**values, "weight_decay": 0.0}
    assert path("adam", **without) == pytest.approx(path("adamw", **without))


def test_the_schedule_multiplies_the_rate_of_each_step():
    arrays = result(schedule="cosine", warmup=0, x=1.0, curvature=1.0, sgd_rate=0.1)
    sgd = arrays["path"].data[0, :, 0]
    assert sgd[1:] / sgd[:-1] == pytest.approx(1 - 0.1 * arrays["rate"].data)
    assert arrays["rate"].data[-1] < 0.2


@pytest.mark.parametrize(
    ("surface", "place", "loss"),
    [
        ("ravine", (1.0, 2.0), (1 + 10 * 4) / 2),
        ("valley", (2.0, 1.0), 1 + 10 * 9),
        ("saddle", (1.0, 2.0), (1 - 4) / 2 + 4),
    ],
)
def test_the_loss_is_that_of_the_surface(surface, place, loss):
    arrays = result(surface=surface, curvature=10.0, x=place[0], y=place[1])
    assert arrays["loss"].data[:, 0].tolist() == [loss] * 4
    column = np.argmin(np.abs(arrays["x"].data - place[0]))
    row = np.argmin(np.abs(arrays["y"].data - place[1]))
    assert arrays["surface"].data[row, column] == pytest.approx(loss)


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_optimizers_schedule_keeps_the_shares_of_warmup_and_decay(name):
    rate = result(schedule=name, floor=0.3)["rate"].data
    sizes = {"steps": 30, "warmup": 3, "decay": 6} | ({"floor": 0.3} if name == "cosine" else {})
    assert rate.tolist() == [SCHEDULES[name](step, **sizes) for step in range(30)]
