"""A trace: one forward pass as plain data, from any model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from headlight.model import notebook
from headlight.model.attention.terms import AttentionFacts as AttentionFacts
from headlight.model.plotting import Drawable

ROLES = ("system", "user", "assistant", "tool")
"""Those of messages."""
SEGMENTS = ("first", "second")
"""The roles of the two texts of a pair."""
TEMPLATE = "template"
"""The role of what a template adds to the words of messages, or to a pair."""


@dataclass(frozen=True, kw_only=True)
class Token:
    r"""A token of the text.

    ``text`` is the token's name, a function of its id: what it spells, leading space included, a
    byte of a character as ``\xf0`` (`token_names`). ``start`` and ``end`` are character
    offsets into the text; tokens of parts of one character share its offsets. ``word`` is the
    index of the word that the token belongs to, None for special tokens. ``role`` is that of the
    message whose words it spells, `TEMPLATE` if a chat template added it; None: there are none.
    """

    id: int
    text: str
    start: int
    end: int
    word: int | None
    is_special: bool
    role: str | None = None

    @property
    def is_typed(self) -> bool:
        """Whether it spells characters of the text; a start token that was added does not."""
        return not self.is_special or self.end > self.start


class Message(NamedTuple):
    """A message of a conversation: its role, one of `ROLES`, and its words."""

    role: str
    content: str


@dataclass(frozen=True, kw_only=True)
class Rotation:
    """The rotation of the queries of the first layer by their position p, pair by pair.

        rotated[first]  = factor·(query[first]·cos(p·speed) − query[second]·sin(p·speed))
        rotated[second] = factor·(query[second]·cos(p·speed) + query[first]·sin(p·speed))

    ``first`` and ``second`` are the dimensions of each pair; the other dimensions of a head stay as
    they are. ``speeds`` are in radians per position. Without scaling they are base^(−2·pair/width),
    where width is two for each pair; ``base`` None: it is not known. ``scaling`` are the settings
    of the model's config that change them for long texts, its ``rope_type`` among them.
    ``n_tokens`` is the length of the text whose rotation this is; 0: every length has the same.
    """

    first: tuple[int, ...]
    second: tuple[int, ...]
    speeds: tuple[float, ...]
    factor: float = 1.0
    base: float | None = None
    scaling: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    n_tokens: int = 0


@dataclass(frozen=True, repr=False)
class NamedArray:
    """An array with named axes, such as ``("head", "query", "key")``.

    Raises:
        ValueError: the number of names differs from the array's number of axes.
    """

    axes: tuple[str, ...]
    data: NDArray[np.generic]

    def __post_init__(self) -> None:
        if len(self.axes) != self.data.ndim:
            raise ValueError(f"an array of shape {self.data.shape} cannot have axes {self.axes}")

    @property
    def sizes(self) -> str:
        """The axes and their sizes, ``head=4 query=12 key=12``."""
        return " ".join(
            f"{axis}={size}" for axis, size in zip(self.axes, self.data.shape, strict=True)
        )

    def __repr__(self) -> str:
        return f"NamedArray({self.sizes or 'a number'}, {self.data.dtype})"


@runtime_checkable
class Tiles(Protocol):
    """The queries, keys and logsumexp of an attention, from which any weight follows."""

    @property
    def n_bytes(self) -> int:
        """The memory that they take."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Heads, queries and keys."""

    def tile(
        self, head: int, queries: tuple[int, int], keys: tuple[int, int], resolution: int
    ) -> Mapping[str, Any]:
        """Return ``mean_map`` and ``max_map`` (query_bin, key_bin) of a part of a head's weights.

        Args:
            head: the head.
            queries: the first and the one after the last.
            keys: as the queries.
            resolution: the greatest number of bins on each side.

        Raises:
            ValueError: there is no such head, or the rectangle is empty or leaves the map.
        """


