"""Both norms against their formulas and PyTorch's own."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from headlight.model.norms import LayerNorm, RMSNorm, make_norm


@pytest.fixture
def x():
    return 3 * torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(0)) + 1


@pytest.fixture
def norm():
    torch.manual_seed(1)
    norm = LayerNorm(16)
    nn.init.normal_(norm.scale)
    nn.init.normal_(norm.shift)
    return norm


def test_layer_norm_is_pytorchs_with_copied_weights(norm, x):
    reference = nn.LayerNorm(16)
    reference.load_state_dict({"weight": norm.scale, "bias": norm.shift})
    torch.testing.assert_close(norm(x), reference(x), rtol=0, atol=1e-6)


def test_layer_norm_is_the_papers_formula(norm, x):
    mean = x.mean(dim=-1, keepdim=True)
    variance = (x - mean).square().mean(dim=-1, keepdim=True)
    expected = norm.scale * (x - mean) / torch.sqrt(variance + 1e-5) + norm.shift
    torch.testing.assert_close(norm(x), expected)


def test_a_new_norm_gives_every_token_mean_0_and_variance_1(x):
    normalised = LayerNorm(16)(x)
    torch.testing.assert_close(normalised.mean(dim=-1), torch.zeros(2, 5), rtol=0, atol=1e-6)
    torch.testing.assert_close(
        normalised.var(dim=-1, correction=0), torch.ones(2, 5), rtol=0, atol=1e-4
    )


def test_a_constant_token_becomes_the_shift(norm):
    torch.testing.assert_close(norm(torch.full((1, 16), 5.0))[0], norm.shift.detach())


def test_tokens_are_normalised_one_by_one(norm, x):
    torch.testing.assert_close(norm(x)[1, 3], norm(x[1, 3]))


# --- RMSNorm --------------------------------------------------------------------------------------


@pytest.fixture
def rms_norm():
    torch.manual_seed(1)
    norm = RMSNorm(16, 1e-2)
    nn.init.normal_(norm.scale)
    return norm


def test_rms_norm_is_pytorchs_with_copied_weights(rms_norm, x):
    expected = F.rms_norm(x, [16], rms_norm.scale, eps=1e-2)
    torch.testing.assert_close(rms_norm(x), expected, rtol=0, atol=1e-6)


def test_rms_norm_is_the_papers_formula(rms_norm, x):
    size = torch.sqrt(x.square().mean(dim=-1, keepdim=True) + 1e-2)
    torch.testing.assert_close(rms_norm(x), rms_norm.scale * x / size)


def test_rms_norm_keeps_the_mean_and_takes_the_size(x):
    normalised = RMSNorm(16)(x)
    size = normalised.square().mean(dim=-1)
    torch.testing.assert_close(size, torch.ones(2, 5), rtol=0, atol=1e-4)
    ratio = x.mean(dim=-1) / x.square().mean(dim=-1).sqrt()
    torch.testing.assert_close(normalised.mean(dim=-1), ratio, rtol=0, atol=1e-4)


def test_in_bfloat16_only_the_result_is_rounded(x):
    rounded = x.bfloat16()
    expected = RMSNorm(16)(rounded.float()).bfloat16()
    assert RMSNorm(16).bfloat16()(rounded).equal(expected)


# --- by config ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "kind"), [("layer_norm", LayerNorm), ("rms_norm", RMSNorm)])
def test_the_config_names_the_norm_and_its_epsilon(make_config, name, kind):
    norm = make_norm(make_config(norm=name, norm_epsilon=0.5))
    assert type(norm) is kind
    assert norm.scale.shape == (32,)
    small = 0.1 * torch.randn(1, 32, generator=torch.Generator().manual_seed(0))
    assert norm(small).abs().max() < 0.5  # next to an epsilon of a half there is little to divide
