"""The graph of a loaded model with its norms and matrices, and the proof that it is exact.

`parts_of` reads one text and compares: the stream with the sum of what is written to it, and
queries, keys and values with those of the formula. Where heads or inputs do not hold, the graph is
made of whole attentions; where those do not hold either, there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from headlight.model.circuits.graph import Graph, NoGraph, graph_of
from headlight.model.hooks import Edit
from headlight.model.served import Served
from headlight.model.weights import InputMatrix, NormParts, Weights, distance_of_sum

TOLERANCE = 2e-5
"""The largest difference from the sum or formula, by the largest number; rounding makes 1e-6."""
BFLOAT16_TOLERANCE = 4e-2
N_PROBED = 7


@dataclass(frozen=True)
class GraphParts:
    """An exact graph with the weights of its nodes."""

    graph: Graph
    weights: Weights

    @cached_property
    def norms(self) -> Mapping[str, NormParts]:
        """The norms of the readers by site."""
        known = {}
        for site in dict.fromkeys(reader.norm for reader in self.graph.readers if reader.norm):
            norm = self.weights.norm(site)
            assert norm is not None
            known[site] = norm
        return known

    @cached_property
    def inputs(self) -> Mapping[str, InputMatrix]:
        """The matrices of queries, keys and values by site."""
        known = {}
        for site in dict.fromkeys(reader.site for reader in self.graph.readers if reader.heads):
            matrix = self.weights.inputs(site)
            assert matrix is not None
            known[site] = matrix
        return known

    @cached_property
    def outputs(self) -> Mapping[str, Tensor]:
        """W_O (head, d_head, d_model) of the attentions whose heads are writers."""
        known = {}
        for path in dict.fromkeys(w.path for w in self.graph.writers if w.kind == "head"):
            output = self.weights.outputs(path)
            assert output is not None
            known[path] = output
        return known


def parts_of(model: Served, *, by_expert: bool = False) -> GraphParts:
    """Return the graph of a loaded model with its weights, proved exact on one text.

    Args:
        model: the model.
        by_expert: whether each expert is a writer.

    Raises:
        NoGraph: there is none that is exact; the message gives the reason.
    """
    key = "_graph_parts_by_expert" if by_expert else "_graph_parts"
    known = model.__dict__.get(key)
    if isinstance(known, GraphParts):
        return known
    parts = _Proof(model, by_expert=by_expert).parts()
    # A frozen dataclass keeps no attribute that is set; the graph is the same for every caller.
    model.__dict__[key] = parts
    return parts


class _Proof:
    def __init__(self, model: Served, *, by_expert: bool) -> None:
        self.model, self.weights = model, model.graph_weights()
        self.by_expert = by_expert
        sites = model.description.site_names
        wanted = [".residual.", "attention.context", "attention.queries"]
        if by_expert:
            wanted.append(".expert_outputs")
        more = ("attention.keys", "attention.values", "_norm", ".norm")
        kept = [
            site for site in sites if any(part in site for part in wanted) or site.endswith(more)
        ]
        is_double = model.config.kind == "encoder-decoder"
        size = model.config.vocab_size
        avoided: frozenset[int] = getattr(model, "avoided", frozenset())
        free = [token for token in range(3, size) if token not in avoided]
        step = max(1, len(free) // N_PROBED)
        ids = free[::step][:N_PROBED]
        if len(ids) < 2:
            raise NoGraph(f"the model has {size} tokens, too few to check its graph")
        captured = model.read([ids], [ids[::-1]] if is_double else None, sites=kept)
        self.tensors = {site: tensor.clone() for site, tensor in captured.items()}
        is_exact = model.precision in ("float32", "float64")
        self.tolerance = TOLERANCE if is_exact else BFLOAT16_TOLERANCE

    def parts(self) -> GraphParts:
        description = self.model.description
        by_head, by_input = True, True
        graph = graph_of(description, by_expert=self.by_expert)
        if self._wrong_heads(graph):
            by_head = False
        if self._wrong_inputs(graph):
            by_input = False
        graph = graph_of(description, by_head=by_head, by_input=by_input, by_expert=self.by_expert)
        if reason := (
            self._wrong_norms(graph)
            or self._wrong_stream(graph, by_head=by_head)
            or self._wrong_experts(graph)
        ):
            raise NoGraph(f"the model '{description.id}' has no exact graph: {reason}")
        if not by_input and self._crosses(graph):
            raise NoGraph(
                f"the model '{description.id}' has no exact graph: the keys of its "
                "cross-attention are not a matrix times the encoder's output"
            )
        if not by_input and self._shares_norm(graph):
            raise NoGraph(
                f"the model '{description.id}' has no exact graph: attention and feed-forward "
                "network read one norm, and queries are more than a matrix times it"
            )
        return GraphParts(graph, self.weights)

    def _crosses(self, graph: Graph) -> bool:
        return any(reader.path.endswith("cross_attention") for reader in graph.readers)

    def _shares_norm(self, graph: Graph) -> bool:
        norms = [reader.norm for reader in graph.readers if reader.norm]
        return len(set(norms)) < len(norms)

    def _differs(self, made: Tensor, expected: Tensor) -> bool:
        size = float(expected.abs().max())
        return not float((made - expected).abs().max()) <= self.tolerance * max(size, 1e-6)

    def _wrong_heads(self, graph: Graph) -> bool:
        """Return True if the heads of an attention are not what it adds to the stream."""
        for path in dict.fromkeys(w.path for w in graph.writers if w.kind == "head"):
            output, context = self.weights.outputs(path), self.tensors[f"{path}.context"]
            if output is None:
                return True
            written = torch.einsum("bhqd,hde->bqe", context.to(output.dtype), output)
            ends = self._ends_of(path)
            if ends is None:
                continue  # parallel: the rest of the layer is the network's
            rest = ends[1] - ends[0] - written  # the bias, the same at every position
            made = ends[0] + written + rest.mean(dim=1, keepdim=True)
            if not distance_of_sum(made, *ends) <= self.tolerance:
                return True
        return False

    def _ends_of(self, path: str) -> tuple[Tensor, Tensor] | None:
        """Return the stream before and after an attention; None: other parts add to it at once."""
        layer, _, kind = path.rpartition(".")
        places = [
            place
            for place in ("before", "between", "middle")
            if f"{layer}.residual.{place}" in self.tensors
        ]
        at = places.index("between") if kind == "cross_attention" and "between" in places else 0
        if len(places) < at + 2:
            return None
        first, last = (self.tensors[f"{layer}.residual.{places[at + n]}"] for n in (0, 1))
        return first, last

    def _wrong_inputs(self, graph: Graph) -> bool:
        """Return True if queries, keys or values are not those of norm and matrix."""
        for site, norm_site, stream in dict.fromkeys(
            (reader.site, reader.norm, reader.stream) for reader in graph.readers if reader.heads
        ):
            matrix, norm = self.weights.inputs(site), self.weights.norm(norm_site)
            if matrix is None or norm is None:
                return True
            n_heads = len(matrix.weight)
            normed = norm(self.tensors[stream].to(matrix.weight.dtype))
            made = matrix(normed.expand(n_heads, *normed.shape), list(range(n_heads)))
            if self._differs(made.transpose(0, 1), self.tensors[site].to(made.dtype)):
                return True
        return False

    def _wrong_norms(self, graph: Graph) -> str:
        for site, stream in dict.fromkeys((r.norm, r.stream) for r in graph.readers if r.norm):
            norm = self.weights.norm(site)
            if norm is None:
                return f"{site} is neither LayerNorm nor RMSNorm"
            if site in self.tensors:
                made = norm(self.tensors[stream].to(norm.scale.dtype))
                if self._differs(made, self.tensors[site].to(made.dtype)):
                    return f"{site} is not the norm of {stream}"
        return ""

    def _wrong_stream(self, graph: Graph, *, by_head: bool) -> str:
        """Return the reason if a layer does not add to the stream, as one that scales it."""
        for stack in dict.fromkeys(writer.stack for writer in graph.writers):
            for layer in range(self.model.config.n_layers - 1):
                after = self.tensors.get(f"{stack}.layers.{layer}.residual.after")
                before = self.tensors.get(f"{stack}.layers.{layer + 1}.residual.before")
                if after is None or before is None or self._differs(after, before):
                    return f"layer {layer} does not hand its stream on to the next"
        if not by_head and any(
            "middle" not in reader.stream
            for reader in graph.readers
            if reader.kind == "feed_forward"
        ):
            return "a norm follows its heads, and its network reads the same stream as they do"
        return ""

    def _wrong_experts(self, graph: Graph) -> str:
        """Return the reason if a layer adds more, or other, than the sum of its experts."""
        for path in dict.fromkeys(w.path for w in graph.writers if w.kind == "expert"):
            layer = path.rpartition(".")[0]
            before, after = (
                self.tensors.get(f"{layer}.residual.{place}") for place in ("middle", "after")
            )
            if before is None or after is None:
                return f"{layer} adds its heads and its experts at once"
            written = self.tensors[f"{path}.expert_outputs"].sum(dim=2)
            if self._differs(written, after - before):
                return f"{path} adds more to the stream than its experts"
        return ""


def recording(kept: dict[str, Tensor], site: str) -> Edit:
    """Return an edit that keeps the tensor of a site, and does not change it."""

    def edit(tensor: Tensor) -> Tensor:
        kept[site] = tensor
        return tensor

    return edit
