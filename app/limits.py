"""Every limit in force: those of the settings, those that no setting changes, those of the models.

`GET /api/v1/limits` and `headlight limits` show them.
"""

from collections.abc import Mapping

from headlight.schemas import generation, traces
from headlight.settings import (
    BODY_SECONDS,
    MAX_HEADER_BYTES,
    MAX_OUTGOING_BYTES,
    Limit,
    Settings,
)


def limits_of(settings: Settings, max_tokens: Mapping[str, int]) -> dict[str, Limit]:
    """Every limit in force: of the settings, of requests, and of each model.

    Args:
        settings: of the server.
        max_tokens: the longest text of each model, by id.
    """
    fixed = {
        name: Limit(value=value, unit=unit, reason=reason, refusal=refusal, env=None)
        for name, (value, unit, reason, refusal) in _fixed_limits(settings).items()
    }
    of_models = Limit(
        value=dict(max_tokens),
        unit="tokens",
        reason="The longest text that each model reads, start token included.",
        refusal="422 too-many-tokens",
        env=None,
    )
    return settings.limits() | fixed | {"max_tokens": of_models}


def _fixed_limits(settings: Settings) -> dict[str, tuple[int | float, str, str, str]]:
    """Limits that no setting changes: value, unit, reason and problem of each."""
    invalid = "422 invalid-request"
    return {
        "max_body_bytes": (
            settings.max_body_bytes,
            "bytes",
            "Two texts of max_characters written as 12-byte escapes, and the options.",
            "413 body-too-large",
        ),
        "max_header_bytes": (
            MAX_HEADER_BYTES,
            "bytes",
            "A request's target and headers together: several times what a browser sends with all "
            "the cookies of a domain.",
            "431 headers-too-large",
        ),
        "body_seconds": (
            BODY_SECONDS,
            "seconds",
            "How long a request's body may take to arrive: any line is fast enough.",
            "408 body-too-slow",
        ),
        "max_outgoing_bytes": (
            MAX_OUTGOING_BYTES,
            "bytes",
            "Memory for all responses from their encoding until their clients have read them: with "
            "max_cells, three of the largest as JSON and many smaller ones. A single larger "
            "response is allowed when nothing else is in flight.",
            "503 too-many-outgoing-bytes",
        ),
        "max_globs": (
            traces.MAX_GLOBS,
            "globs",
            "More than a model has kinds of sites.",
            invalid,
        ),
        "max_glob_characters": (
            traces.MAX_GLOB_CHARACTERS,
            "characters",
            "Longer than any site's name.",
            invalid,
        ),
        "max_model_id_characters": (
            traces.MAX_MODEL_ID_CHARACTERS,
            "characters",
            "Longer than any model's id.",
            invalid,
        ),
        "max_analyses": (traces.MAX_ANALYSES, "analyses", "More than there are.", invalid),
        "max_positional_size": (
            traces.MAX_POSITIONAL_SIZE,
            "positions, dimensions or heads",
            "Longer and wider than any encoding in use; max_cells limits their product.",
            invalid,
        ),
        "max_alternatives": (
            generation.MAX_ALTERNATIVES,
            "tokens",
            "More than a reader compares at one step.",
            invalid,
        ),
        "max_numbers": (
            traces.MAX_NUMBERS,
            "layers, heads or experts",
            "More than any model here has.",
            invalid,
        ),
        "max_edits": (
            traces.MAX_EDITS,
            "edits",
            "More than a pass has kinds of parts to change.",
            invalid,
        ),
    }
