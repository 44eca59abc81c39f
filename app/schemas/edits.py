"""The edits of a pass: interventions, and changes to the tensor of one site."""

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, TypeAlias, get_args

from pydantic import Field

from headlight.model.discovery import import_all
from headlight.schemas import edit_kinds
from headlight.schemas.edit_kinds.form import MAX_EDITS, EditForm

KINDS: dict[str, type[EditForm]] = {
    get_args(form.model_fields["kind"].annotation)[0]: form
    for module in import_all(edit_kinds.__name__, edit_kinds.__path__)
    for form in vars(module).values()
    if isinstance(form, type) and issubclass(form, EditForm) and "kind" in form.model_fields
}
"""The kinds in the order of the API's documentation."""

if TYPE_CHECKING:
    EditRequest: TypeAlias = EditForm
else:
    _ANY = reduce(or_, KINDS.values())
    EditRequest = Annotated[_ANY, Field(discriminator="kind")]
EditRequests = Annotated[list[EditRequest], Field(max_length=MAX_EDITS)]
EDITS = (
    "Interventions in the pass. heads_off and experts_off ablate heads or experts, no_scaling "
    "omits 1/√d_head, temperature divides the attention scores, quantize rounds weights; their "
    "order has no effect. cut cuts edges between parts and knock_out hides keys from queries. "
    "corpus_mean and resample set a site to values of a corpus; set, patch, "
    "add, scale and mean change the tensor of one site, after those, in the order of the list; "
    "captured tensors and all that follows in the pass see the result."
)
