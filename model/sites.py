"""The names of a model's hook points, and how layers and globs choose among them."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

_LAYER = re.compile(r"\.layers\.(\d+)\.")


class UnknownSite(ValueError):
    """A site or a glob that matches nothing in the model."""


class UnknownLayer(ValueError):
    """A layer number that the model does not have."""


class UnknownHead(ValueError):
    """A head number that the model does not have."""


@dataclass(frozen=True)
class Site:
    """One place that can be captured: its name and the axes of the tensor that passes there."""

    name: str
    axes: tuple[str, ...]


def match_sites(globs: Iterable[str], names: Iterable[str]) -> list[str]:
    """The names that match any of the globs, in the order of the names.

    Raises:
        UnknownSite: a glob matches nothing; the message suggests the nearest that does.
    """
    names = dict.fromkeys(names)
    matched: set[str] = set()
    for glob in globs:
        found = [glob] if glob in names else list(filter(_matcher(glob), names))
        if not found:
            raise UnknownSite(_unknown_site(glob, list(names)))
        matched.update(found)
    return [name for name in names if name in matched]


@lru_cache(maxsize=64)
def _matcher(glob: str) -> Callable[[str], object]:
    """What tells whether a name matches.

    `fnmatch.filter` keeps 32,768 globs of strangers; here a few suffice.
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
    """The number of the layer that a site lies in, None for a site outside the layers."""
    found = _LAYER.search(site)
    return int(found.group(1)) if found else None


def require_layers(layers: Sequence[int], names: Iterable[str]) -> None:
    """Raise UnknownLayer unless the sites have all these layers."""
    known = sorted({layer for name in names if (layer := layer_of(name)) is not None})
    if not layers:
        raise UnknownLayer("layers is empty; leave it out for all layers")
    for layer in layers:
        if layer not in known:
            raise UnknownLayer(f"there is no layer {layer}; the layers are 0 to {known[-1]}")


def require_heads(heads: Sequence[int], n_heads: int) -> None:
    """Raise UnknownHead unless there are all these heads, each named once."""
    if not heads:
        raise UnknownHead("heads is empty; leave it out for all heads")
    for head in heads:
        if not 0 <= head < n_heads:
            raise UnknownHead(f"there is no head {head}; the heads are 0 to {n_heads - 1}")
    if len(set(heads)) < len(heads):
        raise UnknownHead(f"heads {list(heads)} names a head twice")
