"""Passes in which a reader does not read all that was written: edges are cut or patched.

    input of r = stream + Σ_w cut_wr · (other_w − x_w)

The stream holds what the writers wrote in this pass. Of a cut edge the reader reads what its writer
wrote in another pass (path patching: Goldowsky-Dill et al. 2023, https://arxiv.org/abs/2304.05969),
or zero, or a mean. The norm follows the sum, once for each reader. Routers read the mixed input.

`Mixing` makes the functions of a pass at its sites. A pass has variants × pairs rows: each variant
cuts other edges of the same pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headlight.model.circuits.graph import Reader
from headlight.model.circuits.parts import GraphParts, recording
from headlight.model.hooks import Edit
from headlight.model.interventions.intervention import ImpossibleIntervention, Intervention
from headlight.model.served import Served

Writes = Mapping[int, Float[Tensor, "pair query d_model"]]
"""The addition of each writer, by number, to its stream."""

Ids = Sequence[Sequence[int]]


@dataclass
class Mixing:
    """The functions of one pass at its sites; make a new one for each pass.

    Args:
        parts: of the model.
        cut: the edges that are cut, by variant; one position, or as many as the texts have.
        other: what the readers of cut edges read, by writer.
        start: the position of the first query, after those of a cache.
        is_placed: whether the last axis of `cut` is of positions, even if it has one entry.
    """

    parts: GraphParts
    cut: Bool[Tensor, "variant writer reader query"]
    other: Writes
    start: int = 0
    is_placed: bool = False
    kept: dict[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        graph = self.parts.graph
        self.writers = [n for n in range(len(graph.writers)) if bool(self.cut[:, n].any())]
        self.place = {writer: number for number, writer in enumerate(self.writers)}
        self.readers = [n for n in range(len(graph.readers)) if bool(self.cut[:, :, n].any())]
        self.changes: dict[str, Tensor] = {}

    def edits(self) -> Iterator[tuple[str, Edit]]:
        """Yield a function of the tensor at each site that the pass must go through."""
        graph = self.parts.graph
        cut_readers = [graph.readers[number] for number in self.readers]
        edits = list(read_writes(self.parts, self.writers, self.kept, self._written))
        replaced: dict[str, list[Reader]] = {}
        for reader in cut_readers:
            replaced.setdefault(reader.site, []).append(reader)
        streams = dict.fromkeys(reader.stream for reader in cut_readers)
        known = {site for site, _ in edits}
        yield from (
            (site, recording(self.kept, site))
            for site in streams
            if site not in known and site not in replaced
        )
        yield from edits
        for site, readers in replaced.items():
            yield site, self._mixer(readers)

    def _written(self, writer: int, written: Tensor) -> None:
        """Keep other_w − x_w of a writer, as the pass comes to it."""
        stack = self.parts.graph.writers[writer].stack
        other = self.other[writer].to(written)
        n_pairs = len(other)
        by_variant = written.unflatten(0, (-1, n_pairs))
        n_tokens = written.shape[1]
        if self.start == 0 and 1 < n_tokens != other.shape[1] > 1:
            raise ImpossibleIntervention(
                f"the text of a cut has {other.shape[1]} tokens, and this one has {n_tokens}; "
                "an edge carries what its writer wrote at the same position, so send a text of "
                "as many tokens"
            )
        if other.shape[1] != 1:
            other = other[:, self.start : self.start + n_tokens]
        if other.shape[1] not in (1, n_tokens):  # beyond the other text: nothing is changed
            missing = n_tokens - other.shape[1]
            rest = by_variant[0][:, n_tokens - missing :]
            other = torch.cat([other, rest], dim=1)
        if stack not in self.changes:
            numbers = [w for w in self.writers if self.parts.graph.writers[w].stack == stack]
            self.place |= {w: number for number, w in enumerate(numbers)}
            self.changes[stack] = written.new_zeros(len(numbers), *by_variant.shape)
        self.changes[stack][self.place[writer]] = other[None] - by_variant

    def _mixer(self, readers: Sequence[Reader]) -> Edit:
        graph = self.parts.graph
        numbers = [graph.readers.index(reader) for reader in readers]
        first = readers[0]

        def edit(tensor: Tensor) -> Tensor:
            stream = tensor if first.kind == "logits" else self.kept[first.stream]
            mixed = self._mixed(numbers, stream, first.stack)  # reader row query d_model
            if first.kind == "logits":
                return mixed[0].to(tensor.dtype)
            normed = self.parts.norms[first.norm](mixed)
            if not first.heads:
                return normed[0].to(tensor.dtype)
            heads = [head for reader in readers for head in reader.heads]
            repeats = torch.tensor([len(reader.heads) for reader in readers], device=tensor.device)
            by_head = normed.repeat_interleave(repeats, dim=0)
            made = self.parts.inputs[first.site](by_head, heads)
            edited = tensor.clone()
            edited[:, heads] = made.transpose(0, 1).to(tensor.dtype)
            return edited

        return edit

    def _mixed(self, readers: Sequence[int], stream: Tensor, stack: str) -> Tensor:
        """Return the input of each reader: the stream with the changes of its cut edges."""
        graph = self.parts.graph
        cut = self.cut[:, :, list(readers)]
        before = [
            w for w in self.writers if graph.writers[w].stack == stack and bool(cut[:, w].any())
        ]
        changes = self.changes[stack][[self.place[w] for w in before]]
        mask = cut[:, before].to(changes.dtype)  # variant writer reader query
        mask = mask.expand(changes.shape[1], -1, -1, -1)
        if mask.shape[-1] == 1 and not self.is_placed:
            added = torch.einsum("vwr,wvptd->rvptd", mask[..., 0], changes)
        else:
            at = mask[..., self.start : self.start + stream.shape[1]]
            if at.shape[-1] < stream.shape[1]:
                at = torch.nn.functional.pad(at, (0, stream.shape[1] - at.shape[-1]))
            added = torch.einsum("vwrt,wvptd->rvptd", at, changes)
        return stream + added.flatten(1, 2)


def read_writes(
    parts: GraphParts,
    writers: Iterable[int],
    kept: dict[str, Tensor],
    take: Callable[[int, Tensor], object],
) -> Iterator[tuple[str, Edit]]:
    """Yield functions at sites that hand on what each writer adds to its stream.

    Args:
        parts: of the model.
        writers: their numbers.
        kept: receives the streams by site.
        take: called with the number of a writer and its tensor (row, query, d_model).
    """
    graph = parts.graph
    wanted = {number: graph.writers[number] for number in writers}
    heads: dict[str, list[int]] = {}
    contexts: dict[str, list[int]] = {}  # contexts that a parallel layer's network is left by
    experts: dict[str, list[int]] = {}
    sums: list[tuple[str, str, int]] = []
    has_middle = {
        reader.stream.rpartition(".")[0]
        for reader in graph.readers
        if reader.stream.endswith(".middle")
    }
    tokens = {}
    for number, writer in wanted.items():
        at = f"{writer.stack}.layers.{writer.layer}.residual"
        if writer.kind == "tokens":
            tokens[f"{writer.stack}.layers.0.residual.before"] = number
        elif writer.kind == "head":
            heads.setdefault(writer.path, []).append(number)
        elif writer.kind == "expert":
            experts.setdefault(writer.path, []).append(number)
        elif writer.kind == "feed_forward" and at in has_middle:
            sums.append((f"{at}.middle", f"{at}.after", number))
        elif writer.kind == "feed_forward":
            sums.append((f"{at}.before", f"{at}.after", number))
            for other in graph.writers:
                if (
                    other.kind == "head"
                    and other.layer == writer.layer
                    and (other.stack == writer.stack)
                ):
                    contexts.setdefault(other.path, []).append(number)
        else:
            sums.append((f"{at}.before", f"{at}.middle", number))
    layers: dict[str, list[tuple[str, int]]] = {}
    for first, last, number in sums:
        layers.setdefault(last, []).append((first, number))
    attended: dict[str, Tensor] = {}

    def at_context(path: str) -> Edit:
        numbers = heads.get(path, [])
        index = [graph.writers[number].head for number in numbers]

        def edit(tensor: Tensor) -> Tensor:
            output = parts.outputs[path]
            if index:
                written = torch.einsum("bhqd,hde->hbqe", tensor[:, index], output[index])
                for number, each in zip(numbers, written, strict=True):
                    take(number, each)
            if path in contexts:
                attended[path] = torch.einsum("bhqd,hde->bqe", tensor, output)
            return tensor

        return edit

    def at_experts(path: str) -> Edit:
        def edit(tensor: Tensor) -> Tensor:
            chosen = kept[f"{path}.expert_indices"]
            for number in experts[path]:
                is_of = chosen.eq(graph.writers[number].expert or 0)[..., None]
                take(number, (tensor * is_of).sum(dim=2))
            return tensor

        return edit

    def at_stream(site: str) -> Edit:
        def edit(tensor: Tensor) -> Tensor:
            kept[site] = tensor
            if site in tokens:
                take(tokens[site], tensor)
            for first, number in layers.get(site, ()):
                written = tensor - kept[first]
                for path, of in contexts.items():
                    if number in of:
                        written = written - attended[path]
                take(number, written)
            return tensor

        return edit

    for path in dict.fromkeys([*heads, *contexts]):
        yield f"{path}.context", at_context(path)
    for path in experts:
        yield f"{path}.expert_indices", recording(kept, f"{path}.expert_indices")
        yield f"{path}.expert_outputs", at_experts(path)
    for site in dict.fromkeys([*tokens, *layers, *(first for first, _, _ in sums)]):
        yield site, at_stream(site)


@dataclass(frozen=True)
class MixedPasses:
    """Passes over pairs of texts of one length with edges cut.

    Args:
        model: the model.
        parts: of its graph.
        interventions: act in every pass.
    """

    model: Served
    parts: GraphParts
    interventions: tuple[Intervention, ...] = ()

    def writes(self, texts: Ids, targets: Ids | None) -> tuple[dict[int, Tensor], Tensor]:
        """Return what every writer adds to its stream in a pass, and the logits."""
        written: dict[int, Tensor] = {}
        numbers = range(len(self.parts.graph.writers))
        edits = read_writes(self.parts, numbers, {}, written.__setitem__)
        with torch.inference_mode(False), torch.no_grad():
            logits = self.model.run(texts, targets, edits=edits, interventions=self.interventions)
        return written, logits

    def logits(
        self,
        texts: Ids,
        targets: Ids | None,
        cut: Bool[Tensor, "variant writer reader query"],
        other: Writes,
    ) -> Float[Tensor, "variant pair query vocab"]:
        """Return the logits of a pass for each variant of cut edges.

        Args:
            texts: of the pairs.
            targets: of an encoder–decoder.
            cut: the edges that are cut.
            other: what the readers of cut edges read.
        """
        n_variants = len(cut)
        mixing = Mixing(self.parts, cut, other)
        rows = [text for _ in range(n_variants) for text in texts]
        rows_of_targets = [each for _ in range(n_variants) for each in targets] if targets else None
        with torch.inference_mode(False), torch.no_grad():
            logits = self.model.run(
                rows, rows_of_targets, edits=list(mixing.edits()), interventions=self.interventions
            )
        by_variant: Tensor = logits.unflatten(0, (n_variants, -1))
        return by_variant
