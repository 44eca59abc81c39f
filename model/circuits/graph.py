"""The graph of a model: what each part writes to the stream, and what each part reads of it.

A writer is the embedding, a head, a feed-forward network or all experts of a layer. A reader is the
query, key or value of a head, a feed-forward network, or the logits. An edge leads from a writer to
a reader that comes after it: the input of a reader is the sum of all writers before it (Elhage et
al. 2021, https://transformer-circuits.pub/2021/framework/index.html), then the norm, once for each
reader. Keys and values that heads share are one reader.

Nothing here imports PyTorch. `graph_of` makes the graph of a description; `graph_parts` has the
matrices and norms, and checks that the graph is exact.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from headlight.model.attention.terms import AttentionFacts
    from headlight.model.description import Description

Kind = Literal["tokens", "head", "attention", "feed_forward", "expert"]
Input = Literal["query", "key", "value", "attention", "feed_forward", "logits"]

_LETTERS: Mapping[str, str] = {"query": "q", "key": "k", "value": "v"}
_SITES: Mapping[str, str] = {"query": "queries", "key": "keys", "value": "values"}


class NoGraph(ValueError):
    """The model has no exact graph; the message gives the reason."""


class UnknownEdge(ValueError):
    """An edge that the graph does not have."""


@dataclass(frozen=True, kw_only=True)
class Writer:
    """A part that adds to a stream: ``path`` is that of its attention, network or experts.

    ``kind`` ``attention`` is a whole attention, where a norm follows its heads. ``step`` is its
    place among the writes of its stack; the writers of one attention, and the experts of one layer,
    share it.
    """

    name: str
    kind: Kind
    stack: str
    step: int
    layer: int | None = None
    head: int | None = None
    expert: int | None = None
    path: str = ""


@dataclass(frozen=True, kw_only=True)
class Reader:
    """A part that reads a stream: ``stream`` is the site of the sum that it reads.

    ``site`` is the tensor that it makes of it, ``norm`` the site of the norm between the two, empty
    if the model itself goes on from the stream. ``heads`` are those of a query, key or value.
    ``step``: it reads the writers of `stack` with a lower one.
    """

    name: str
    kind: Input
    stack: str
    step: int
    stream: str
    site: str
    norm: str = ""
    layer: int | None = None
    heads: tuple[int, ...] = ()
    path: str = ""


@dataclass(frozen=True)
class Graph:
    """Writers and readers in the order of the pass, and the edges between them.

    ``reasons`` are those for which it has fewer nodes than heads and layers.
    """

    writers: tuple[Writer, ...]
    readers: tuple[Reader, ...]
    reasons: tuple[str, ...] = field(default=())

    @cached_property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """The numbers of a writer and of a reader that comes after it, reader by reader."""
        return tuple(
            (number, at)
            for at, reader in enumerate(self.readers)
            for number, writer in enumerate(self.writers)
            if writer.stack == reader.stack and writer.step < reader.step
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the edges, ``3.3→logits``."""
        return tuple(
            f"{self.writers[first].name}→{self.readers[last].name}" for first, last in self.edges
        )

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    def edge(self, name: str) -> int:
        """Return the number of an edge by its name; ``->`` may replace the arrow.

        Raises:
            UnknownEdge: there is no such edge; the message suggests the nearest.
        """
        spelled = name.replace("->", "→").replace(" ", "")
        if spelled not in self._numbers:
            nearest = difflib.get_close_matches(spelled[:60], self.names, n=1, cutoff=0.5)
            hint = f"did you mean {nearest[0]!r}?" if nearest else f"they begin {self.names[0]!r}"
            raise UnknownEdge(f"the graph has no edge {name[:60]!r}; {hint}")
        return self._numbers[spelled]

    def fed_by(self, writer: int) -> tuple[int, ...]:
        """Return the numbers of the readers that a writer computes its output of."""
        return self._readers_of[writer]

    @cached_property
    def _readers_of(self) -> Mapping[int, tuple[int, ...]]:
        """By writer, the readers that are its inputs."""
        return {
            at: tuple(n for n, reader in enumerate(self.readers) if _is_input(reader, writer))
            for at, writer in enumerate(self.writers)
        }


