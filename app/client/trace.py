"""A Trace that came from a server: its arrays by site, its tokens, its analyses."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headlight.client.answers import read_tokens
from headlight.client.files import read_file
from headlight.model import trace
from headlight.model.trace import NamedArray

PREFIX = "analyses."


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """What an analysis computed: its arrays by name, and plain data that goes with them."""

    arrays: Mapping[str, NamedArray]
    beside: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        """An array by its name, or what stands beside the arrays: `texts`, `labels`, `aligner`."""
        if name in self.arrays:
            return self.arrays[name].data
        if name in self.beside:
            return self.beside[name]
        raise KeyError(f"there is no {name!r}; there is {', '.join(self)}")

    def __iter__(self) -> Iterator[str]:
        return iter((*self.arrays, *self.beside))

    def __contains__(self, name: object) -> bool:
        return name in self.arrays or name in self.beside


@dataclass(frozen=True, kw_only=True)
class Trace(trace.Trace):
    """One forward pass as a server answered it.

        trace["decoder.layers.0.self_attention.weights"]          # a NumPy array: head query key
        trace.tensors["decoder.layers.0.self_attention.weights"].axes
        trace.analyses["next_token"]["probabilities"]

    `id` asks for the same trace again (`Client.trace_by_id`); `timings` are milliseconds by step.
    """

    id: str
    analyses: Mapping[str, Analysis] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Positional:
    """An encoding of positions; sizes that its scheme does not know are None."""

    scheme: str
    model: str | None
    length: int
    width: int | None
    heads: int | None
    tensors: Mapping[str, NamedArray]

    def __getitem__(self, name: str) -> NDArray[np.generic]:
        """An array by its name: `encoding`, `angles`, `slopes`."""
        if name not in self.tensors:
            raise KeyError(f"there is no {name!r}; there is {', '.join(self.tensors)}")
        return self.tensors[name].data


def read_trace(content: bytes) -> Trace:
    """A trace from a safetensors answer, or from a file that holds one.

    Raises:
        UnreadableAnswer: it is no such file.
    """
    file = read_file(content)
    found = file.members
    target, heads = found["target_tokens"], found["heads"]
    return Trace(
        id=found["id"],
        model=found["model"],
        revision=found["revision"],
        precision=found["precision"],
        text=found["text"],
        tokens=read_tokens(found["tokens"]),
        target=found["target"],
        target_tokens=None if target is None else read_tokens(target),
        heads=None if heads is None else tuple(heads),
        timings={name.removesuffix("_ms"): took for name, took in found["timings"].items()},
        tensors={name: each for name, each in file.arrays.items() if not name.startswith(PREFIX)},
        analyses={
            name: Analysis(arrays=_arrays_of(name, file.arrays), beside=beside)
            for name, beside in found["analyses"].items()
        },
    )


def read_positional(content: bytes) -> Positional:
    """An encoding of positions from a safetensors answer.

    Raises:
        UnreadableAnswer: it is no such file.
    """
    file = read_file(content)
    sizes = {name: file.members[name] for name in ("scheme", "model", "length", "width", "heads")}
    return Positional(tensors=file.arrays, **sizes)


def _arrays_of(analysis: str, arrays: Mapping[str, NamedArray]) -> dict[str, NamedArray]:
    prefix = f"{PREFIX}{analysis}."
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
