"""Gradients through time, against the law of the linear network and against finite differences."""

import numpy as np
import pytest
import torch

from headlight.model.experiments import recurrence
from headlight.model.experiments.recurrence import CELLS, EXPERIMENT, Recurrence


def result(**values):
    return EXPERIMENT.result({"length": 12, "width": 8, **values})


def gradient(kind, **values):
    return result(**values)["gradient"].data[CELLS.index(kind)]


@pytest.mark.parametrize("radius", [0.3, 0.9, 1.0, 1.3])
def test_the_linear_networks_gradient_is_a_power_of_the_spectral_radius(radius):
    expected = radius ** np.arange(12)
    assert gradient("linear", spectral_radius=radius) == pytest.approx(expected, rel=1e-9)
    assert result(spectral_radius=radius)["power"].data == pytest.approx(expected, rel=1e-12)


def test_the_recurrent_matrix_has_the_spectral_radius():
    parameters = Recurrence(width=8, spectral_radius=0.7)
    rotation = recurrence._rotation(8, torch.Generator().manual_seed(1))
    cell = recurrence._make_cell(
        "tanh", rotation, torch.zeros(4, 8, 8, dtype=torch.float64), parameters
    )
    eigenvalues = torch.linalg.eigvals(cell.weight_hh.detach())
    assert eigenvalues.abs().numpy() == pytest.approx(np.full(8, 0.7))


@pytest.mark.parametrize("kind", ["tanh", "lstm", "gru"])
def test_the_jacobian_is_that_of_finite_differences(kind):
    parameters = Recurrence(length=3, width=4, forget_bias=2.0)
    generator = torch.Generator().manual_seed(2)
    rotation = recurrence._rotation(4, generator)
    drawn = torch.randn(4, 4, 4, generator=generator, dtype=torch.float64)
    inputs = torch.randn(3, 4, generator=generator, dtype=torch.float64)
    cell = recurrence._make_cell(kind, rotation, drawn, parameters)
    size = 8 if kind == "lstm" else 4

    def step(x, state):
        if kind == "lstm":
            h, c = cell(x[None], (state[None, :4], state[None, 4:]))
            return torch.cat([h[0], c[0]])
        return cell(x[None], state[None])[0]

    with torch.no_grad():
        first = step(inputs[0], torch.zeros(size, dtype=torch.float64))

        def last(state):
            return step(inputs[2], step(inputs[1], state))

        tiny = 1e-6 * torch.eye(size, dtype=torch.float64)
        jacobian = torch.stack([(last(first + e) - last(first - e)) / 2e-6 for e in tiny])
    expected = jacobian.norm().item() / size**0.5
    assert recurrence._recurrent_gradients(cell, kind, inputs)[2] == pytest.approx(
        expected, rel=1e-6
    )


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_a_forget_bias_preserves_the_gradient_of_a_gated_network(kind):
    assert gradient(kind, forget_bias=4.0)[11] > 4 * gradient(kind, forget_bias=-1.0)[11]


@pytest.mark.slow
def test_the_tanh_networks_gradient_keeps_its_size_at_a_radius_between_decay_and_growth():
    ends = [
        EXPERIMENT.result({"spectral_radius": radius})["gradient"].data[CELLS.index("tanh")][-1]
        for radius in (1.2, 1.5, 2.0)
    ]
    assert ends[0] < 0.01
    assert 0.05 < ends[1] < 20
    assert ends[2] > 100


def test_attentions_gradient_does_not_fall_with_the_distance():
    gradients = gradient("attention", length=100, width=24)
    near, far = gradients[1:30].mean(), gradients[70:].mean()
    assert 0.5 < far / near < 2
    assert (
        gradients[1:].max() < 6 * gradients[1:].min()
    )  # an average over sequences, not one of them
    assert gradient("tanh", length=100)[70] < 1e-6


def test_attentions_gradient_is_the_jacobian_of_each_token():
    parameters = Recurrence(length=4, width=6)
    attention = recurrence._make_attention(parameters)
    inputs = torch.randn(4, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda x: (x + attention(x[None])[0])[-1], inputs)
    expected = (jacobian.norm(dim=(0, 2)) / 6**0.5).flip(0).numpy()
    assert recurrence._attention_gradients(attention, inputs) == pytest.approx(expected)


def test_recurrent_steps_wait_for_each_other_and_attentions_do_not():
    waiting = dict(zip(CELLS, result()["waiting_steps"].data, strict=True))
    assert waiting["lstm"].tolist() == list(range(1, 13))
    assert waiting["attention"].tolist() == [1] * 12


def test_multiplications_by_hand():
    made = dict(zip(CELLS, result(width=4)["multiplications"].data[:, 2], strict=True))
    # 3 tokens, width 4: one matrix for the state and one for the input, 16 numbers each.
    assert made["tanh"] == 3 * 2 * 16
    assert made["lstm"] == 4 * made["tanh"]
    assert made["attention"] == 3 * 4 * 16 + 3 * 3 * 2 * 4
    assert made["gru"] == 3 * made["tanh"]
    assert made["linear"] == made["tanh"]
