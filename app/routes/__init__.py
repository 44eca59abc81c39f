"""The HTTP interface, one file per noun.

To add a route, write it in the file of its noun, or in a new one whose router `ROUTERS` lists. Its
request and its answer are classes of `headlight.schemas`. A router with POST routes takes
`JsonRoute`, and `described(404, 422)` documents errors. `make openapi` renews the document.
"""

from headlight.routes import (
    atlas,
    chapters,
    circuits,
    experiments,
    generation,
    health,
    links,
    models,
    page,
    positional,
    profiles,
    traces,
)

ROUTERS = tuple(
    routes.router
    for routes in (
        *(models, profiles, atlas, traces, positional, generation, circuits),
        *(experiments, chapters, links, health, page),
    )
)