@dataclass(frozen=True, kw_only=True, repr=False)
class Trace(Drawable):
    """The tokens of one text and the captured arrays of its forward pass, by site.

    ``trace[site]`` is the array of a site and ``trace.tensors[site]`` the same with the names of
    its axes. ``trace.figure(site, head=3)`` is a Plotly figure, ``trace.show()`` the page.

    Arrays have no batch axis, because a trace has one text. In an encoder–decoder, ``target`` is
    the decoder's text and ``target_tokens`` are its tokens. ``precision`` is the dtype of the
    pass, float32 or bfloat16. ``heads`` are the heads along the ``head`` axes, in order; None: all.
    ``attentions`` are the terms of each softmax by path; one that is not listed is causal in a
    decoder and sees everything elsewhere. ``timings`` are in milliseconds, by step.

    ``resolution`` is the greatest number of bins on each side of the sites ``mean_map`` and
    ``max_map``, ``queries`` are the positions of ``rows``; None: neither was asked for. ``kept``
    are the attentions of which `tile` computes any part, by path.
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
    attentions: Mapping[str, AttentionFacts] = field(default_factory=dict)
    timings: Mapping[str, float] = field(default_factory=dict)
    resolution: int | None = None
    queries: tuple[int, ...] | None = None
    kept: Mapping[str, Tiles] = field(default_factory=dict)

    def show(self, height: int = 800) -> Any:
        """Return the page with this trace, for an output cell of a notebook; it needs no server.

            headlight.trace(checkpoint, "The cat sat.").show()

        It has the views whose arrays the trace holds: capture `*` for all of them. A notebook file
        stores the page, about 1.5 MB and the trace. ``show().save(path)`` writes it as a file.

        Args:
            height: of the cell, in pixels.

        Returns:
            A `headlight.saved_page.SavedPage`, which a notebook draws.

        Raises:
            ValueError: the trace holds no attention weights.
        """
        return notebook.page(self, height)

    def tile(
        self,
        path: str,
        head: int,
        queries: tuple[int, int],
        keys: tuple[int, int],
        resolution: int = 512,
    ) -> dict[str, NamedArray]:
        """Return a rectangle of one head's weights, exact or pooled, without a new pass.

        Args:
            path: of the attention, ``decoder.layers.0.self_attention``.
            head: the head.
            queries: the first and the one after the last.
            keys: as the queries.
            resolution: the greatest number of bins on each side; bins of one cell are exact.

        Returns:
            ``mean_map`` and ``max_map`` (query_bin, key_bin).

        Raises:
            KeyError: the attention was not kept.
            ValueError: there is no such head, or the rectangle is empty or leaves the map.
        """
        if path not in self.kept:
            known = ", ".join(self.kept) or "none; trace with a resolution, or call `Client.tile`"
            raise KeyError(f"{path!r} is not kept; the attentions that are: {known}")
        tensors = self.kept[path].tile(head, queries, keys, resolution)
        axes = ("query_bin", "key_bin")
        return {
            name: NamedArray(axes, each.float().cpu().numpy()) for name, each in tensors.items()
        }

    def __getitem__(self, site: str) -> NDArray[np.generic]:
        """Return the array of a site.

        Raises:
            KeyError: the site was not captured; the message lists the sites that were.
        """
        if site not in self.tensors:
            raise KeyError(f"the trace lacks {site!r}; it holds {', '.join(self.tensors)}")
        return self.tensors[site].data

    def __iter__(self) -> Iterator[str]:
        """Return the names of its sites."""
        return iter(self.tensors)

    def __contains__(self, site: object) -> bool:
        return site in self.tensors

    def __repr__(self) -> str:
        """Return the text, the model, and one line for each site."""
        text = self.text if len(self.text) <= 80 else f"{self.text[:79]}…"
        lines = [f"Trace of {text!r} by {self.model}"]
        for site, array in self.tensors.items():
            lines.append(f"  {site}  {array.sizes}  {array.data.dtype}")
        return "\n".join(lines)
