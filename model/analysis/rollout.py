"""Attention rollout: how much of each token's vector comes from each input token.

Abnar and Zuidema 2020, https://arxiv.org/abs/2005.00928, section 3. The estimate assumes that
information moves only by attention and the residual connection.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from headlight.model.analysis.layers import layers_of, require_all_layers
from headlight.model.distributions import normalise
from headlight.model.trace import NamedArray, Trace

PART = "self_attention.weights"


def rollout(trace: Trace) -> dict[str, NamedArray]:
    """Multiply the layers' attention, averaged over heads and mixed equally with the identity.

        A_l = ½·mean over heads of the weights + ½·I, rows divided by their sum
        R_0 = A_0        R_l = A_l·R_{l−1}

    Args:
        trace: with the self-attention weights of every layer of a stack. If it holds only some
            heads, the mean is over these.

    Returns:
        For ``encoder`` and ``decoder``, if the trace holds them: R (layer, query, key), float32,
        the share of the vector at `query` after `layer` that comes from the input at `key`. Rows
        sum to 1. Cross-attention is not counted.

    Raises:
        KeyError: the trace has no self-attention weights.
        ValueError: it lacks those of a layer below another.
    """
    rolled: dict[str, NamedArray] = {}
    for stack, layers in layers_of(trace, PART).items():
        require_all_layers(layers, stack, PART)
        steps = [_step(weights.astype(np.float64)) for weights in layers.values()]
        product = [steps[0]]
        for step in steps[1:]:
            product.append(step @ product[-1])
        rolled[stack] = NamedArray(("layer", "query", "key"), np.stack(product).astype(np.float32))
    return rolled


def _step(weights: Float[np.ndarray, "head query key"]) -> Float[np.ndarray, "query key"]:
    token = np.arange(weights.shape[-1])
    return normalise(weights.mean(axis=0) / 2 + (token[:, None] == token) / 2)
