"""The parts of a residual stream, each through a matrix that reads the stream.

A stream is the sum of the token, the position where one is added, each head's context through its
columns of W_O, each feed-forward network or layer of experts, and a constant of all biases. With
the scales of all norms held at their values of this pass, a norm that follows a sum is linear too:

    part · W → part · C·diag(γ)·W / σ          C subtracts the mean, for LayerNorm only

so a walk from the reader back to the embedding carries one matrix and one number for each position,
and no part is ever held in the width of the stream. Elhage et al. 2021,
https://transformer-circuits.pub/2021/framework/index.html.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from headlight.model.analysis.layers import ATTENTIONS
from headlight.model.config import Architecture
from headlight.model.trace import Trace
from headlight.model.weights import NormParts, Weights

Kind = Literal["token", "position", "head", "network", "constant", "distance"]
FEED_FORWARDS = ("feed_forward", "experts")
TOLERANCE = 1e-4
"""The largest difference of a formula from the pass, by the largest number."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of a stream by its place in the model.

    ``name`` is that of the writer in a circuit, ``0.1`` or ``0.ff``; ``token``, ``position``,
    ``constant`` and ``distance`` are none. ``path`` is that of the attention or the network.
    """

    name: str
    kind: Kind
    stack: str
    layer: int | None = None
    head: int | None = None
    path: str = ""


@dataclass(frozen=True)
class _Step:
    """A step of a stream: the sites at its ends, the attentions that write in it, a network."""

    layer: int
    begin: str
    end: str
    attentions: tuple[str, ...]
    network: str | None
    norm: str


def prefix_of(config: Architecture, stack: str) -> str:
    """Return the beginning of the names of a stack's parts, as in `circuits.graph`."""
    return "encoder." if stack == "encoder" and config.has_decoder else ""


def steps_to(sites: Sequence[str], site: str) -> list[_Step]:
    """Return the steps of a stack from its embedding to a site of its stream, in order."""
    known, (stack, _, number, *_) = frozenset(sites), site.split(".")
    steps: list[_Step] = []
    for layer in range(int(number) + 1):
        path = f"{stack}.layers.{layer}"
        names = [n for n in ("before", "between", "middle") if f"{path}.residual.{n}" in known]
        waiting = [f"{path}.{kind}" for kind in ATTENTIONS if f"{path}.{kind}.context" in known]
        last = f"{path}.residual.after" if layer == int(number) else _before(stack, layer + 1)
        ends = [*(f"{path}.residual.{name}" for name in names), last]
        for at, (begin, end) in enumerate(pairwise(ends)):
            if begin == site:
                return steps
            is_end = at == len(ends) - 2
            taken = waiting if is_end or at == len(ends) - 3 else waiting[:1]
            waiting, has_network = waiting[len(taken) :], is_end or not taken
            network = next(
                (f"{path}.{k}" for k in FEED_FORWARDS if f"{path}.{k}.output" in known),
                f"{path}.feed_forward",
            )
            name = "feed_forward" if has_network else taken[0].rpartition(".")[2]
            norm = f"{path}.{name.removeprefix('self_')}_norm"
            steps.append(
                _Step(layer, begin, end, tuple(taken), network if has_network else None, norm)
            )
    return steps


def _before(stack: str, layer: int) -> str:
    return f"{stack}.layers.{layer}.residual.before"


