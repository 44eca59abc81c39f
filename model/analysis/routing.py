"""Routing statistics of the expert layers: load, entropy, and agreement between layers."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float, Int

from headlight.model.analysis.layers import Layers, float_array, layers_of
from headlight.model.distributions import entropy, normalise
from headlight.model.trace import NamedArray, Trace

PROBS = "experts.router_probs"
INDICES = "experts.expert_indices"


def routing(trace: Trace) -> dict[str, NamedArray]:
    """Statistics of the routers of each stack over all tokens of the text, special ones included.

    Args:
        trace: with the router's probabilities (query, expert) and the chosen experts (query,
            top_k) of every expert layer.

    Returns:
        For ``encoder`` and ``decoder``, if they have experts; float32 unless said otherwise:

        - ``decoder.layers`` (layer): the numbers of the expert layers, int32.
        - ``decoder.load`` (layer, expert): the share f_e of the choices that falls on each expert;
          sums to 1.
        - ``decoder.mean_probability`` (layer, expert): P_e over all tokens; sums to 1.
        - ``decoder.load_entropy`` (layer): −Σ f·ln f / ln n_experts, 1 if all experts are chosen
          equally often.
        - ``decoder.router_entropy`` (layer): the mean of −Σ p·ln p / ln n_experts over the tokens,
          0 if the router is always certain.
        - ``decoder.balance_loss`` (layer): n_experts·Σ f_e·P_e, 1 if both are uniform and n_experts
          if one expert takes all. Fedus et al. 2021, https://arxiv.org/abs/2101.03961, section
          2.2; over this text only, not in blocks as in training.
        - ``decoder.agreement`` (layer, other): `adjusted_mutual_information` of two layers'
          partitions of the tokens by the most likely chosen expert. The numbers of experts carry
          no meaning across layers, and a short text agrees a good deal by chance.

    Raises:
        KeyError: the trace has no router probabilities, as a dense model has none.
        ValueError: it lacks the chosen experts of a layer.
    """
    arrays: dict[str, NamedArray] = {}
    indices = layers_of(trace, INDICES)
    for stack, probs in layers_of(trace, PROBS).items():
        if missing := sorted(set(probs) - set(indices.get(stack, {}))):
            raise ValueError(
                f"the trace lacks {stack}.layers.{missing[0]}.{INDICES}; capture '*.{INDICES}'"
            )
        summary = _summarise(probs, indices[stack])
        arrays |= {f"{stack}.{name}": array for name, array in summary.items()}
    return arrays


def _summarise(all_probs: Layers, all_indices: Layers) -> dict[str, NamedArray]:
    layers = list(all_probs)
    probs = np.stack([all_probs[layer] for layer in layers]).astype(np.float64)
    indices = np.stack([all_indices[layer] for layer in layers])
    n_experts = probs.shape[-1]
    counts = [np.bincount(chosen.ravel(), minlength=n_experts) for chosen in indices]
    load, mean_probability = normalise(np.stack(counts).astype(np.float64)), probs.mean(axis=1)
    by_layer = {
        "load_entropy": entropy(load, "nats") / math.log(n_experts),
        "router_entropy": entropy(probs, "nats").mean(axis=1) / math.log(n_experts),
        "balance_loss": n_experts * (load * mean_probability).sum(axis=1),
    }
    return {
        "layers": NamedArray(("layer",), np.array(layers, dtype=np.int32)),
        "load": float_array(load, "layer", "expert"),
        "mean_probability": float_array(mean_probability, "layer", "expert"),
        **{name: float_array(values, "layer") for name, values in by_layer.items()},
        "agreement": float_array(agreement(top_choice(probs, indices)), "layer", "other"),
    }


def top_choice(
    probs: Float[np.ndarray, "layer query expert"], indices: Int[np.ndarray, "layer query top_k"]
) -> Int[np.ndarray, "layer query"]:
    """Return the chosen expert with the greatest router probability, for each token."""
    rank = np.take_along_axis(probs, indices, axis=-1).argmax(axis=-1)
    return np.take_along_axis(indices, rank[..., None], axis=-1)[..., 0]


def agreement(choices: Int[np.ndarray, "layer query"]) -> Float[np.ndarray, "layer layer"]:
    """Return the adjusted mutual information of all pairs of layers; symmetric."""
    table = np.eye(len(choices))
    for first, second in zip(*np.triu_indices(len(choices), k=1), strict=True):
        table[first, second] = adjusted_mutual_information(choices[first], choices[second])
        table[second, first] = table[first, second]
    return table


def adjusted_mutual_information(
    first: Int[np.ndarray, " item"], second: Int[np.ndarray, " item"]
) -> float:
    """Return the agreement of two partitions: (I − E[I]) / (mean of the two entropies − E[I]).

    E[I] is the mean mutual information over all permutations of the items, group sizes kept. Vinh,
    Epps and Bailey 2010, https://jmlr.org/papers/v11/vinh10a.html. Tested against scikit-learn,
    which a server does not need otherwise: it belongs to the extra `data`.

    Args:
        first: the group of every item, numbered from 0.
        second: the group of every item in the other partition.

    Returns:
        1 if the partitions are equal up to the numbers of their groups, 0 on average if they are
        independent; it can fall a little below 0.
    """
    table = np.zeros((first.max() + 1, second.max() + 1))
    np.add.at(table, (first, second), 1)
    table /= len(first)
    entropies = [entropy(table.sum(axis=axis), "nats") for axis in (1, 0)]
    shared = sum(entropies) - entropy(table.ravel(), "nats")
    expected = expected_mutual_information(np.bincount(first), np.bincount(second))
    margin = sum(entropies) / 2 - expected
    # The margin is 0 only if every permutation gives the same partition.
    return float((shared - expected) / margin) if margin > 1e-12 else 1.0


def expected_mutual_information(
    first_sizes: Int[np.ndarray, " group"], second_sizes: Int[np.ndarray, " other"]
) -> float:
    """Return the mean mutual information, in nats, of two random partitions with these group sizes.

    The number n of items that two groups of sizes a and b of N items share is hypergeometric:

        E[I] = Σ_a Σ_b Σ_n  n/N · ln(N·n/(a·b)) · C(a, n)·C(N−a, b−n)/C(N, b)
    """
    total = int(first_sizes.sum())
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, total + 1)))])
    return sum(
        _expected_share(int(a), int(b), log_factorial)
        for a in first_sizes[first_sizes > 0]
        for b in second_sizes[second_sizes > 0]
    )


def _expected_share(a: int, b: int, log_factorial: Float[np.ndarray, " count"]) -> float:
    total = len(log_factorial) - 1
    n = np.arange(max(1, a + b - total), min(a, b) + 1)
    log_probability = (
        log_factorial[[a, b, total - a, total - b]].sum()
        - log_factorial[total]
        - log_factorial[n]
        - log_factorial[a - n]
        - log_factorial[b - n]
        - log_factorial[total - a - b + n]
    )
    return float((n / total * np.log(total * n / (a * b)) * np.exp(log_probability)).sum())
