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
from pydantic import Field, model_validator
from torch import Tensor, nn

from headlight.model.cancellation import check
from headlight.model.config import TransformerConfig
from headlight.model.experiments.experiment import Arrays, Cost, Experiment, Parameters
from headlight.model.feed_forward import FeedForward
from headlight.model.layers import TransformerLayer

VARIANTS = ("plain", "norm", "residual", "post", "pre")


class Depth(Parameters):
    """The parameters of `depth`."""

    n_layers: int = Field(16, ge=1, le=48, description="How deep the stack is.")
    d_model: int = Field(32, ge=4, le=96, description="Width of the residual stream.")
    n_heads: int = Field(4, ge=1, le=8, description="Attention heads; they divide d_model.")
    n_tokens: int = Field(16, ge=2, le=48, description="Tokens of the sequence.")
    scale: float = Field(
        1.0,
        ge=0.1,
        le=3.0,
        description="Factor on the initial weights, whose deviation is 1/√inputs.",
    )

    @model_validator(mode="after")
    def _divides(self) -> Depth:
        if self.d_model % self.n_heads:
            raise ValueError(f"n_heads ({self.n_heads}) must divide d_model ({self.d_model})")
        return self


def cost(parameters: Depth) -> Cost:
    """Estimate the cost: three times the multiplications of a forward pass, and its activations."""
    n, d = parameters.n_tokens, parameters.d_model
    work = len(VARIANTS) * parameters.n_layers * (12 * n * d * d + 2 * n * n * d)
    weights = parameters.n_layers * 12 * d * d
    activations = parameters.n_layers * n * (20 * d + 4 * parameters.n_heads * n)
    return Cost(
        seconds=3 * work * 0.5e-9 + len(VARIANTS) * parameters.n_layers * 3e-3,
        megabytes=8e-6 * (3 * weights + 2 * activations),
    )


def run(parameters: Depth) -> Iterator[Arrays]:
    """Run every variant forward and backward with equal weights, input and targets."""
    layers = _make_layers(parameters)
    generator = torch.Generator().manual_seed(parameters.seed)
    shape = (parameters.n_tokens, parameters.d_model)
    x = torch.randn(1, *shape, generator=generator, dtype=torch.float64)
    readout = torch.randn(shape, generator=generator, dtype=torch.float64)
    measured = [_measure(layers, x, readout, variant) for variant in VARIANTS]
    yield {
        "variant": np.array(VARIANTS),
        "layer": np.arange(parameters.n_layers),
        **{name: np.stack([each[name] for each in measured]) for name in measured[0]},
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
        assert isinstance(layer, TransformerLayer)
        assert isinstance(layer.feed_forward, FeedForward)
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


def _gradient_norm(tensor: Tensor) -> Tensor:
    assert tensor.grad is not None
    norm: Tensor = tensor.grad.norm()
    return norm


def _measure(
    layers: nn.ModuleList, x: Tensor, readout: Tensor, variant: str
) -> dict[str, Float[np.ndarray, " layer"]]:
    """Return the norms of one variant, by layer.

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
        assert isinstance(layer, TransformerLayer)
        stream = apply(layer, stream, variant)
    (stream[0] * readout).sum(dim=-1).mean().backward()
    weights = [[_gradient_norm(p) for p in layer.parameters() if p.ndim == 2] for layer in layers]
    return {
        "stream_gradient": torch.stack([_gradient_norm(each) for each in inputs]).numpy(),
        "weight_gradient": torch.stack([torch.stack(each).norm() for each in weights]).numpy(),
        "stream_size": torch.stack(
            [each.detach().square().mean().sqrt() for each in inputs]
        ).numpy(),
    }


EXPERIMENT = Experiment(
    id="depth",
    order=8,
    group="The network",
    tab="Why residuals",
    title="Residual connections and layer norm",
    parameters=Depth,
    run=run,
    cost=cost,
    way_out="choose fewer layers, a smaller width or fewer tokens",
)
