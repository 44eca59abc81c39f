"""How many numbers a capture holds, known before anything is computed.

Attention grows as layers × heads × tokens², so a short request can ask for gigabytes.
"""

from collections.abc import Sequence
from math import prod

from app.problems import over_limit
from model.checkpoint import Description


def count_cells(
    description: Description, sites: Sequence[str], *, n_tokens: int, n_heads: int
) -> int:
    """The numbers that a capture of these sites holds.

    Args:
        description: the model.
        sites: names of sites, each once.
        n_tokens: tokens of the text.
        n_heads: how many heads are captured.
    """
    config = description.config
    sizes = {
        "batch": 1,
        "query": n_tokens,
        "key": n_tokens,
        "position": n_tokens,
        "head": n_heads,
        "d_head": config.d_head,
        "d_model": config.d_model,
        "d_ff": config.d_ff,
        "vocab": config.vocab_size,
        "expert": config.moe.n_experts if config.moe else 0,
        "top_k": config.moe.top_k if config.moe else 0,
    }
    axes = {site.name: site.axes for site in description.sites}
    return sum(prod(sizes[axis] for axis in axes[site]) for site in sites)


def require_cells(actual: int, limit: int) -> None:
    """Refuse a capture of more numbers than the limit.

    Raises:
        Problem: 422 with `limit` and `actual`.
    """
    if actual > limit:
        way_out = "ask for fewer sites, layers, heads or analyses, or send a shorter text"
        raise over_limit("cells", limit=limit, actual=actual, way_out=way_out)
