"""How far two ways of dividing the same things into groups agree, whatever the groups are called.

Vinh, Epps and Bailey 2010, https://jmlr.org/papers/v11/vinh10a.html.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from headlight.model.analysis.distributions import entropy


def adjusted_mutual_information(
    first: Int[np.ndarray, " thing"], second: Int[np.ndarray, " thing"]
) -> float:
    """(I − E[I]) / (mean of the two entropies − E[I]).

    E[I] is the mean over all ways to shuffle the things among the groups, group sizes kept.

    Args:
        first: the group of every thing, numbered from 0.
        second: the same in another division.

    Returns:
        1 where the divisions are the same up to the groups' names, 0 on average where they have
        nothing to do with each other; it can fall a little below 0.
    """
    table = np.zeros((first.max() + 1, second.max() + 1))
    np.add.at(table, (first, second), 1)
    table /= len(first)
    entropies = entropy(table.sum(axis=1)), entropy(table.sum(axis=0))
    shared = sum(entropies) - entropy(table.ravel())
    expected = expected_mutual_information(np.bincount(first), np.bincount(second))
    room = sum(entropies) / 2 - expected
    # No room is left only where every shuffle gives the same division as the other one.
    return float((shared - expected) / room) if room > 1e-12 else 1.0


def expected_mutual_information(
    first_sizes: Int[np.ndarray, " group"], second_sizes: Int[np.ndarray, " other"]
) -> float:
    """The mean mutual information, in nats, of two random divisions with these group sizes.

    The number n of things that two groups of sizes a and b of N things share is hypergeometric:

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
    log_chance = (
        log_factorial[[a, b, total - a, total - b]].sum()
        - log_factorial[total]
        - log_factorial[n]
        - log_factorial[a - n]
        - log_factorial[b - n]
        - log_factorial[total - a - b + n]
    )
    return float((n / total * np.log(total * n / (a * b)) * np.exp(log_chance)).sum())
