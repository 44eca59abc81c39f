"""Ablate heads or experts."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from headlight.forms import Numbers
from headlight.schemas.edit_kinds.form import AttentionEdit, LayerEdit

Stack = Literal["encoder", "decoder"]


class HeadsOffRequest(AttentionEdit):
    """Ablate heads: their context is 0, their weights stay as they are."""

    asks = "headlight.model.interventions.head_ablation:HeadAblation"
    kind: Literal["heads_off"]
    heads: Numbers


class ExpertsOffRequest(LayerEdit):
    """Ablate experts: their router logits are −∞, sent as null, so they are never chosen."""

    asks = "headlight.model.interventions.expert_ablation:ExpertAblation"
    kind: Literal["experts_off"]
    experts: Numbers
    where: Stack | None = Field(None, description="The stack; if omitted, both.")
