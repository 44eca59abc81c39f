"""The form of an edit: what every kind of edit says of itself, and the fields that kinds share."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from headlight.forms import Number, Positions, Request
from headlight.model.interventions.intervention import Intervention

MAX_EDITS = 16

Where = Literal["encoder", "decoder", "cross"]
TraceKey = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]


class SourceRequest(Request):
    """Another trace of the same model, whose values an edit sets: activation patching."""

    text: str | None = Field(None, description="A text, which is read without edits.")
    target: str | None = Field(None, description="Its target in an encoder–decoder.")
    trace: TraceKey | None = Field(
        None, description="In place of a text, the id of a trace that is kept and holds the site."
    )
    positions: Positions | None = Field(
        None, description="The positions to read, as many as are set; if omitted, the same ones."
    )

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if (self.text is None) == (self.trace is None) or (self.trace and self.target):
            raise PydanticCustomError("source", "send either text, with target, or trace")
        return self


class Taken(NamedTuple):
    """A site, and the trace that an edit takes its values from."""

    site: str
    source: SourceRequest


class EditForm(Request):
    """A kind of edit: its fields, ``kind`` among them, and the intervention that it asks for.

    ``asks`` is the place of the intervention, ``module:class``, whose arguments are the fields:
    PyTorch is not loaded where edits are only described. ``is_ordered``: whether the place of an
    edit in a list has an effect. ``needs_model``: it is completed with the model's weights or
    passes. ``text`` and ``texts`` are read before the pass.
    """

    asks: ClassVar[str]
    is_ordered: ClassVar[bool] = False
    needs_model: ClassVar[bool] = False

    def intervention(self) -> Intervention:
        """Return the intervention, with 0 in place of the values of another trace."""
        intervention: Intervention = resolve_name(self.asks)(**self.arguments())
        return intervention

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the intervention: the fields that are given."""
        given = {name: value for name, value in self if name != "kind" and value is not None}
        return {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in given.items()
        }

    def taken(self) -> Taken | None:
        """Return the site and the trace that it takes values from; None: it has its own."""
        return None


class LayerEdit(EditForm):
    """An edit in one layer, or in all."""

    layer: Number | None = Field(None, description="The layer; if omitted, every layer.")


class AttentionEdit(LayerEdit):
    """An edit of attentions."""

    where: Where | None = Field(
        None,
        description="The self-attention of the encoder or of the decoder, or cross-attention; if "
        "omitted, all that the model has.",
    )
