"""The edits of a pass: interventions, and changes to the tensor of one site."""

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, TypeAlias, get_args

from pydantic import Field

from headlight.model.discovery import import_all
from headlight.schemas import edit_kinds
from headlight.schemas.edit_kinds.form import MAX_EDITS, EditForm


def _kinds() -> dict[str, type[EditForm]]:
    """Return the kinds by name, in the order of the API's documentation.

    Raises:
        TypeError: two forms have one name.
    """
    kinds: dict[str, type[EditForm]] = {}
    for module in import_all(edit_kinds.__name__, edit_kinds.__path__):
        for form in vars(module).values():
            if (
                isinstance(form, type)
                and issubclass(form, EditForm)
                and "kind" in form.model_fields
            ):
                (kind, *_) = get_args(form.model_fields["kind"].annotation)
                if kinds.setdefault(kind, form) is not form:
                    raise TypeError(f"{form} and {kinds[kind]} are both the edit {kind!r}")
    return kinds


KINDS = _kinds()

if TYPE_CHECKING:
    EditRequest: TypeAlias = EditForm
else:
    _ANY = reduce(or_, KINDS.values())
    EditRequest = Annotated[_ANY, Field(discriminator="kind")]
EditRequests = Annotated[list[EditRequest], Field(max_length=MAX_EDITS)]
EDITS = (
    f"Interventions in the pass: {', '.join(KINDS)}. Their order has no effect, but for those that "
    "change the tensor of one site (set, patch, add, scale, mean): they come after the others, in "
    "the order of the list. Captured tensors and all that follows in the pass see the result."
)
