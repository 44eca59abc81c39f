"""Ablate experts: no token is routed to them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from headlight.model.config import Architecture
from headlight.model.interventions.head_ablation import fill
from headlight.model.interventions.intervention import (
    ImpossibleIntervention,
    PlacedIntervention,
    Places,
    SiteEdits,
)


class UnknownExpert(ValueError):
    """An expert number that the model does not have."""


@dataclass(frozen=True, kw_only=True)
class ExpertAblation(PlacedIntervention):
    """Set the router logits of these experts to −∞, so that no token is routed to them."""

    stage = 1
    experts: tuple[int, ...]

    @classmethod
    def combined(cls, interventions: Sequence[ExpertAblation], places: Places) -> SiteEdits:
        """Yield an edit for each layer of experts, of all that are ablated there."""
        ablated: dict[str, set[int]] = {}
        for ablation in interventions:
            ablation._require_known(places.config)
            for path in places.routers(ablation):
                ablated.setdefault(path, set()).update(ablation.experts)
        for path, experts in ablated.items():
            _require_enough(places.config, experts, path)
            edit = partial(fill, dim=-1, index=sorted(experts), value=-math.inf)
            yield f"{path}.router_logits", edit

    def _require_known(self, config: Architecture) -> None:
        if config.moe is None:
            raise ImpossibleIntervention("the model is dense: it has no experts to switch off")
        for expert in self.experts:
            if not 0 <= expert < config.moe.n_experts:
                last = config.moe.n_experts - 1
                raise UnknownExpert(f"there is no expert {expert}; the experts are 0 to {last}")


def _require_enough(config: Architecture, ablated: set[int], path: str) -> None:
    assert config.moe is not None
    n_experts, top_k = config.moe.n_experts, config.moe.top_k
    if (left := n_experts - len(ablated)) < top_k:
        raise ImpossibleIntervention(
            f"{path} routes every token to {top_k} of its {n_experts} experts, and only {left} "
            f"would be left; switch at most {n_experts - top_k} off"
        )
