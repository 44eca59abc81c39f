"""The edits of a pass: interventions, and changes to the tensor of one site."""

import math
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from headlight.schemas import Request

MAX_GLOBS = 16
MAX_GLOB_CHARACTERS = 80
MAX_EDITS = 16
MAX_NUMBERS = 256
MAX_IDS = 2**15
MAX_POSITIONS = 2**12
MAX_VALUES = 2**15
LARGEST_VALUE = 1e6
VALUE_DEPTH = 4
LEAST_BITS, MOST_BITS = 2, 8
LEAST_TEMPERATURE, MOST_TEMPERATURE = 0.01, 100.0

Glob = Annotated[str, Field(min_length=1, max_length=MAX_GLOB_CHARACTERS)]
Number = Annotated[int, Field(ge=0, lt=2**31)]
Numbers = Annotated[list[Number], Field(min_length=1, max_length=MAX_NUMBERS)]
Stack = Literal["encoder", "decoder"]
Where = Literal["encoder", "decoder", "cross"]


class _Edit(Request):
    layer: Number | None = Field(None, description="The layer; if omitted, every layer.")


class _AttentionEdit(_Edit):
    where: Where | None = Field(
        None,
        description="The self-attention of the encoder or of the decoder, or cross-attention; if "
        "omitted, all that the model has.",
    )


class HeadsOffRequest(_AttentionEdit):
    """Ablate heads: their context is 0, their weights stay as they are."""

    kind: Literal["heads_off"]
    heads: Numbers


class ExpertsOffRequest(_Edit):
    """Ablate experts: their router logits are −∞, sent as null, so they are never chosen."""

    kind: Literal["experts_off"]
    experts: Numbers
    where: Stack | None = Field(None, description="The stack; if omitted, both.")


class NoScalingRequest(_AttentionEdit):
    """Do not divide the products of queries and keys by √d_head."""

    kind: Literal["no_scaling"]


class TemperatureRequest(_AttentionEdit):
    """Divide the attention scores by a temperature before the softmax."""

    kind: Literal["temperature"]
    value: float = Field(
        ge=LEAST_TEMPERATURE,
        le=MOST_TEMPERATURE,
        description="1 changes nothing; a higher value evens rows out, a lower one sharpens them.",
    )


class QuantizeRequest(Request):
    """Compute with weights rounded to 2^bits values, as a quantized copy of the model would."""

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


def _shape(value: Any, n_axes: int = 0) -> tuple[int, ...]:
    """The shape of nested lists of numbers.

    Raises:
        ValueError: they are ragged, too deep or empty, or hold anything but numbers up to 1e6.
    """
    if isinstance(value, list):
        shapes = {_shape(row, n_axes + 1) for row in value} if n_axes < VALUE_DEPTH else set()
        if len(shapes) != 1:
            raise ValueError(
                f"give a number, or lists of equal lengths that nest to a depth of {VALUE_DEPTH}"
            )
        return (len(value), *shapes.pop())
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not abs(value) <= LARGEST_VALUE:
        raise ValueError(f"the values must be numbers of at most {LARGEST_VALUE:g} in size")
    return ()


def _values(value: Any) -> Any:
    if (size := math.prod(_shape(value))) > MAX_VALUES:
        raise ValueError(f"{size:,} values are more than the {MAX_VALUES:,} that are allowed")
    return value


Values = Annotated[
    Any,
    AfterValidator(_values),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "array", "items": {}}]}),
]
Ids = Annotated[list[Number], Field(min_length=1, max_length=MAX_IDS)]
Positions = Annotated[list[Number], Field(min_length=1, max_length=MAX_POSITIONS)]
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


class _SiteRequest(Request):
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    site: Glob = Field(description="The name of one site, as in the model's card.")
    heads: Numbers | None = Field(None, description="If omitted, every head.")
    positions: Positions | None = Field(
        None,
        description="Positions in the text, along the first of the axes query, key and position "
        "that the site has; if omitted, every position.",
    )


_BROADCAST = (
    "A number, or nested lists whose axes are the last ones of the site; an axis of length 1 "
    "stands for all entries. With heads or positions, these axes have as many entries."
)


class SetRequest(_SiteRequest):
    """Replace the tensor of a site, masked numbers included, by values or by another trace's."""

    kind: Literal["set"]
    value: Values | None = Field(None, description=_BROADCAST)
    source: SourceRequest | None = Field(
        None, alias="from", description="In place of `value`, another trace."
    )

    @model_validator(mode="after")
    def _has_one_value(self) -> Self:
        if (self.value is None) == (self.source is None):
            raise PydanticCustomError("value", "send either value or from")
        return self


class PatchRequest(_SiteRequest):
    """Set the tensor of a site to its values in another pass: activation patching."""

    kind: Literal["patch"]
    source: SourceRequest = Field(alias="from", description="The text or trace to take them from.")


class AddRequest(_SiteRequest):
    """Add values to the tensor of a site; masked numbers stay masked."""

    kind: Literal["add"]
    value: Values = Field(description=_BROADCAST)


class ScaleRequest(_SiteRequest):
    """Multiply the tensor of a site by values; masked numbers stay masked."""

    kind: Literal["scale"]
    value: Values = Field(description=_BROADCAST)


class MeanRequest(_SiteRequest):
    """Replace the tensor of a site by its mean over all positions of the text, or over all heads.

    `heads` and `positions` choose what is replaced, not what is averaged. Masked numbers are
    neither counted nor replaced.
    """

    kind: Literal["mean"]
    over: Literal["positions", "heads"] = "positions"


SiteEditRequest = SetRequest | PatchRequest | AddRequest | ScaleRequest | MeanRequest
EditRequest = Annotated[
    HeadsOffRequest
    | ExpertsOffRequest
    | NoScalingRequest
    | TemperatureRequest
    | QuantizeRequest
    | SiteEditRequest,
    Field(discriminator="kind"),
]
EditRequests = Annotated[list[EditRequest], Field(max_length=MAX_EDITS)]
EDITS = (
    "Interventions in the pass. heads_off and experts_off ablate heads or experts, no_scaling "
    "omits 1/√d_head, temperature divides the attention scores, quantize rounds weights; their "
    "order has no effect. set, patch, "
    "add, scale and mean change the tensor of one site, after those, in the order of the list; "
    "captured tensors and all that follows in the pass see the result."
)