def _is_input(reader: Reader, writer: Writer) -> bool:
    if reader.path != writer.path or not reader.path:
        return False
    return not reader.heads or writer.head is None or writer.head in reader.heads


def graph_of(
    description: Description,
    *,
    by_head: bool = True,
    by_input: bool = True,
    by_expert: bool = False,
) -> Graph:
    """Return the graph of a model.

    Args:
        description: of the model.
        by_head: whether each head is a writer; False: a norm follows the heads, so an attention is
            one writer.
        by_input: whether queries, keys and values are readers; False: an attention is one reader.
        by_expert: whether each expert is a writer; False: all experts of a layer are one. They are
            one reader either way, as their router reads what they read.

    Raises:
        NoGraph: the stream of the model is not a sum of what its parts write, or its experts are to
            be told apart and cannot be.
    """
    builder = _Builder(description, by_head=by_head, by_input=by_input, by_expert=by_expert)
    return builder.build()


class _Builder:
    def __init__(
        self, description: Description, *, by_head: bool, by_input: bool, by_expert: bool
    ) -> None:
        self.description, self.config = description, description.config
        self.sites = frozenset(description.site_names)
        self.by_head, self.by_input, self.by_expert = by_head, by_input, by_expert
        self.writers: list[Writer] = []
        self.readers: list[Reader] = []
        self.steps: dict[str, int] = {}

    def build(self) -> Graph:
        if self.config.norm_place == "post":
            raise NoGraph(
                f"the model '{self.description.id}' has its norms after each sum (post), so no "
                "write reaches a later layer unchanged and there are no edges between layers"
            )
        stacks = [
            stack
            for stack in ("encoder", "decoder")
            if f"{stack}.layers.0.residual.before" in self.sites
        ]
        if not stacks:
            raise NoGraph(
                f"the model '{self.description.id}' has no residual stream that can be read"
            )
        if self.by_expert and self.config.moe is None:
            raise NoGraph(f"the model '{self.description.id}' has no experts to tell apart")
        for stack in stacks:
            self._stack(stack)
        last = stacks[-1]
        site = f"{last}.layers.{self.config.n_layers - 1}.residual.after"
        self._require(site)
        step = self.steps[last]
        self.readers.append(
            Reader(name="logits", kind="logits", stack=last, step=step, stream=site, site=site)
        )
        reasons = []
        if not self.by_head:
            reasons.append("a norm follows the heads, so each attention is one writer")
        if not self.by_input:
            reasons.append(
                "queries or keys are not a matrix times the norm of the stream, so each attention "
                "is one reader"
            )
        return Graph(tuple(self.writers), tuple(self.readers), tuple(reasons))

    def _require(self, site: str) -> None:
        if site not in self.sites:
            reason = self.description.omitted.get(site, "the model has no such site")
            raise NoGraph(f"the graph needs {site}: {reason}")

    def _stack(self, stack: str) -> None:
        prefix = "" if self._is_only(stack) else f"{stack}."
        self.steps[stack] = 1
        self.writers.append(Writer(name=f"{prefix}tokens", kind="tokens", stack=stack, step=0))
        for layer in range(self.config.n_layers):
            at = f"{stack}.layers.{layer}"
            is_parallel = f"{at}.residual.middle" not in self.sites
            before = self.steps[stack]
            self._attention(f"{prefix}{layer}", stack, layer, "self_attention", "before")
            if f"{at}.cross_attention.context" in self.sites:
                place = "between" if f"{at}.residual.between" in self.sites else "before"
                self._attention(f"cross.{layer}", stack, layer, "cross_attention", place)
            self._feed_forward(f"{prefix}{layer}.ff", stack, layer, before if is_parallel else None)

    def _is_only(self, stack: str) -> bool:
        return stack == "decoder" or self.config.kind == "encoder"

    def _attention(self, name: str, stack: str, layer: int, kind: str, place: str) -> None:
        path = f"{stack}.layers.{layer}.{kind}"
        self._require(f"{path}.context")
        heads = {facts.path: facts for facts in self.description.attentions}[path]
        stream = f"{stack}.layers.{layer}.residual.{place}"
        self._require(stream)
        norm = f"{stack}.layers.{layer}.{kind.removeprefix('self_')}_norm"
        self._require(norm)
        step = self.steps[stack]
        common: dict[str, Any] = {"stack": stack, "layer": layer, "path": path}
        if not self.by_input:
            read = {"step": step, "stream": stream, "site": norm, "norm": norm, **common}
            self.readers.append(Reader(name=f"{name}.in", kind="attention", **read))
        else:
            kinds: tuple[Literal["query", "key", "value"], ...] = ("query", "key", "value")
            for each in kinds:
                self._inputs(name, each, heads, common, step, stream, norm)
        if self.by_head:
            self.writers += [
                Writer(name=f"{name}.{head}", kind="head", step=step, head=head, **common)
                for head in range(heads.n_heads)
            ]
        else:
            self.writers.append(Writer(name=f"{name}.attn", kind="attention", step=step, **common))
        self.steps[stack] += 1

    def _inputs(
        self,
        name: str,
        kind: Literal["query", "key", "value"],
        facts: AttentionFacts,
        common: dict[str, Any],
        step: int,
        stream: str,
        norm: str,
    ) -> None:
        site = f"{common['path']}.{_SITES[kind]}"
        self._require(site)
        is_crossing = kind != "query" and common["path"].endswith("cross_attention")
        if is_crossing:  # keys and values are of the encoder's last stream, behind its last norm
            last = f"encoder.layers.{self.config.n_layers - 1}.residual.after"
            self._require(last)
            common = {**common, "stack": "encoder"}
            stream, norm, step = last, "encoder.norm", self.steps["encoder"]
        n_readers = facts.n_heads if kind == "query" else facts.n_groups
        shared = facts.n_heads // n_readers
        for number in range(n_readers):
            heads = tuple(range(number * shared, (number + 1) * shared))
            numbers = f"{heads[0]}" if shared == 1 else f"{heads[0]}-{heads[-1]}"
            self.readers.append(
                Reader(
                    name=f"{name}.{numbers}.{_LETTERS[kind]}",
                    kind=kind,
                    step=step,
                    stream=stream,
                    site=site,
                    norm=norm,
                    heads=heads,
                    **common,
                )
            )

    def _feed_forward(self, name: str, stack: str, layer: int, before: int | None) -> None:
        """Add the network of a layer; `before` is the step that it reads, if not the last."""
        at = f"{stack}.layers.{layer}"
        paths = [f"{at}.{kind}" for kind in ("experts", "feed_forward")]
        present = [path for path in paths if f"{path}.output" in self.sites]
        path = present[0] if present else paths[1]
        norm = f"{at}.feed_forward_norm"
        if before is not None and norm not in self.sites:
            norm = f"{at}.attention_norm"  # one norm for both, as Cohere has it
        place = "middle" if before is None else "before"
        self._require(norm)
        common: dict[str, Any] = {"stack": stack, "layer": layer, "path": path}
        step = self.steps[stack]
        self.readers.append(
            Reader(
                name=name,
                kind="feed_forward",
                step=step if before is None else before,
                stream=f"{at}.residual.{place}",
                site=norm,
                norm=norm,
                **common,
            )
        )
        if self.by_expert and path.endswith(".experts"):
            self._experts(name, step, common)
        else:
            self.writers.append(Writer(name=name, kind="feed_forward", step=step, **common))
        self.steps[stack] += 1

    def _experts(self, name: str, step: int, common: dict[str, Any]) -> None:
        path = common["path"]
        for part in ("expert_outputs", "expert_indices"):
            self._require(f"{path}.{part}")
        begin = name.removesuffix("ff")
        n_experts = self.config.moe.n_experts if self.config.moe else 0
        self.writers += [
            Writer(name=f"{begin}e{number}", kind="expert", step=step, expert=number, **common)
            for number in range(n_experts)
        ]
