"""Sites, the names of a model's hook points, and their selection by glob, layer and head."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

_LAYER = re.compile(r"\.layers\.(\d+)\.")
_TOKEN_AXES = ("query", "key", "position")
REQUESTED_AXES = frozenset({"query_bin", "key_bin", "row"})
"""Axes whose sizes a pass asks for: those of maps and rows, which are not sites of a model."""


class UnknownSite(ValueError):
    """The model has no site of that name, or none that the glob matches."""


class UnknownLayer(ValueError):
    """The model has no layer of that number."""


class UnknownHead(ValueError):
    """The model has no head of that number."""


@dataclass(frozen=True)
class Site:
    """The name of a hook point, and the axes of the tensor that passes through it.

    ``sizes`` are those of the axes that the architecture fixes: all but the axes of the tokens.
    """

    name: str
    axes: tuple[str, ...]
    sizes: Mapping[str, int] = field(default_factory=dict, compare=False)


def match_sites(globs: Iterable[str], names: Iterable[str]) -> list[str]:
    """Return the names that match any of the globs, in the order of the names.

    Raises:
        UnknownSite: a glob matches nothing; the message suggests the nearest name or glob.
    """
    names = dict.fromkeys(names)
    matched: set[str] = set()
    for glob in globs:
        of_glob = [glob] if glob in names else list(filter(_matcher(glob), names))
        if not of_glob:
            raise UnknownSite(_unknown_site(glob, list(names)))
        matched.update(of_glob)
    return [name for name in names if name in matched]


@lru_cache(maxsize=64)
def _matcher(glob: str) -> Callable[[str], object]:
    """Return a function that returns a match or None, compiled once per glob.

    `fnmatch.filter` would keep 32,768 compiled globs, which clients choose; 64 are enough.
    """
    return re.compile(fnmatch.translate(glob)).match


def _unknown_site(glob: str, names: Sequence[str]) -> str:
    spellings: dict[str, None] = {}
    for name in names:
        parts = name.split(".")
        for spelling in (name, re.sub(r"\.\d+\.", ".*.", name)):
            spellings[spelling] = None
        for length in range(1, len(parts)):
            spellings[".".join(parts[:length]) + ".*"] = None
    shown = glob if len(glob) <= 100 else glob[:100] + "…"
    nearest = difflib.get_close_matches(shown, spellings, n=1, cutoff=0.4)
    known = f"; there are {len(names)} sites, from {names[0]!r} to {names[-1]!r}"
    hint = f"; did you mean {nearest[0]!r}?" if nearest else known
    return f"no site matches {shown!r}{hint}"


def layer_of(site: str) -> int | None:
    """Return the number of the layer that a site belongs to; None: it is outside."""
    match = _LAYER.search(site)
    return int(match.group(1)) if match else None


def require_layers(layers: Sequence[int], names: Iterable[str]) -> None:
    """Raise UnknownLayer if `layers` is empty or the sites lack one of them."""
    known = sorted({layer for name in names if (layer := layer_of(name)) is not None})
    if not layers:
        raise UnknownLayer("layers is empty; leave it out for all layers")
    for layer in layers:
        if layer not in known:
            raise UnknownLayer(f"there is no layer {layer}; the layers are 0 to {known[-1]}")


def require_heads(heads: Sequence[int], n_heads: int) -> None:
    """Raise UnknownHead if `heads` is empty, names a head twice, or is not within 0 … n_heads−1."""
    if not heads:
        raise UnknownHead("heads is empty; leave it out for all heads")
    for head in heads:
        if not 0 <= head < n_heads:
            raise UnknownHead(f"there is no head {head}; the heads are 0 to {n_heads - 1}")
    if len(set(heads)) < len(heads):
        raise UnknownHead(f"heads {list(heads)} names a head twice")


@runtime_checkable
class HasTokens(Protocol):
    """The tokens of a text and, for an encoder–decoder, those of its target."""

    @property
    def tokens(self) -> Sequence[Any]:
        """The tokens of the text."""

    @property
    def target_tokens(self) -> Sequence[Any] | None:
        """The tokens of the target; None if there is none."""


def tokens_along(texts: HasTokens, site: str, axis: str, size: int) -> Sequence[Any]:
    """Return the tokens along an axis of a site's array; empty if the axis does not index tokens.

    In an encoder–decoder, the encoder and the keys of cross-attention have the tokens of the
    source; everything else has those of the target.

    Args:
        texts: a trace, or anything with its tokens.
        site: the name of a site, or a name that contains one or that of a stack.
        axis: the name of the axis.
        size: the size of the axis.
    """
    is_source = "encoder" in site.split(".") or (axis == "key" and "cross_attention" in site)
    has_target = texts.target_tokens is not None and not is_source
    tokens = (texts.target_tokens if has_target else texts.tokens) or ()
    return tokens if axis in _TOKEN_AXES and len(tokens) == size else ()
