"""The environment variables of Headlight: which setting each one sets, and which set nothing."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from headlight.settings import ENV_PREFIX, Settings

BESIDE_SETTINGS = frozenset({"api_key", "site", "bind", "chromium", "examples", "renew_openapi"})
"""What has the prefix and is read by others: the client, compose.yaml, and the tests."""


def variable_of(setting: str) -> str:
    """The variable that sets a setting."""
    return f"{ENV_PREFIX}{setting.upper()}"


def warnings_of(names: Iterable[str]) -> Iterator[str]:
    """A sentence for every variable that has the prefix of a setting and sets none.

    Args:
        names: of the variables that are there.
    """
    settings = list(Settings.model_fields)
    for name in sorted(names):
        meant = name.lower().removeprefix(ENV_PREFIX.lower())
        if meant == name.lower() or meant in BESIDE_SETTINGS or meant in settings:
            continue
        nearest = get_close_matches(meant, settings, n=1)
        way_out = "`headlight settings` lists what does"
        if nearest:
            way_out = f"did you mean {variable_of(nearest[0])}?"
        yield f"{name} sets nothing; {way_out}"
