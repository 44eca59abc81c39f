"""Where the routers send a text's tokens: how evenly, how surely, and whether layers agree."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float, Int

from headlight.model.analysis.distributions import entropy, shares
from headlight.model.analysis.partitions import adjusted_mutual_information
from headlight.model.analysis.stacks import Layers, layers_of
from headlight.model.trace import NamedArray, Trace

PROBS = "experts.router_probs"
INDICES = "experts.expert_indices"
NEEDS = (f"*.{PROBS}", f"*.{INDICES}")


def routing(trace: Trace) -> dict[str, NamedArray]:
    """What the routers of a stack do with all tokens of the text, special ones included.

    Args:
        trace: with the router's probabilities (query, expert) and the chosen experts (query,
            top_k) of every routed layer.

    Returns:
        For ``encoder`` and ``decoder``, where they route; float32 unless said otherwise:

        - ``decoder.layers`` (layer): the numbers of the routed layers, int32.
        - ``decoder.load`` (layer, expert): the share f_e of the choices that falls on each expert;
          sums to 1.
        - ``decoder.mean_probability`` (layer, expert): P_e over all tokens; sums to 1.
        - ``decoder.load_entropy`` (layer): −Σ f·ln f / ln n_experts, 1 where all experts take as
          many choices.
        - ``decoder.router_entropy`` (layer): the mean of −Σ p·ln p / ln n_experts over the tokens,
          0 where the router is always sure.
        - ``decoder.balance_loss`` (layer): n_experts·Σ f_e·P_e, 1 where both are even and n_experts
          where one expert takes all. Fedus et al. 2021, https://arxiv.org/abs/2101.03961, section
          2.2; of this text alone, not in blocks as in training.
        - ``decoder.agreement`` (layer, other): how far two layers divide the tokens alike by the
          likeliest expert that each was sent to; `adjusted_mutual_information`, since experts have
          numbers and no names, and a short text agrees a good deal by chance.

    Raises:
        KeyError: the trace has no router's probabilities, as a dense model has none.
        ValueError: it lacks the chosen experts of a layer.
    """
    found: dict[str, NamedArray] = {}
    indices = layers_of(trace, INDICES)
    for stack, probs in layers_of(trace, PROBS).items():
        if missing := sorted(set(probs) - set(indices.get(stack, {}))):
            raise ValueError(
                f"the trace lacks {stack}.layers.{missing[0]}.{INDICES}; capture '*.{INDICES}'"
            )
        summary = _summarise(probs, indices[stack])
        found |= {f"{stack}.{name}": array for name, array in summary.items()}
    return found


def _summarise(all_probs: Layers, all_indices: Layers) -> dict[str, NamedArray]:
    layers = list(all_probs)
    probs = np.stack([all_probs[layer] for layer in layers]).astype(np.float64)
    indices = np.stack([all_indices[layer] for layer in layers])
    n_experts = probs.shape[-1]
    load, mean_probability = load_of(indices, n_experts), probs.mean(axis=1)
    by_layer = {
        "load_entropy": entropy(load) / math.log(n_experts),
        "router_entropy": entropy(probs).mean(axis=1) / math.log(n_experts),
        "balance_loss": n_experts * (load * mean_probability).sum(axis=1),
    }
    return {
        "layers": NamedArray(("layer",), np.array(layers, dtype=np.int32)),
        "load": _named(load, "layer", "expert"),
        "mean_probability": _named(mean_probability, "layer", "expert"),
        **{name: _named(values, "layer") for name, values in by_layer.items()},
        "agreement": _named(agreement(likeliest_choice(probs, indices)), "layer", "other"),
    }


def load_of(
    indices: Int[np.ndarray, "layer query top_k"], n_experts: int
) -> Float[np.ndarray, "layer expert"]:
    """The share of each layer's choices that falls on each expert."""
    counts = [np.bincount(chosen.ravel(), minlength=n_experts) for chosen in indices]
    return shares(np.stack(counts).astype(np.float64))


def likeliest_choice(
    probs: Float[np.ndarray, "layer query expert"], indices: Int[np.ndarray, "layer query top_k"]
) -> Int[np.ndarray, "layer query"]:
    """Of the experts that a token was sent to, the one with the greatest probability."""
    rank = np.take_along_axis(probs, indices, axis=-1).argmax(axis=-1)
    return np.take_along_axis(indices, rank[..., None], axis=-1)[..., 0]


def agreement(choices: Int[np.ndarray, "layer query"]) -> Float[np.ndarray, "layer layer"]:
    """The adjusted mutual information of every pair of layers; symmetric, 1 on the diagonal."""
    table = np.eye(len(choices))
    for first, second in zip(*np.triu_indices(len(choices), k=1), strict=True):
        table[first, second] = adjusted_mutual_information(choices[first], choices[second])
        table[second, first] = table[first, second]
    return table


def _named(data: Float[np.ndarray, ...], *axes: str) -> NamedArray:
    return NamedArray(axes, data.astype(np.float32))
