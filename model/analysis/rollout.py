"""How far each token's information has come after every layer, if attention alone moved it.

Abnar and Zuidema 2020, https://arxiv.org/abs/2005.00928, section 3, attention rollout.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from headlight.model.analysis.distributions import shares
from headlight.model.analysis.stacks import layers_of, require_all_layers
from headlight.model.trace import NamedArray, Trace

PART = "self_attention.weights"
NEEDS = (f"*.{PART}",)


def rollout(trace: Trace) -> dict[str, NamedArray]:
    """Multiply the layers' attention, each averaged over its heads and half of it left to stay.

        A_l = ½·mean over heads of the weights + ½·I, rows divided by their sum
        R_0 = A_0        R_l = A_l·R_{l−1}

    Args:
        trace: with the self-attention weights of every layer of a stack. Where it holds only some
            heads, the mean is over these.

    Returns:
        For ``encoder`` and ``decoder``, where there is one: R (layer, query, key), float32; how
        much of what stands at `query` after `layer` came in at `key`. Rows sum to 1. What
        cross-attention brings in is not counted.

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
    return shares(0.5 * weights.mean(axis=0) + 0.5 * np.eye(weights.shape[-1]))
