"""How many numbers a capture holds, known before anything is computed.

Attention grows as layers × heads × tokens², so a short request can ask for gigabytes.
"""

from collections.abc import Sequence
from math import prod

from headlight.errors import over_limit
from headlight.model.checkpoint import Description
from headlight.model.tracing import Plan


def count_cells(
    description: Description,
    plan: Plan,
    sites: Sequence[str],
    made: Sequence[tuple[str, tuple[str, ...]]] = (),
) -> int:
    """The numbers that a capture of these sites holds.

    Args:
        description: the model.
        plan: which texts will be read, and which heads kept.
        sites: names of sites, each once.
        made: sites of which further arrays are made, with the axes of these.
    """
    config = description.config
    widths = {
        "batch": 1,
        "head": len(plan.heads or range(config.n_heads)),
        "d_head": config.d_head,
        "d_model": config.d_model,
        "d_ff": config.d_ff,
        "vocab": config.vocab_size,
        "expert": config.moe.n_experts if config.moe else 0,
        "top_k": config.moe.top_k if config.moe else 0,
    }
    axes_of = {site.name: site.axes for site in description.sites}

    def cells(site: str, axes: tuple[str, ...]) -> int:
        sizes = widths | plan.n_tokens(site)
        return prod(sizes[axis] for axis in axes)

    captured = [(site, axes_of[site]) for site in sites]
    return sum(cells(site, axes) for site, axes in (*captured, *made))


def require_cells(actual: int, limit: int) -> None:
    """Refuse a capture of more numbers than the limit.

    Raises:
        Problem: 422 with `limit` and `actual`.
    """
    if actual > limit:
        way_out = "ask for fewer sites, layers, heads or analyses, or send a shorter text"
        raise over_limit("cells", limit=limit, actual=actual, way_out=way_out)
