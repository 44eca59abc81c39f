"""Quantization compared with PyTorch's own observer, which takes seconds to import."""

import pytest
import torch
from torch.ao.quantization.observer import PerChannelMinMaxObserver

from headlight.model.quantization.affine import quantize


@pytest.mark.parametrize("bits", range(2, 9))
def test_scales_and_zero_points_are_those_of_pytorchs_observer(bits):
    torch.manual_seed(0)
    matrix = torch.randn(24, 40) + torch.arange(24)[:, None] - 8
    observer = PerChannelMinMaxObserver(
        ch_axis=0,
        dtype=torch.quint8,
        qscheme=torch.per_channel_affine,
        quant_min=0,
        quant_max=2**bits - 1,
    )
    observer(matrix)
    scales, zero_points = observer.calculate_qparams()
    quantized = quantize(matrix, bits)
    torch.testing.assert_close(quantized.scales, scales, rtol=1e-6, atol=0)
    assert quantized.zero_points.int().equal(zero_points.int())
