"""Gradient norms by layer with and without residual connections and layer norm.

The stack is built of this project's layers; the variants differ only in how a layer's parts F are
put together:

    plain      F(x)                  norm   LN(F(x))
    residual   x + F(x)              post   LN(x + F(x))       pre   x + F(LN(x))

Xiong et al. 2020, https://arxiv.org/abs/2002.04745.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from headlight.model.cancellation import check
from headlight.model.config import TransformerConfig
from headlight.model.experiments.depth import VARIANTS, Depth
from headlight.model.experiments.experiment import Arrays
from headlight.model.layers import TransformerLayer


def run(parameters: Depth) -> Iterator[Arrays]:
    """Run every variant forward and backward with equal weights, input and targets."""
    layers = _make_layers(parameters)
    generator = torch.Generator().manual_seed(parameters.seed)
    shape = (parameters.n_tokens, parameters.d_model)
    x = torch.randn(1, *shape, generator=generator, dtype=torch.float64)
    readout = torch.randn(shape, generator=generator, dtype=torch.float64)
    found = [_measure(layers, x, readout, variant) for variant in VARIANTS]
    yield {
        "variant": np.array(VARIANTS),
        "layer": np.arange(parameters.n_layers),
        **{name: np.stack([each[name] for each in found]) for name in found[0]},
    }


def _make_layers(parameters: Depth) -> nn.ModuleList:
    config = TransformerConfig(
        n_layers=parameters.n_layers,
        n_heads=parameters.n_heads,
        d_model=parameters.d_model,
        d_ff=4 * parameters.d_model,
        vocab_size=1,
        max_tokens=parameters.n_tokens,
        positional="none",
    )
    layers = nn.ModuleList(TransformerLayer(config) for _ in range(parameters.n_layers)).double()
    generator = torch.Generator().manual_seed(parameters.seed + 1)
    with torch.no_grad():
        for matrix in layers.parameters():
            if matrix.ndim == 2:
                deviation = parameters.scale / math.sqrt(matrix.shape[-1])
                matrix.normal_(0, deviation, generator=generator)
            elif matrix.shape[0] == 4 * parameters.d_model:
                matrix.zero_()  # the bias of the feed-forward network
    for layer in layers:
        nn.init.zeros_(layer.feed_forward.down_projection.bias)
    return layers


def apply(
    layer: TransformerLayer, x: Float[Tensor, "batch query d_model"], variant: str
) -> Float[Tensor, "batch query d_model"]:
    """Apply a layer's attention and its feed-forward network, put together as the variant says."""
    parts = (
        (layer.self_attention, layer.attention_norm),
        (layer.feed_forward, layer.feed_forward_norm),
    )
    for part, norm in parts:
        update = part(norm(x) if variant == "pre" else x)
        if variant in ("residual", "post", "pre"):
            update = x + update
        x = norm(update) if variant in ("norm", "post") else update
    return x


def _measure(
    layers: nn.ModuleList, x: Tensor, readout: Tensor, variant: str
) -> dict[str, Float[np.ndarray, " layer"]]:
    """The norms of one variant, by layer.

    The loss is the mean over tokens of the product of the last output and a random readout, so the
    gradient at the end of the stack is the same in all variants.
    """
    for parameter in layers.parameters():
        parameter.grad = None
    inputs = []
    stream = x.clone().requires_grad_()
    for layer in layers:
        check()
        stream.retain_grad()
        inputs.append(stream)
        stream = apply(layer, stream, variant)
    (stream[0] * readout).sum(dim=-1).mean().backward()
    weights = [[p.grad.norm() for p in layer.parameters() if p.ndim == 2] for layer in layers]
    return {
        "stream_gradient": torch.stack([each.grad.norm() for each in inputs]).numpy(),
        "weight_gradient": torch.stack([torch.stack(each).norm() for each in weights]).numpy(),
        "stream_size": torch.stack(
            [each.detach().square().mean().sqrt() for each in inputs]
        ).numpy(),
    }
