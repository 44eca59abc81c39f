"""The terms of a softmax: everything but queries and keys that its weights depend on.

    s_ij = softcap·tanh(scale·q_i·k_j / softcap) + bias_ij − slope·|i − j|, −∞ where i sees no j
    w_ij = exp(s_ij) / (exp(sink) + Σ_j exp(s_ij))

They are described once, by `Terms`. `AttentionFacts` adds to them what a model is known by: it is
plain data, which a folder stores and a page shows. `scores.ScoreTerms` adds the tensors of one
pass. Nothing here needs PyTorch, so that a client can read it without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

MASKED = -1e30
"""The score of a key that is not visible: finite, so that weight · score is 0."""

Array: TypeAlias = Any
"""Of PyTorch or of NumPy."""

Block = tuple[int, int]
"""The first position and the one after the last."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The terms that are numbers, the same for every text.

    Args:
        scale: the factor of Q·Kᵀ; None: it is not known.
        softcap: the bound of the scores; None: there is none.
        is_causal: whether a query sees only itself and earlier keys.
        window: a query sees only keys less than this far away; None: any.
        chunk: a query sees only the keys of the same chunk of this length; None: any.
    """

    is_causal: bool = False
    scale: float | None = None
    softcap: float | None = None
    window: int | None = None
    chunk: int | None = None

    def sees(self, queries: Array, keys: Array) -> list[Array]:
        """Return masks, each True where a query may see a key: those of all terms that hide any.

        Args:
            queries: positions, as a column.
            keys: positions, as a row.
        """
        masks = [keys <= queries] if self.is_causal else []
        if self.window is not None:
            masks.append(abs(queries - keys) < self.window)
        if self.chunk is not None:
            masks.append(queries // self.chunk == keys // self.chunk)
        return masks


@dataclass(frozen=True, kw_only=True)
class AttentionFacts(Terms):
    """The terms of one attention of a model, and the heads that share them.

    Args:
        path: ``decoder.layers.0.self_attention``.
        n_heads: heads of queries.
        n_groups: heads of keys and values.
        has_bias: whether a bias is added to the scores.
        has_sink: whether another score takes part in the softmax, whose weight goes to no key.
        sinks: the logit of each head's sink; None: there is none, or it is not the same for every
            text.
        is_exact: whether the formula gives the scores of this attention to 1e-6 of their scale.
    """

    path: str
    n_heads: int
    n_groups: int
    has_bias: bool = False
    has_sink: bool = False
    sinks: tuple[float, ...] | None = None
    is_exact: bool = True
