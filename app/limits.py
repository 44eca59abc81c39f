"""Every limit in force, by name: those of the settings, of what a request may hold, of each model.

`GET /api/v1/limits` and `headlight limits` show them, and so what is documented is what holds.
"""

from collections.abc import Mapping

from headlight.limit import Limit
from headlight.model.checkpoint import Description
from headlight.schemas import generation, traces
from headlight.settings import Settings

_INVALID = "422 invalid-request"

_OF_REQUESTS = {
    "max_globs": (traces.MAX_GLOBS, "globs", "More than a model has kinds of sites."),
    "max_glob_characters": (
        traces.MAX_GLOB_CHARACTERS,
        "characters",
        "Longer than any site's name.",
    ),
    "max_model_id_characters": (
        traces.MAX_MODEL_ID_CHARACTERS,
        "characters",
        "Longer than any model's id.",
    ),
    "max_analyses": (traces.MAX_ANALYSES, "analyses", "More than there are."),
    "max_positional_size": (
        traces.MAX_POSITIONAL_SIZE,
        "positions, dimensions or heads",
        "Longer and wider than any encoding in use; max_cells limits their product.",
    ),
    "max_alternatives": (
        generation.MAX_ALTERNATIVES,
        "tokens",
        "More than anybody looks through at one step.",
    ),
    "max_numbers": (
        traces.MAX_NUMBERS,
        "layers, heads or experts",
        "More than any model here has.",
    ),
    "max_edits": (traces.MAX_EDITS, "edits", "More than a pass has kinds of parts to change."),
}


def limits_of(settings: Settings, models: Mapping[str, Description]) -> dict[str, Limit]:
    """Every limit in force.

    Args:
        settings: what the server was told.
        models: those that can be asked, by id.
    """
    of_requests = {
        name: Limit(value=value, unit=unit, reason=reason, refusal=_INVALID, env=None)
        for name, (value, unit, reason) in _OF_REQUESTS.items()
    }
    return settings.limits() | of_requests | {"max_tokens": _max_tokens(models)}


def _max_tokens(models: Mapping[str, Description]) -> Limit:
    return Limit(
        value={model: description.config.max_tokens for model, description in models.items()},
        unit="tokens",
        reason="The longest text that each model reads, start token included.",
        refusal="422 too-many-tokens",
        env=None,
    )
