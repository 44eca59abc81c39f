"""Layer normalisation against its formula and PyTorch's own."""

import pytest
import torch
from torch import Tensor, nn

from model.norms import LayerNorm


@pytest.fixture
def x() -> Tensor:
    return 3 * torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(0)) + 1


@pytest.fixture
def norm() -> LayerNorm:
    torch.manual_seed(1)
    norm = LayerNorm(16)
    nn.init.normal_(norm.scale)
    nn.init.normal_(norm.shift)
    return norm


def test_layer_norm_is_pytorchs_with_copied_weights(norm: LayerNorm, x: Tensor) -> None:
    reference = nn.LayerNorm(16)
    reference.load_state_dict({"weight": norm.scale, "bias": norm.shift})
    torch.testing.assert_close(norm(x), reference(x), rtol=0, atol=1e-6)


def test_layer_norm_is_the_papers_formula(norm: LayerNorm, x: Tensor) -> None:
    mean = x.mean(dim=-1, keepdim=True)
    variance = (x - mean).square().mean(dim=-1, keepdim=True)
    expected = norm.scale * (x - mean) / torch.sqrt(variance + 1e-5) + norm.shift
    torch.testing.assert_close(norm(x), expected)


def test_a_new_norm_gives_every_token_mean_0_and_variance_1(x: Tensor) -> None:
    normalised = LayerNorm(16)(x)
    torch.testing.assert_close(normalised.mean(dim=-1), torch.zeros(2, 5), rtol=0, atol=1e-6)
    torch.testing.assert_close(
        normalised.var(dim=-1, correction=0), torch.ones(2, 5), rtol=0, atol=1e-4
    )


def test_a_constant_token_becomes_the_shift(norm: LayerNorm) -> None:
    torch.testing.assert_close(norm(torch.full((1, 16), 5.0))[0], norm.shift.detach())


def test_tokens_are_normalised_one_by_one(norm: LayerNorm, x: Tensor) -> None:
    torch.testing.assert_close(norm(x)[1, 3], norm(x[1, 3]))
