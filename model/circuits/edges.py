"""The edges of a graph by position: each edge once for each position of a text.

    3.3→logits@5       what head 3.3 writes at position 5, as the logits read it there

A part reads and writes at one position; only an attention carries from one to another, from its
keys and values to its queries. With one position it is the graph itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headlight.model.circuits.graph import Graph, UnknownEdge


class Place(NamedTuple):
    """A writer or a reader by its number, and a position."""

    node: int
    position: int


@dataclass(frozen=True)
class Edges:
    """The edges of a graph by position; an edge has the number ``edge · n_positions + position``.

    Args:
        graph: the graph.
        n_positions: of the longest text; 1: positions are not told apart.
        position: that of the prediction.
        is_causal: whether a query sees no later key, in the decoder.
    """

    graph: Graph
    n_positions: int = 1
    position: int = 0
    is_causal: bool = True

    @property
    def n_edges(self) -> int:
        """The number of edges."""
        return len(self.graph.edges) * self.n_positions

    def ends(self, number: int) -> tuple[Place, Place]:
        """Return the writer and the reader of an edge."""
        edge, position = divmod(number, self.n_positions)
        writer, reader = self.graph.edges[edge]
        return Place(writer, position), Place(reader, position)

    def name(self, number: int) -> str:
        """Return the name of an edge, ``3.3→logits@5``."""
        edge, position = divmod(number, self.n_positions)
        name = self.graph.names[edge]
        return f"{name}@{position}" if self.n_positions > 1 else name

    def edge(self, name: str) -> int:
        """Return the number of an edge by its name.

        Raises:
            UnknownEdge: there is no such edge or position.
        """
        edge, position = placed(self.graph, name)
        if self.n_positions == 1:
            if position is not None:
                raise UnknownEdge(f"{name[:60]!r} names a position, and the request is of none")
            return edge
        if position is None or position >= self.n_positions:
            raise UnknownEdge(
                f"{name[:60]!r} needs a position from 0 to {self.n_positions - 1}, as in "
                f"{self.graph.names[edge]}@{self.position}"
            )
        return edge * self.n_positions + position

    def fed_by(self, writer: Place) -> Iterator[Place]:
        """Yield the readers that a writer computes its output of, at the positions it sees."""
        for reader in self.graph.fed_by(writer.node):
            for position in self._seen(reader, writer.position):
                yield Place(reader, position)

    def _seen(self, reader: int, query: int) -> range:
        """Return the positions of a reader that count for the output at a query's position."""
        node = self.graph.readers[reader]
        if node.kind not in ("key", "value", "attention"):
            return range(query, query + 1)
        is_own = self.is_causal and node.stack == "decoder"
        return range(query + 1) if is_own else range(self.n_positions)

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """The numbers of the writer and the reader of each edge of the graph (edge, 2)."""
        return np.array(self.graph.edges, dtype=np.int64).reshape(-1, 2)

    @cached_property
    def last(self) -> list[Place]:
        """The readers that the prediction is made of."""
        return [
            Place(number, self.position)
            for number, reader in enumerate(self.graph.readers)
            if reader.kind == "logits"
        ]

    def on_paths(self, kept: Collection[int]) -> list[int]:
        """Return those of some edges that lie on a path from a text's tokens to the prediction.

        The others change nothing in a run of the circuit: their writer computes what it computes of
        the corrupted text, or nothing that counts reads their reader.
        """
        # The numbers of readers are in the order of the pass.
        edges = sorted(((*self.ends(number), number) for number in kept), key=lambda e: e[1])
        fed = {
            Place(at, position)
            for at, writer in enumerate(self.graph.writers)
            if writer.kind == "tokens"
            for position in range(self.n_positions)
        }
        forward: set[int] = set()
        reached: set[Place] = set()
        for writer, reader, number in edges:
            if writer in fed or any(each in reached for each in self.fed_by(writer)):
                forward.add(number)
                reached.add(reader)
        needed = set(self.last)
        backward: set[int] = set()
        for writer, reader, number in reversed(edges):
            if reader in needed:
                backward.add(number)
                needed.update(self.fed_by(writer))
        return sorted(forward & backward)


def placed(graph: Graph, name: str) -> tuple[int, int | None]:
    """Return the number of an edge by its name, and the position that may follow it.

    Raises:
        UnknownEdge: there is no such edge, or what follows ``@`` is no number.
    """
    bare, at, position = name.partition("@")
    if at and not (position.isascii() and position.isdigit() and len(position) < 7):
        raise UnknownEdge(f"{name[:60]!r} has no number of a position behind its @")
    return graph.edge(bare), int(position) if at else None
