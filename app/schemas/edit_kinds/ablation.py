"""Ablate heads or experts."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from headlight.model.intervention import Intervention
from headlight.schemas.edit_kinds.form import AttentionEdit, LayerEdit, Numbers

Stack = Literal["encoder", "decoder"]


class HeadsOffRequest(AttentionEdit):
    """Ablate heads: their context is 0, their weights stay as they are."""

    kind: Literal["heads_off"]
    heads: Numbers

    def intervention(self) -> Intervention:
        """As `EditForm.intervention`."""
        from headlight.model.interventions import HeadAblation

        return HeadAblation(heads=tuple(self.heads), layer=self.layer, where=self.where)


class ExpertsOffRequest(LayerEdit):
    """Ablate experts: their router logits are −∞, sent as null, so they are never chosen."""

    kind: Literal["experts_off"]
    experts: Numbers
    where: Stack | None = Field(None, description="The stack; if omitted, both.")

    def intervention(self) -> Intervention:
        """As `EditForm.intervention`."""
        from headlight.model.interventions import ExpertAblation

        return ExpertAblation(experts=tuple(self.experts), layer=self.layer, where=self.where)
