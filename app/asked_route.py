"""Which route a request asked for, whether or not it was let through to it.

It is named by its template: never by what a client made up.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from starlette.types import Scope

from headlight.metrics import NO_ROUTE


def route_of(scope: Scope) -> str:
    """The template of the route that a request asked for; `NO_ROUTE` where there is none."""
    route = scope.get("route")
    if route is not None:
        return str(getattr(route, "path", NO_ROUTE))
    if scope.get("endpoint") is not None and scope.get("root_path"):
        return str(scope["root_path"])  # a folder of files is one route
    return _named(scope["app"], scope["path"]) if "app" in scope else NO_ROUTE


def route_asked(app: FastAPI, scope: Scope) -> str:
    """The same of a request that never reached the application."""
    return _named(app, scope["path"])


def _named(app: FastAPI, path: str) -> str:
    found = (template for pattern, template in _templates(app) if pattern.match(path))
    return next(found, NO_ROUTE)


@lru_cache(maxsize=8)
def _templates(app: FastAPI) -> Sequence[tuple[re.Pattern[str], str]]:
    """The routes of a finished application, in the order in which they are tried."""
    return [
        (route.path_regex, route.path)
        for route in iter_route_contexts(app.routes)
        if route.path is not None
    ]
