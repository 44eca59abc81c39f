"""Gradients by layer, against this project's layers and autograd."""

import numpy as np
import pytest
import torch

from headlight.model.experiments import depth
from headlight.model.experiments.depth import EXPERIMENT, VARIANTS, Depth
from headlight.model.layers import TransformerLayer


def result(**values):
    return EXPERIMENT.result({"n_layers": 6, "d_model": 16, **values})


def norms(variant, name, **values):
    return result(**values)[name].data[VARIANTS.index(variant)]


@pytest.mark.parametrize("place", ["pre", "post"])
def test_pre_and_post_are_the_projects_layers(place, make_config, randomise):
    torch.manual_seed(0)
    layer = TransformerLayer(make_config(norm_place=place, moe=None)).double()
    randomise(layer)
    x = torch.randn(2, 5, 32, dtype=torch.float64)
    torch.testing.assert_close(depth.apply(layer, x, place), layer(x).output)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_gradients_are_those_of_autograd(variant):
    parameters = Depth(n_layers=3, d_model=8, n_heads=2, n_tokens=4)
    layers = depth._make_layers(parameters)
    x = torch.randn(1, 4, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    readout = torch.randn(4, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    measured = depth._measure(layers, x, readout, variant)

    def loss(stream, first):
        for layer in layers[first:]:
            stream = depth.apply(layer, stream, variant)
        return (stream[0] * readout).sum(dim=-1).mean()

    middle = depth.apply(layers[0], x, variant).detach().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(middle, 1), middle)
    assert measured["stream_gradient"][1] == pytest.approx(gradient.norm().item())
    matrices = [each for each in layers[1].parameters() if each.ndim == 2]
    gradients = torch.autograd.grad(loss(x, 0), matrices)
    total = sum(each.square().sum() for each in gradients).sqrt().item()
    assert measured["weight_gradient"][1] == pytest.approx(total)
    assert measured["stream_size"][1] == pytest.approx(middle.square().mean().sqrt().item())


def test_without_residual_connections_the_gradient_vanishes():
    plain = norms("plain", "stream_gradient", n_layers=24)
    assert plain[0] < 1e-4 * plain[-1]
    pre = norms("pre", "stream_gradient", n_layers=24)
    assert 1 < pre[0] / pre[-1] < 20


def test_residual_connections_without_a_norm_let_the_stream_explode():
    assert norms("residual", "stream_size", n_layers=24)[-1] > 1000
    assert norms("post", "stream_size", n_layers=24)[1:] == pytest.approx(np.ones(23), rel=1e-3)


def test_a_norm_makes_a_layer_insensitive_to_the_scale_of_its_weights():
    single, double = (norms("norm", "stream_gradient", scale=value) for value in (1.0, 2.0))
    assert 0.1 < double[0] / single[0] < 10
    single, double = (norms("plain", "stream_gradient", scale=value) for value in (1.0, 2.0))
    assert double[0] / single[0] > 1e6


def test_the_initial_weights_have_the_chosen_scale_and_no_bias():
    layers = depth._make_layers(Depth(n_layers=2, d_model=64, scale=2.0))
    for parameter in layers.parameters():
        if parameter.ndim == 2:
            expected = 2 / parameter.shape[1] ** 0.5
            assert parameter.std().item() == pytest.approx(expected, rel=0.05)
    for layer in layers:
        for name, parameter in layer.feed_forward.named_parameters():
            assert "bias" not in name or (parameter == 0).all(), name
