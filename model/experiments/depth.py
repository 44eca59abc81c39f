"""Declares `depth`: gradient norms by layer with and without residuals and layer norm."""

from __future__ import annotations

from pydantic import Field, model_validator

from headlight.model.experiments.experiment import (
    Cost,
    Experiment,
    Parameters,
    Quantity,
    Source,
    computation,
)

VARIANTS = ("plain", "norm", "residual", "post", "pre")


class Depth(Parameters):
    """The parameters of `depth`."""

    n_layers: int = Field(16, ge=1, le=48, description="Layers of the stack.")
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


EXPERIMENT = Experiment(
    id="depth",
    title="Residual connections and layer norm",
    parameters=Depth,
    run=computation("depth"),
    cost=cost,
    way_out="choose fewer layers, a smaller width or fewer tokens",
    quantities={
        "variant": Quantity(
            axes="variant",
            help="plain: F(x). norm: LN(F(x)). residual: x + F(x). post: LN(x + F(x)). "
            "pre: x + F(LN(x)).",
        ),
        "layer": Quantity(axes="layer", help="The number of the layer, from 0."),
        "stream_gradient": Quantity(
            axes="variant layer",
            help="Norm of the gradient of the loss by the layer's input; null if numbers of the "
            "stack exceed the range of float64.",
        ),
        "weight_gradient": Quantity(
            axes="variant layer", help="Norm of the gradient of the loss by the layer's matrices."
        ),
        "stream_size": Quantity(
            axes="variant layer", help="Root mean square of the numbers of the layer's input."
        ),
    },
    see="In a plain stack, F(x), the gradient falls by about a constant factor from layer to "
    "layer, so the first layers of a deep stack learn nothing; with larger weights it explodes "
    "instead. A norm alone, LN(F(x)), removes most of this, but the gradient still drifts with "
    "the draw of the weights. Residual connections alone, x + F(x), give the gradient a path past "
    "every layer, but then the stream and the gradient grow exponentially with depth. With a norm "
    "as well, after the sum, LN(x + F(x)), or before each part, x + F(LN(x)), the gradient "
    "reaches the first layer within a few times the size it "
    "has at the last. Add layers or change the scale of the weights, and see which curves stay.",
    field="The original transformer is post-norm and needs a learning rate warmup. Nearly all "
    "large language models since GPT-2 are pre-norm, mostly with RMSNorm. In a pre-norm stack the "
    "stream grows with depth, so later layers change it less. Some models therefore normalise the "
    "output of each part as well, before it is added.",
    sources=(
        Source(
            title="Xiong et al. 2020, On Layer Normalization in the Transformer Architecture",
            url="https://arxiv.org/abs/2002.04745",
        ),
        Source(
            title="He et al. 2015, Deep Residual Learning for Image Recognition",
            url="https://arxiv.org/abs/1512.03385",
        ),
        Source(
            title="Gemma Team 2024, Gemma 2: Improving Open Language Models at a Practical Size",
            url="https://arxiv.org/abs/2408.00118",
        ),
    ),
)
