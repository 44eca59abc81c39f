"""Score edges: how much a logit difference depends on each, by gradients or by patching.

    EAP     score_wr = Σ_positions (corrupted_w − clean_w) · ∂D/∂x_r        Syed et al. 2023,
            https://arxiv.org/abs/2310.10348
    EAP-IG  the same, the gradient averaged over embeddings between the two texts:
            corrupted + α·(clean − corrupted), α = (k + ½)/steps for k = 0 … steps − 1; Hanna et
            al. 2024, https://arxiv.org/abs/2403.17806. Their code takes α = k/steps, so that one
            step is the corrupted text; here one step is the middle.
    noising   D with the edge from the corrupted text, less D, in the clean run
    denoising D of the corrupted run, less D with the edge from the clean text

All estimate the change of D as the edge is corrupted; the sum over edges into one reader is that
of corrupting its whole input. x_r is the stream that r reads, before its norm, whose derivative
J = (1 − 11ᵀ/d − nnᵀ/d)/s ⊙ γ is applied without a tensor of readers × writers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headlight.model.cancellation import check
from headlight.model.circuits.pairs import Pair, PairPasses, differences, texts_of
from headlight.model.hooks import Edit

Method: TypeAlias = Literal["eap", "eap_ig", "noising", "denoising", "exact"]
STEPS = 5


def edge_scores(
    passes: PairPasses, method: Method = "eap_ig", steps: int = STEPS
) -> Float[np.ndarray, " edge"]:
    """Return the score of each edge, the mean over pairs; negative: it works for the right token.

    Edges are those of `PairPasses.edges`, by position if positions are told apart.

    Args:
        passes: over the pairs.
        method: ``exact`` is the mean of noising and denoising.
        steps: of EAP-IG.

    Raises:
        Cancelled: as `cancellation`.
    """
    if method in ("eap", "eap_ig"):
        n_steps = steps if method == "eap_ig" else 0
        return gradient_scores(passes, n_steps, by_position=passes.by_position).flatten()
    clean, corrupted = passes.whole()
    every = frozenset(range(passes.edges.n_edges))
    without = [every - {number} for number in sorted(every)]
    parts = []
    if method in ("noising", "exact"):
        parts.append(passes.with_only(without) - clean)
    if method in ("denoising", "exact"):
        parts.append(corrupted - passes.with_only(without, is_reversed=True))
    scores: Float[np.ndarray, " edge"] = np.mean(parts, axis=(0, 2))
    return scores


def gradient_scores(
    passes: PairPasses, steps: int, *, by_position: bool = False
) -> Float[np.ndarray, ...]:
    """Return the scores of EAP-IG (edge), or (edge, position) of pairs of one length.

    `steps` 0 is EAP: the gradient at the clean text. Position scores sum to the edge's.
    """
    total: np.ndarray | None = None
    for numbers in passes.groups():
        pairs = [passes.pairs[number] for number in numbers]
        scores = _Gradients(passes, pairs, by_position=by_position).scores(steps)
        total = scores if total is None else total + scores
    assert total is not None
    return total / len(passes.pairs)


class _Gradients:
    """The gradients of one group of pairs."""

    def __init__(self, passes: PairPasses, pairs: Sequence[Pair], *, by_position: bool) -> None:
        self.passes, self.pairs, self.by_position = passes, pairs, by_position
        self.parts, self.graph = passes.parts, passes.graph
        self.clean, _ = passes.passes.writes(*texts_of(pairs, is_clean=True))
        self.corrupted, _ = passes.passes.writes(*texts_of(pairs, is_clean=False))
        self.changes: dict[str, Tensor] = {}
        self.places: dict[str, list[int]] = {}
        for number, writer in enumerate(self.graph.writers):
            self.places.setdefault(writer.stack, []).append(number)
        for stack, numbers in self.places.items():
            self.changes[stack] = torch.stack(
                [self.corrupted[number] - self.clean[number] for number in numbers]
            )
        self.matrices: dict[str, tuple[Tensor, Tensor]] = {}
        self.readers: dict[str, list[int]] = {}
        for number, reader in enumerate(self.graph.readers):
            self.readers.setdefault(reader.site, []).append(number)

    def scores(self, steps: int) -> np.ndarray:
        shares = [(step + 0.5) / steps for step in range(steps)] or [1.0]
        edges = torch.tensor(self.graph.edges)
        shape = [len(self.graph.writers), len(self.graph.readers)]
        if self.by_position:
            shape.append(max(written.shape[1] for written in self.clean.values()))
        total = torch.zeros(shape, dtype=torch.float64)
        for share in shares:
            check()
            self._add(total, share)
        scores: np.ndarray = total[edges[:, 0], edges[:, 1]].numpy() / len(shares)
        return scores

    def _add(self, total: Tensor, share: float) -> None:
        streams, made, leaves = self._pass(share)
        sites = list(made)
        gradients = torch.autograd.grad(
            leaves, [made[site] for site in sites], allow_unused=True, materialize_grads=True
        )
        by_norm: dict[tuple[str, str], list[tuple[str, Tensor, Tensor]]] = {}
        for site, gradient in zip(sites, gradients, strict=True):
            first = self.graph.readers[self.readers[site][0]]
            of_norm = by_norm.setdefault((first.stream, first.norm), [])
            of_norm.append((site, made[site].detach(), gradient))
        with torch.no_grad():
            for of_norm in by_norm.values():
                self._add_readers(total, streams, of_norm)

    def _pass(self, share: float) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        """Return the streams, what readers make of them, and the sum of D over the pairs."""
        streams: dict[str, Tensor] = {}
        made: dict[str, Tensor] = {}
        embeddings = {
            f"{self.graph.writers[number].stack}.layers.0.residual.before": number
            for number, writer in enumerate(self.graph.writers)
            if writer.kind == "tokens"
        }

        def at_stream(site: str) -> Edit:
            def edit(tensor: Tensor) -> Tensor:
                if site in embeddings:
                    clean, corrupted = (
                        writes[embeddings[site]] for writes in (self.clean, self.corrupted)
                    )
                    tensor = torch.lerp(corrupted, clean, share).requires_grad_()
                elif site in self.readers:
                    tensor = made[site] = tensor.clone()
                streams[site] = tensor
                return tensor

            return edit

        def at_reader(site: str) -> Edit:
            def edit(tensor: Tensor) -> Tensor:
                made[site] = tensor.clone()
                return made[site]

            return edit

        wanted = dict.fromkeys([*embeddings, *(reader.stream for reader in self.graph.readers)])
        edits = [(site, at_stream(site)) for site in wanted]
        edits += [(site, at_reader(site)) for site in self.readers if site not in wanted]
        model = self.passes.model
        with torch.inference_mode(False), torch.enable_grad():
            texts, targets = texts_of(self.pairs, is_clean=True)
            logits = model.run(texts, targets, edits=edits, interventions=self.passes.interventions)
            return streams, made, differences(logits, self.pairs).sum()

    def _add_readers(
        self,
        total: Tensor,
        streams: Mapping[str, Tensor],
        of_norm: Sequence[tuple[str, Tensor, Tensor]],
    ) -> None:
        """Add Σ change · Jᵀ·gradient of each writer and each reader behind one norm."""
        numbers = [number for site, _, _ in of_norm for number in self.readers[site]]
        first = self.graph.readers[numbers[0]]
        before = [
            place
            for place, number in enumerate(self.places[first.stack])
            if self.graph.writers[number].step < first.step
        ]
        changes = self.changes[first.stack][: before[-1] + 1]
        if first.kind == "logits":
            pulled = of_norm[0][2][None]
        else:
            pulled = self._through_norm(streams, of_norm)
        added = self._product(changes, pulled)
        writers = [self.places[first.stack][place] for place in range(len(changes))]
        index: tuple[Any, ...] = torch.tensor(writers)[:, None], torch.tensor(numbers)
        if self.by_position:
            index = (*index, slice(added.shape[-1]))
        total[index] += added.double().cpu()

    def _through_norm(
        self, streams: Mapping[str, Tensor], of_norm: Sequence[tuple[str, Tensor, Tensor]]
    ) -> Float[Tensor, "reader pair query d_model"]:
        """Return Jᵀ·gradient: m = γ ⊙ (gradient of the norm's output)/s, less its parts along n, 1.

        J is applied to the readers, not to the changes: there are fewer of them behind one norm.
        With the gradient g of q = n·Wγ + constant, n·m = g·(q − constant)/s, and m has no part
        along 1 if the columns of Wγ have none.
        """
        first = self.graph.readers[self.readers[of_norm[0][0]][0]]
        norm = self.parts.norms[first.norm]
        centred, size = norm.split(streams[first.stream].detach())
        normal, width = centred / size, centred.shape[-1]
        if not first.heads:
            (pulled,) = [gradient * norm.scale / size for _, _, gradient in of_norm]
            pulled = pulled - normal * (pulled * normal).mean(-1, keepdim=True)
            return (pulled - pulled.mean(-1, keepdim=True) if norm.is_centred else pulled)[None]
        numbers = [number for site, _, _ in of_norm for number in self.readers[site]]
        pulled = normal.new_empty(len(numbers), normal.shape[0] * normal.shape[1], width)
        start = 0
        for site, made, gradient in of_norm:
            matrix, constant = self._matrix(site)
            by_head = (gradient / size[:, None]).transpose(0, 1)
            along = (gradient * (made - constant[:, None])).sum(-1).transpose(0, 1) / size[..., 0]
            heads = [list(self.graph.readers[number].heads) for number in self.readers[site]]
            if any(len(each) > 1 for each in heads):  # they share keys or values, and their matrix
                by_head = torch.stack([by_head[each].sum(dim=0) for each in heads])
                along = torch.stack([along[each].sum(dim=0) for each in heads])
            out = pulled[start : start + len(heads)]
            torch.bmm(by_head.flatten(1, 2), matrix, out=out)
            out.addcmul_(along.flatten(1)[..., None], normal.flatten(0, 1), value=-1 / width)
            start += len(heads)
        unfolded: Tensor = pulled.unflatten(1, normal.shape[:2])
        return unfolded

    def _matrix(self, site: str) -> tuple[Tensor, Tensor]:
        """Return (γ·W)ᵀ of each reader, its rows centred as the norm is, and q at n = 0 by head."""
        if site not in self.matrices:
            readers = [self.graph.readers[number] for number in self.readers[site]]
            norm, matrix = self.parts.norms[readers[0].norm], self.parts.inputs[site]
            weight = matrix.weight[[reader.heads[0] for reader in readers]] * norm.scale[:, None]
            if norm.is_centred:
                weight = weight - weight.mean(dim=1, keepdim=True)
            shift = torch.zeros_like(norm.scale) if norm.shift is None else norm.shift
            n_heads = len(matrix.weight)
            constant = matrix(shift.expand(n_heads, 1, 1, -1), list(range(n_heads)))[:, 0, 0]
            self.matrices[site] = weight.transpose(1, 2).contiguous(), constant
        return self.matrices[site]

    def _product(self, changes: Tensor, pulled: Tensor) -> Tensor:
        if self.by_position:
            return torch.einsum("wptd,rptd->wrt", changes, pulled)
        return changes.flatten(1) @ pulled.flatten(1).T
