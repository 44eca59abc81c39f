"""The layers and attentions that a trace holds, found by the names of its sites."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray

from headlight.model.attention.terms import Terms
from headlight.model.trace import AttentionFacts, NamedArray, Token, Trace

STACKS = ("encoder", "decoder")
ATTENTIONS = ("self_attention", "cross_attention")
Layers = dict[int, NDArray[np.generic]]

_SITE = re.compile(r"(encoder|decoder)\.layers\.(\d+)\.(.+)")


def layers_of(trace: Trace, part: str) -> dict[str, Layers]:
    """Return the arrays of one part of every layer, by stack and layer number, both in order.

    Args:
        trace: any trace.
        part: the end of the site's name, ``self_attention.weights`` or ``residual.after``.

    Raises:
        KeyError: the trace holds that part of no layer.
    """
    by_stack: dict[str, Layers] = {stack: {} for stack in STACKS}
    for site, array in trace.tensors.items():
        match = _SITE.fullmatch(site)
        if match and match[3] == part:
            by_stack[match[1]][int(match[2])] = array.data
    stacks = {
        stack: {layer: layers[layer] for layer in sorted(layers)}
        for stack, layers in by_stack.items()
        if layers
    }
    if not stacks:
        raise KeyError(f"the trace holds no '*.layers.*.{part}'; capture it")
    return stacks


def require_all_layers(layers: Mapping[int, object], stack: str, part: str) -> None:
    """Raise ValueError unless the layers are 0, 1, 2, … without a gap."""
    missing = sorted(set(range(max(layers))) - set(layers))
    if missing:
        raise ValueError(
            f"the trace lacks {stack}.layers.{missing[0]}.{part}, but holds that of layer "
            f"{max(layers)}; capture '{stack}.layers.*.{part}'"
        )


def float_array(data: Float[np.ndarray, ...], *axes: str) -> NamedArray:
    """Return numbers in float32 with these axes."""
    return NamedArray(axes, data.astype(np.float32))


def tokens_of(trace: Trace, stack: str) -> tuple[Token, ...]:
    """Return the tokens that a stack reads: the target's for a second stack."""
    is_target = stack == "decoder" and trace.target_tokens is not None
    return (trace.target_tokens or ()) if is_target else trace.tokens


@dataclass(frozen=True)
class Attention:
    """The weights of one attention of one layer, in float64, for the captured heads.

    ``kind`` is one of `ATTENTIONS`. Without ``facts``, a decoder's self-attention is causal; an
    encoder's self-attention and every cross-attention see all keys.
    """

    stack: str
    layer: int
    kind: str
    weights: Float[np.ndarray, "head query key"]
    facts: AttentionFacts | None = None

    @property
    def path(self) -> str:
        """The path in the module tree, ``decoder.layers.0.self_attention``."""
        return f"{self.stack}.layers.{self.layer}.{self.kind}"

    @property
    def is_cross(self) -> bool:
        """Whether the keys come from another text than the queries."""
        return self.kind == "cross_attention"

    @property
    def is_causal(self) -> bool:
        """Whether a query sees only itself and earlier tokens."""
        if self.facts is not None:
            return self.facts.is_causal
        return self.stack == "decoder" and not self.is_cross

    @property
    def visible(self) -> Bool[np.ndarray, "query key"]:
        """The attention mask: True where the query sees the key."""
        n_queries, n_keys = self.weights.shape[1:]
        terms = self.facts if self.facts and not self.is_cross else Terms(is_causal=self.is_causal)
        return visible_keys(terms, n_queries, n_keys)

    def tokens(self, trace: Trace) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
        """Return the tokens of the queries and those of the keys.

        Raises:
            ValueError: the trace has no target tokens, or their number differs from the weights'.
        """
        if self.is_cross and trace.target_tokens is None:
            raise ValueError(f"{self.path} attends from target to source; the trace has no target")
        queries = tokens_of(trace, self.stack)
        keys = trace.tokens if self.is_cross else queries
        if (len(queries), len(keys)) != self.weights.shape[1:]:
            raise ValueError(
                f"{self.path}.weights has shape {self.weights.shape}, but the trace has "
                f"{len(queries)} query tokens and {len(keys)} key tokens"
            )
        return queries, keys


def visible_keys(terms: Terms, n_queries: int, n_keys: int) -> Bool[np.ndarray, "query key"]:
    """Return True where a query sees a key."""
    seen = np.ones((n_queries, n_keys), dtype=bool)
    for mask in terms.sees(np.arange(n_queries)[:, None], np.arange(n_keys)):
        seen = seen & mask
    return seen


def attentions_of(trace: Trace, *kinds: str) -> list[Attention]:
    """Return the attentions whose weights a trace holds: encoder first, then by layer.

    Args:
        trace: with ``{stack}.layers.N.{kind}.weights``.
        kinds: of `ATTENTIONS`; none given: both.

    Raises:
        KeyError: the trace holds no weights of these kinds.
    """
    wanted = kinds or ATTENTIONS
    attentions: list[Attention] = []
    for kind in wanted:
        try:
            stacks = layers_of(trace, f"{kind}.weights")
        except KeyError:
            continue
        for stack, layers in stacks.items():
            attentions += [
                Attention(
                    stack,
                    layer,
                    kind,
                    weights.astype(np.float64),
                    trace.attentions.get(f"{stack}.layers.{layer}.{kind}"),
                )
                for layer, weights in layers.items()
            ]
    if not attentions:
        sites = " or ".join(f"'*.{kind}.weights'" for kind in wanted)
        raise KeyError(f"the trace holds no {sites}; capture it")
    return sorted(
        attentions, key=lambda attention: (STACKS.index(attention.stack), attention.layer)
    )
