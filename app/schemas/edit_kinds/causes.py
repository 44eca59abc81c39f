"""Cut edges, hide keys from queries, and set a site to values of a corpus."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from headlight.forms import Glob, Numbers, Positions
from headlight.schemas.edit_kinds.form import AttentionEdit, EditForm

MAX_EDGES = 256
MAX_TEXTS = 64
MAX_TEXT = 2_000

Text = Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]


class CutRequest(EditForm):
    """Cut edges: what reads a part reads zero in its place, or what it wrote in another text."""

    asks = "headlight.model.circuits.cut:Cut"
    needs_model = True
    kind: Literal["cut"]
    edges: Annotated[list[Glob], Field(min_length=1, max_length=MAX_EDGES)] = Field(
        description="Names of edges, such as `3.3→logits` or `2.ff->3.3.v`: a writer (`tokens`, a "
        "head, `2.ff`) and a later reader (the query, key or value of a head, `3.ff`, `logits`)."
    )
    text: Text | None = Field(
        None, description="Another text, of as many tokens; if omitted, zero is read."
    )
    target: Text | None = Field(None, description="Its target in an encoder–decoder.")
    positions: Positions | None = Field(
        None, description="Those of the readers; if omitted, every position."
    )


class KnockOutRequest(AttentionEdit):
    """Hide keys from queries: their attention weights are 0."""

    asks = "headlight.model.interventions.knock_out:KnockOut"
    kind: Literal["knock_out"]
    queries: Positions = Field(description="The rows.")
    keys: Positions = Field(description="The columns that these rows may not see.")
    heads: Numbers | None = Field(None, description="If omitted, every head.")
    renormalised: bool = Field(
        True, description="Whether the rest of a row sums to 1, as after a mask."
    )


class _CorpusRequest(EditForm):
    asks = "headlight.model.interventions.corpus_edit:CorpusEdit"
    needs_model = True
    site: Glob = Field(description="The name of one site, as in the model's card.")
    heads: Numbers | None = Field(None, description="If omitted, every head.")
    positions: Positions | None = Field(None, description="If omitted, every position.")
    texts: Annotated[list[Text], Field(max_length=MAX_TEXTS)] | None = Field(
        None,
        description="The corpus; if omitted, the first sentences of the model's head profile, or "
        "the examples of its card if its heads were not measured.",
    )
    targets: Annotated[list[Text], Field(max_length=MAX_TEXTS)] | None = Field(
        None, description="Those of the texts, for a site in the decoder of an encoder–decoder."
    )


class CorpusMeanRequest(_CorpusRequest):
    """Set the tensor of a site to its mean over all tokens of a corpus: mean ablation."""

    kind: Literal["corpus_mean"]


class ResampleRequest(_CorpusRequest):
    """Set the tensor of a site to its value at one token drawn from a corpus."""

    kind: Literal["resample"]
    seed: int = Field(0, ge=0, lt=2**31, description="Of the draw.")

    def arguments(self) -> dict[str, object]:
        """As `EditForm.arguments`."""
        return {**super().arguments(), "draws": "token"}
