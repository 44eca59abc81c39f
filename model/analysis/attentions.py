"""The attentions that a trace shows: where each one is, its weights, and who looks at whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from headlight.model.analysis.stacks import STACKS, layers_of, tokens_of
from headlight.model.trace import Token, Trace

KINDS = ("self_attention", "cross_attention")


@dataclass(frozen=True)
class Attention:
    """One attention of one layer, with the weights of its captured heads in float64.

    A decoder's self-attention is causal; an encoder's, and every cross-attention, sees all keys.
    """

    stack: str
    layer: int
    kind: str
    weights: Float[np.ndarray, "head query key"]

    @property
    def path(self) -> str:
        """Where it is in the model, ``decoder.layers.0.self_attention``."""
        return f"{self.stack}.layers.{self.layer}.{self.kind}"

    @property
    def is_cross(self) -> bool:
        """Whether the keys are another text than the queries."""
        return self.kind == "cross_attention"

    @property
    def is_causal(self) -> bool:
        """Whether a query sees only itself and what came before."""
        return self.stack == "decoder" and not self.is_cross

    @property
    def visible(self) -> Bool[np.ndarray, "query key"]:
        """True where a query may look."""
        everywhere = np.ones(self.weights.shape[1:], dtype=bool)
        return np.tril(everywhere) if self.is_causal else everywhere

    def tokens(self, trace: Trace) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
        """The tokens of the rows and those of the columns.

        Raises:
            ValueError: the trace has no target tokens, or another number of tokens than weights.
        """
        if self.is_cross and trace.target_tokens is None:
            raise ValueError(f"{self.path} looks from target to source; the trace has no target")
        queries = tokens_of(trace, self.stack)
        keys = trace.tokens if self.is_cross else queries
        if (len(queries), len(keys)) != self.weights.shape[1:]:
            raise ValueError(
                f"{self.path}.weights has shape {self.weights.shape}, but the trace has "
                f"{len(queries)} tokens that attend and {len(keys)} that are attended to"
            )
        return queries, keys


def attentions_of(trace: Trace, *kinds: str) -> list[Attention]:
    """The attentions whose weights a trace holds: encoder first, then by layer, self before cross.

    Args:
        trace: with ``{stack}.layers.N.{kind}.weights``.
        kinds: of `KINDS`; none given: both.

    Raises:
        KeyError: the trace holds no weights of these kinds.
    """
    wanted = kinds or KINDS
    found: list[Attention] = []
    for kind in wanted:
        try:
            stacks = layers_of(trace, f"{kind}.weights")
        except KeyError:
            continue
        for stack, layers in stacks.items():
            found += [
                Attention(stack, layer, kind, weights.astype(np.float64))
                for layer, weights in layers.items()
            ]
    if not found:
        sites = " or ".join(f"'*.{kind}.weights'" for kind in wanted)
        raise KeyError(f"the trace holds no {sites}; capture it")
    return sorted(found, key=lambda one: (STACKS.index(one.stack), one.layer))