class StreamReader:
    """The parts of a stream at some positions, through a matrix, from a trace with its sites.

    Args:
        trace: of the text.
        weights: of the model.
        config: of the model.
        site: of the stream, such as ``decoder.layers.3.residual.before``.
        at: the positions that are read.
    """

    def __init__(
        self, trace: Trace, weights: Weights, config: Architecture, site: str, at: Tensor
    ) -> None:
        self.trace, self.weights, self.config = trace, weights, config
        self.site, self.at, self.stack = site, at, site.partition(".")[0]
        self.through: dict[str, tuple[Tensor, Tensor]] = {}

    def wide(self, site: str) -> Float[Tensor, "position d_model"]:
        """Return the array of a site at the positions, in float64."""
        return torch.from_numpy(self.trace[site])[self.at].double()

    def parts(
        self, matrix: Float[Tensor, "d_model out"], factor: Float[Tensor, " position"]
    ) -> Iterator[tuple[list[Part], Float[Tensor, "part position out"]]]:
        """Yield the parts with what the matrix reads of each, times a factor of each position.

        They sum to the stream times the matrix and the factor. The constant comes last. Then
        ``through`` has the matrix (d_model, out) and the factors behind each attention's W_O.

        Raises:
            ValueError: a norm of the stream is not known.
        """
        constant = torch.zeros(len(self.at), matrix.shape[-1], dtype=torch.float64)
        for step in reversed(steps_to(list(self.trace), self.site)):
            begin, carry = self.wide(step.begin), self.carry_of(step)
            written = self.wide(step.end) - (begin if carry is None else begin * carry)
            if self.config.norm_place == "post":
                written, through, shift = self.through_norm(step, matrix, factor)
                constant += shift
                matrix, factor = through
            for path in step.attentions:
                whole = f"{path}.output"
                is_only = step.network is None and len(step.attentions) == 1
                adds = written if is_only or whole not in self.trace else self.wide(whole)
                parts, read = self._heads(step.layer, path, matrix, factor)
                constant += (adds @ matrix) * factor[:, None] - read.sum(dim=0)
                if not is_only:
                    written = written - adds
                yield parts, read
            if step.network is not None:
                yield ([self._network(step)], ((written @ matrix) * factor[:, None])[None])
            if carry is not None:
                matrix = carry[:, None] * matrix
        yield from self._embedding(matrix, factor, constant)

    def behind_norms(
        self, direction: Float[Tensor, " d_model"]
    ) -> tuple[dict[str, Float[Tensor, " d_model"]], float]:
        """Return the direction before every norm of a post-norm stream, at the one position.

        Args:
            direction: that reads the stream at the site.

        Returns:
            By the path of a part, and of the embedding by ``{stack}.embedding``, what reads its
            write; and the sum of what is read of the shifts of the norms.

        Raises:
            ValueError: a norm of the stream is not known.
        """
        matrix, factor, shifts = direction[:, None], torch.ones(1, dtype=torch.float64), 0.0
        found: dict[str, Tensor] = {}
        for step in reversed(steps_to(list(self.trace), self.site)):
            _, (matrix, factor), shift = self.through_norm(step, matrix, factor)
            shifts += float(shift)
            paths = [*step.attentions, *([step.network] if step.network else ())]
            found |= dict.fromkeys(paths, matrix[:, 0] * factor)
        found[f"{self.stack}.embedding"] = matrix[:, 0] * factor
        return found, shifts

    def begin_of(self, path: str) -> str:
        """Return how the names of an attention's heads begin."""
        return "cross." if "cross_" in path else prefix_of(self.config, self.stack)

    def carry_of(self, step: _Step) -> Float[Tensor, " d_model"] | None:
        """Return the factors by which a step multiplies the stream; None: 1."""
        carry = self.weights.carries.get(step.network or step.attentions[0])
        return None if carry is None else carry.double().cpu()

    def _network(self, step: _Step) -> Part:
        return Part(
            name=f"{prefix_of(self.config, self.stack)}{step.layer}.ff",
            kind="network",
            stack=self.stack,
            layer=step.layer,
            path=step.network or "",
        )

    def through_norm(
        self, step: _Step, matrix: Tensor, factor: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor], Tensor]:
        """Return what a step writes, and matrix, factor and constant before the norm behind it."""
        paths = [*step.attentions, *([step.network] if step.network else ())]
        before = self.wide(step.begin)
        missing = next((p for p in paths if f"{p}.output" not in self.trace), None)
        norm = self.weights.norm(step.norm)
        if missing or norm is None:
            what = f"{missing}.output" if missing else step.norm
            raise ValueError(f"{what} is not known, and the model normalises what it writes")
        total = before + sum(self.wide(f"{path}.output") for path in paths)
        is_exact = self.trace.precision in ("float32", "float64")
        if is_exact and not is_same(norm_of(norm, total), self.wide(step.end)):
            what = f"{step.norm} does more than its formula"
            raise ValueError(f"{what}, so it is no sum of parts")
        through, size, shift = frozen(norm, total, matrix)
        return total - before, (through, factor / size), shift * factor[:, None]

    def _heads(
        self, layer: int, path: str, matrix: Tensor, factor: Tensor
    ) -> tuple[list[Part], Float[Tensor, "head position out"]]:
        contexts = torch.from_numpy(self.trace[f"{path}.context"])[:, self.at].double()
        read = self._through_output(path, matrix, factor, contexts)
        parts = [
            Part(
                name=f"{self.begin_of(path)}{layer}.{head}",
                kind="head",
                stack=self.stack,
                layer=layer,
                head=head,
                path=path,
            )
            for head in range(len(read))
        ]
        return parts, read

    def _through_output(
        self, path: str, matrix: Tensor, factor: Tensor, contexts: Tensor
    ) -> Float[Tensor, "head position out"]:
        """Return what a matrix reads of the contexts of an attention, through its W_O."""
        if (output := self.weights.outputs(path)) is None:
            raise ValueError(f"the matrix that {path} writes with is not known")
        if f"{path}.gain" in self.trace:
            gains = self.wide(f"{path}.gain")  # of each position, a multiple of one vector
            first = gains[0]
            matrix = first[:, None] * matrix
            factor = factor * (gains @ first) / (first @ first)
        self.through[path] = matrix, factor
        through, rows = output.float(), matrix.to(output.device, torch.float32)
        if len(self.at) < matrix.shape[-1] // 2:  # few positions: cheaper in this order
            written = contexts.to(output.device, torch.float32) @ through
            return (written @ rows).double().cpu() * factor[:, None]
        return (contexts @ (through @ rows).double().cpu()) * factor[:, None]

    def of_head(self, part: Part, vectors: Float[Tensor, "row d_head"], at: int) -> Tensor:
        """Return what was read of vectors that a head writes at one of the positions."""
        (matrix, factor), output = self.through[part.path], self.weights.outputs(part.path)
        assert output is not None
        assert part.head is not None
        written = vectors @ output[part.head].double().cpu()
        return (written @ matrix) * factor[at]

    def _embedding(
        self, matrix: Tensor, factor: Tensor, constant: Tensor
    ) -> Iterator[tuple[list[Part], Tensor]]:
        entering = self.wide(_before(self.stack, 0))
        sites = [f"{self.stack}.embedding.{name}" for name in ("tokens", "positional")]
        held = [self.wide(site) for site in sites if site in self.trace]
        norm = self.weights.norm(f"{self.stack}.embedding.norm")
        if norm is not None and held and is_same(norm_of(norm, sum(held)), entering):  # type: ignore[arg-type]
            matrix, size, shift = frozen(norm, sum(held), matrix)  # type: ignore[arg-type]
            constant, factor = constant + shift * factor[:, None], factor / size
        elif not (len(held) == 2 and is_same(held[0] + held[1], entering)):
            held = [entering]
        has_position = sites[1] in self.trace
        names: list[Kind] = ["token", "position"][: len(held)]  # type: ignore[assignment]
        is_mixed = has_position and len(held) == 1
        parts = [
            Part(
                name=f"{prefix_of(self.config, self.stack)}{name}"
                + (" and position" if is_mixed else ""),
                kind=name,
                stack=self.stack,
            )
            for name in names
        ]
        parts.append(Part(name="constant", kind="constant", stack=self.stack))
        read = [(vectors @ matrix) * factor[:, None] for vectors in held]
        yield parts, torch.stack([*read, constant])


# --- norms ----------------------------------------------------------------------------------------


def norm_of(norm: NormParts, x: Tensor) -> Tensor:
    """Return the norm of vectors, in float64."""
    centred, size = norm.split(x)
    shift = 0.0 if norm.shift is None else norm.shift.double().cpu()
    return centred / size * norm.scale.double().cpu() + shift


def frozen(
    norm: NormParts, x: Float[Tensor, "position d_model"], matrix: Float[Tensor, "d_model out"]
) -> tuple[Float[Tensor, "d_model out"], Float[Tensor, " position"], Float[Tensor, " out"]]:
    """Return the matrix behind a norm as one before it, the scales at x, and the shift's share."""
    _, size = norm.split(x)
    through = norm.scale.double().cpu()[:, None] * matrix
    if norm.is_centred:
        through = through - through.mean(dim=0)
    shift = matrix.new_zeros(matrix.shape[-1])
    if norm.shift is not None:
        shift = norm.shift.double().cpu() @ matrix
    return through, size[..., 0], shift


def is_same(made: Tensor, expected: Tensor) -> bool:
    """Return True if two tensors are equal up to rounding."""
    scale = max(float(expected.abs().max()), 1e-30)
    return float((made - expected).abs().max()) <= TOLERANCE * scale
