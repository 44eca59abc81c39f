"""Both norms agree with PyTorch's."""

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
