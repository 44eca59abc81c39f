"""Ablate heads: what they write is 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from headlight.model.interventions.intervention import PlacedIntervention, Places, SiteEdits
from headlight.model.sites import UnknownHead


@dataclass(frozen=True, kw_only=True)
class HeadAblation(PlacedIntervention):
    """Set the context of these heads to 0, so that they write nothing; their weights stay."""

    heads: tuple[int, ...]

    @classmethod
    def combined(cls, interventions: Sequence[HeadAblation], places: Places) -> SiteEdits:
        """Yield an edit for each attention, of all heads that are ablated there."""
        ablated: dict[str, set[int]] = {}
        for ablation in interventions:
            for head in ablation.heads:
                if not 0 <= head < places.config.n_heads:
                    last = places.config.n_heads - 1
                    raise UnknownHead(f"there is no head {head}; the heads are 0 to {last}")
            for path in places.attentions(ablation):
                ablated.setdefault(path, set()).update(ablation.heads)
        for path, heads in ablated.items():
            yield f"{path}.context", partial(fill, dim=1, index=sorted(heads), value=0.0)


def fill(tensor: Tensor, *, dim: int, index: list[int], value: float) -> Tensor:
    """Return the tensor with one value at some places of an axis."""
    return tensor.index_fill(dim, tensor.new_tensor(index, dtype=torch.int64), value)
