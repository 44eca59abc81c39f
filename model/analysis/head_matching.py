"""Match the heads of two models by their attention maps.

The similarity of two heads is the Pearson correlation of their weights on the same texts, over all
pairs of a query and a key that is not masked. The matching maximises the sum of the similarities,
each head having at most one partner (the assignment problem; Kuhn 1955,
https://doi.org/10.1002/nav.3800020109).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

Maps = Float[np.ndarray, "head query key"]


class HeadPair(NamedTuple):
    """A head of each model, numbered through all layers, and the correlation of their maps."""

    first: int
    second: int
    correlation: float


def head_correlations(
    first: Sequence[Maps], second: Sequence[Maps]
) -> Float[np.ndarray, "head_of_first head_of_second"]:
    """Correlate the causal attention maps of every two heads over some texts.

    Args:
        first: the weights of one model for each text, all heads of all layers along one axis.
        second: those of the other model for the same tokens.

    Returns:
        Pearson's r in [-1, 1], float64; 0 for a head whose weights never differ.

    Raises:
        ValueError: there is no text, or the models read different tokens.
    """
    if not first or [maps.shape[1:] for maps in first] != [maps.shape[1:] for maps in second]:
        raise ValueError("both models must read the same texts, cut into the same tokens")
    rows, columns = (_standardised(maps) for maps in (first, second))
    found: Float[np.ndarray, "head_of_first head_of_second"] = rows @ columns.T
    return found.clip(-1, 1)


def match_heads(correlations: Float[np.ndarray, "first second"]) -> list[HeadPair]:
    """Match heads one to one so that the sum of their correlations is the greatest possible.

    Args:
        correlations: as `head_correlations` returns them.

    Returns:
        As many pairs as the smaller model has heads, in the order of the first model's.
    """
    from scipy.optimize import linear_sum_assignment

    firsts, seconds = linear_sum_assignment(correlations, maximize=True)
    return [
        HeadPair(int(one), int(other), float(correlations[one, other]))
        for one, other in zip(firsts, seconds, strict=True)
    ]


def _standardised(texts: Sequence[Maps]) -> Float[np.ndarray, "head pair"]:
    """The weights of every head in one row of mean 0 and norm 1."""
    rows = np.concatenate([maps[(slice(None), *_unmasked(maps))] for maps in texts], axis=1)
    rows = rows.astype(np.float64)
    rows -= rows.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    standardised: Float[np.ndarray, "head pair"] = rows / np.where(norms > 0, norms, 1)
    return standardised


def _unmasked(maps: Maps) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
    """The indices of queries and of the keys up to them; the first query has no choice."""
    queries, keys = np.tril_indices(maps.shape[1])
    return queries[1:], keys[1:]
