"""A Trace: one forward pass as plain data, whoever computed it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headlight.model.plotting import Drawable


@dataclass(frozen=True, kw_only=True)
class Token:
    """One piece of the text.

    ``text`` is what the piece spells, leading space included. ``start`` and ``end`` are character
    offsets into the text; several pieces of one character share its offsets. ``word`` numbers the
    word that the piece belongs to, from 0; special tokens belong to none.
    """

    id: int
    text: str
    start: int
    end: int
    word: int | None
    is_special: bool


@dataclass(frozen=True, repr=False)
class NamedArray:
    """An array whose axes have names, ``("head", "query", "key")``.

    Raises:
        ValueError: the array has another number of axes.
    """

    axes: tuple[str, ...]
    data: NDArray[np.generic]

    def __post_init__(self) -> None:
        if len(self.axes) != self.data.ndim:
            raise ValueError(f"an array of shape {self.data.shape} cannot have axes {self.axes}")

    @property
    def sizes(self) -> str:
        """Its axes and their lengths: ``head=4 query=12 key=12``."""
        lengths = zip(self.axes, self.data.shape, strict=True)
        return " ".join(f"{axis}={length}" for axis, length in lengths)

    def __repr__(self) -> str:
        return f"NamedArray({self.sizes or 'a number'}, {self.data.dtype})"


@dataclass(frozen=True, kw_only=True, repr=False)
class Trace(Drawable):
    """What one model did with one text: its tokens and the captured arrays by site.

    One text, so no array has a batch axis. An encoder–decoder reads a second text, ``target``, with
    its decoder: ``target_tokens`` are what the decoder read. ``precision`` is what the model
    computed in, float32 or bfloat16. ``heads`` says which heads the ``head`` axes hold (None: all,
    in order). ``timings`` are milliseconds by step.

    ``trace[site]`` is the array of a site; ``trace.tensors[site]`` names its axes. A notebook draws
    it by itself; ``trace.figure(site, head=3)`` is a Plotly figure of any array.
    """

    model: str
    revision: str
    precision: str
    text: str
    tokens: tuple[Token, ...]
    target: str | None = None
    target_tokens: tuple[Token, ...] | None = None
    tensors: Mapping[str, NamedArray]
    heads: tuple[int, ...] | None = None
    timings: Mapping[str, float] = field(default_factory=dict)

    def __getitem__(self, site: str) -> NDArray[np.generic]:
        """The array of a site.

        Raises:
            KeyError: it was not captured; with what was.
        """
        if site not in self.tensors:
            raise KeyError(f"the trace holds no {site!r}; it holds {', '.join(self.tensors)}")
        return self.tensors[site].data

    def __iter__(self) -> Iterator[str]:
        """The names of its sites."""
        return iter(self.tensors)

    def __contains__(self, site: object) -> bool:
        return site in self.tensors

    def __repr__(self) -> str:
        """The text, the model, and one line for each site."""
        text = self.text if len(self.text) <= 80 else f"{self.text[:79]}…"
        lines = [f"Trace of {text!r} by {self.model}"]
        for site, array in self.tensors.items():
            lines.append(f"  {site}  {array.sizes}  {array.data.dtype}")
        return "\n".join(lines)
