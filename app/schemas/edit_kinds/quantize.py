"""Round weights for one pass."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from headlight.forms import MAX_GLOBS, Glob
from headlight.schemas.edit_kinds.form import EditForm

LEAST_BITS, MOST_BITS = 2, 8


class QuantizeRequest(EditForm):
    """Compute with weights rounded to 2^bits values, as a quantized copy of the model would."""

    asks = "headlight.model.quantization.affine:Quantization"
    kind: Literal["quantize"]
    bits: int = Field(ge=LEAST_BITS, le=MOST_BITS, description="The bits of each weight.")
    parts: Annotated[list[Glob], Field(min_length=1, max_length=MAX_GLOBS)] | None = Field(
        None,
        description="Names or globs of modules, such as `decoder.layers.0`, `*.self_attention`, "
        "`*.feed_forward` or `*.embedding`; a module stands for all matrices inside it. If "
        "omitted, every matrix.",
    )
    per: Literal["channel", "tensor"] = Field(
        "channel", description="A scale and zero point for each row of a matrix, or for all of it."
    )
