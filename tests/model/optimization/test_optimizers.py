"""The optimizers of a model, and Muon against PyTorch's own."""

import pytest
import torch
from torch import nn

from headlight.model.optimization.optimizers import (
    COEFFICIENTS,
    Muon,
    make_optimizers,
    orthogonalise,
)

SHAPES = [(16, 16), (8, 32), (48, 12)]


def matrices(shape, count=3):
    return torch.randn(count, *shape, generator=torch.Generator().manual_seed(0))


def one_by_one(matrix):
    """Return the iteration on one matrix as the author writes it, in double precision."""
    a, b, c = COEFFICIENTS
    x = matrix.double()
    x = x.T if matrix.shape[0] > matrix.shape[1] else x
    x = x / x.norm()
    for _ in range(5):
        x = a * x + b * (x @ x.T) @ x + c * (x @ x.T) @ (x @ x.T) @ x
    return x.T if matrix.shape[0] > matrix.shape[1] else x


@pytest.mark.parametrize("shape", SHAPES)
def test_many_matrices_at_once_are_one_after_the_other(shape):
    given = matrices(shape)
    for orthogonal, matrix in zip(orthogonalise(given), given, strict=True):
        torch.testing.assert_close(orthogonal.double(), one_by_one(matrix), rtol=0, atol=1e-4)


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", SHAPES)
def test_singular_values_come_near_1(shape, precision):
    orthogonal = orthogonalise(matrices(shape), precision=precision)
    assert orthogonal.dtype == torch.float32
    values = torch.linalg.svdvals(orthogonal)
    assert values.min() > 0.6
    assert values.max() < 1.3


def test_no_gradient_is_no_update():
    assert orthogonalise(torch.zeros(2, 4, 6)).equal(torch.zeros(2, 4, 6))


class Parameters:
    """The same random matrices for two optimizers, and the same gradients."""

    def __init__(self, shapes):
        torch.manual_seed(0)
        self.parameters = [nn.Parameter(torch.randn(shape)) for shape in shapes]
        self.generator = torch.Generator().manual_seed(1)

    def train(self, optimizer, steps):
        before = [parameter.detach().clone() for parameter in self.parameters]
        for _ in range(steps):
            for parameter in self.parameters:
                parameter.grad = torch.randn(parameter.shape, generator=self.generator)
            optimizer.step()
        return [p.detach() - old for p, old in zip(self.parameters, before, strict=True)]


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
@pytest.mark.parametrize("steps", [1, 4])
def test_an_update_is_pytorchs_up_to_bfloat16(weight_decay, steps):
    shapes = [*SHAPES, (16, 16)]
    ours, theirs = Parameters(shapes), Parameters(shapes)
    moved = ours.train(Muon(ours.parameters, lr=0.02, weight_decay=weight_decay), steps)
    reference = torch.optim.Muon(
        theirs.parameters,
        lr=0.02,
        weight_decay=weight_decay,
        momentum=0.95,
        adjust_lr_fn="match_rms_adamw",
    )
    for mine, other in zip(moved, theirs.train(reference, steps), strict=True):
        # PyTorch iterates in bfloat16, whose digits end at 1/256.
        assert (mine - other).norm() < 0.02 * other.norm()


def test_a_matrix_without_a_gradient_stays():
    moving, resting = (nn.Parameter(torch.ones(4, 4)) for _ in range(2))
    moving.grad = torch.randn(4, 4)
    Muon([moving, resting], lr=0.1, weight_decay=0.5).step()
    assert resting.equal(torch.ones(4, 4))
    assert not moving.equal(torch.ones(4, 4))


def test_what_is_no_matrix_is_refused():
    with pytest.raises(ValueError, match=r"^Muon takes matrices, not shape \(3,\)$"):
        Muon([nn.Parameter(torch.zeros(3))], lr=0.1)


def test_every_parameter_has_one_optimizer_and_matrices_in_layers_have_muon(make_model):
    model = make_model()
    names = {parameter: name for name, parameter in model.named_parameters()}
    muon, adam = (
        [names[parameter] for group in optimizer.param_groups for parameter in group["params"]]
        for optimizer in make_optimizers(model, learning_rate=1.0)
    )
    assert sorted(muon + adam) == sorted(names.values())
    assert "decoder.layers.0.self_attention.query_projection.weight" in muon
    assert "decoder.layers.1.experts.experts.3.up_projection.weight" in muon
    assert "decoder.layers.1.experts.router.weight" in adam
    assert "decoder.embedding.vectors.weight" in adam
    assert not any("norm" in name or "bias" in name for name in muon)
