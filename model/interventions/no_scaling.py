"""Leave the products of queries and keys undivided by √d_head."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from torch import Tensor

from headlight.model.interventions.intervention import PlacedIntervention, Places, SiteEdits
from headlight.model.positions import alibi_bias


@dataclass(frozen=True, kw_only=True)
class NoScaling(PlacedIntervention):
    """Leave Q·Kᵀ undivided by √d_head; the bias of ALiBi stays as it is."""

    stage = 2

    @classmethod
    def combined(cls, interventions: Sequence[NoScaling], places: Places) -> SiteEdits:
        """Yield an edit for each attention, once."""
        config = places.config
        for path in dict.fromkeys(path for each in interventions for path in each.unscaled(places)):
            is_biased = config.positional == "alibi" and path.endswith("self_attention")
            multiply = partial(_multiply, factor=math.sqrt(config.d_head), bias=is_biased)
            yield f"{path}.scores", multiply

    def unscaled(self, places: Places) -> Sequence[str]:
        """As `Intervention.unscaled`."""
        return places.attentions(self)


def _multiply(scores: Tensor, *, factor: float, bias: bool) -> Tensor:
    if not bias:
        return scores * factor
    n_heads, n_queries, n_keys = scores.shape[-3:]
    added = alibi_bias(n_heads, n_queries, n_keys, scores.device)
    return (scores - added) * factor + added
