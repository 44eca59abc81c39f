"""Which sites of a model a request asks for: globs, and the layers to keep to."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from functools import lru_cache

from headlight.model.checkpoint import Description
from headlight.model.sites import UnknownSite, layer_of, match_sites, require_heads, require_layers

DEFAULT_CAPTURE = (
    "*.self_attention.weights",
    "*.cross_attention.weights",
    "*.embedding.positional",
    "*.experts.router_probs",
    "*.experts.expert_indices",
    "*.experts.expert_weights",
)
N_REMEMBERED = 128


def select_sites(
    description: Description,
    capture: Sequence[str] | None = None,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
) -> tuple[str, ...]:
    """The sites that a request asks for, in the order of the module tree.

    Args:
        description: of the model; its weights need not be loaded.
        capture: globs; None takes those of `DEFAULT_CAPTURE` that the model has.
        layers: of the sites in a layer, only those in these layers.
        heads: checked to exist.

    Raises:
        UnknownSite, UnknownLayer, UnknownHead: the model has no such thing.
    """
    if heads is not None:
        require_heads(heads, description.config.n_heads)
    names = tuple(site.name for site in description.sites)
    return _select(
        names,
        None if capture is None else tuple(capture),
        None if layers is None else tuple(layers),
    )


# Most requests ask for the same few things, and matching takes longer than cutting a text.
@lru_cache(N_REMEMBERED)
def _select(
    names: tuple[str, ...], capture: tuple[str, ...] | None, layers: tuple[int, ...] | None
) -> tuple[str, ...]:
    if capture is None:
        capture = tuple(glob for glob in DEFAULT_CAPTURE if fnmatch.filter(names, glob))
    sites = match_sites(capture, names)
    if layers is not None:
        require_layers(layers, names)
        matched, sites = sites, [site for site in sites if layer_of(site) in {None, *layers}]
        if matched and not sites:
            raise UnknownSite(f"nothing of {list(capture)} lies in layers {list(layers)}")
    return tuple(sites)
