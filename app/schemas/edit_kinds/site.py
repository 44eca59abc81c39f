"""Change the tensor of one site."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from headlight.forms import Glob, Numbers, Positions
from headlight.schemas.edit_kinds.form import EditForm, SourceRequest, Taken

MAX_VALUES = 2**15
LARGEST_VALUE = 1e6
VALUE_DEPTH = 4


def _shape(value: Any, n_axes: int = 0) -> tuple[int, ...]:
    """Return the shape of nested lists of numbers.

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


class _SiteRequest(EditForm):
    asks = "headlight.model.interventions.site_edit:SiteEdit"
    is_ordered = True
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    site: Glob = Field(description="The name of one site, as in the model's card.")
    heads: Numbers | None = Field(None, description="If omitted, every head.")
    positions: Positions | None = Field(
        None,
        description="Positions in the text, along the first of the axes query, key and position "
        "that the site has; if omitted, every position.",
    )

    def arguments(self) -> dict[str, Any]:
        """As `EditForm.arguments`, with the kind, and with 0 for values that are taken."""
        given = {**super().arguments(), "kind": dict(self)["kind"]}
        is_taken = given.pop("source", None) is not None
        return given | ({"kind": "set", "value": 0} if is_taken else {})

    def taken(self) -> Taken | None:
        """As `EditForm.taken`."""
        source: SourceRequest | None = getattr(self, "source", None)
        return Taken(self.site, source) if source else None


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
