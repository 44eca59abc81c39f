"""Which requests are worth guarding: those that make the server work, or tell of it."""

from starlette.types import Scope

METRICS = "/metrics"
GUARDED = "/api/", METRICS


def is_guarded(scope: Scope) -> bool:
    """Whether a request asks the API, or for the metrics; the page and the probes are open."""
    return scope["type"] == "http" and str(scope["path"]).startswith(GUARDED)
