"""The atlas of a model: what its heads attend to over a corpus, and searches in it."""

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from importlib.util import find_spec
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request

from headlight.model.atlas.deciles import spread
from headlight.model.atlas.layout import AtlasError
from headlight.model.atlas.matching import MISSING as NO_SCIPY
from headlight.model.atlas.matching import heads_of, match
from headlight.model.atlas.search import MISSING, Question, SearchTooSlow, is_available, search
from headlight.model.atlas.tags import TAGS, kinds_at
from headlight.models.atlases import Atlases
from headlight.problems import Problem, described, echo
from headlight.schemas.atlas import (
    AtlasAnswer,
    AtlasHeadAnswer,
    AtlasHeadRequest,
    AtlasLikeRequest,
    AtlasMatchAnswer,
    AtlasMatchesAnswer,
    AtlasMatchesRequest,
    AtlasSearchAnswer,
    AtlasSearchRequest,
    AtlasSpreadAnswer,
)
from headlight.services import Services, ServicesDep
from headlight.serving.concurrency import client_left

router = APIRouter(prefix="/api/v1/models/{model}/atlas", tags=["atlases"])

Model = Annotated[str, Path(description="The model's id.")]


@router.get("", responses=described(404, 503))
async def atlas(model: Model, request: Request, services: ServicesDep) -> AtlasAnswer:
    """Describe what a model's atlas was made of.

    An atlas holds all attention weights above a threshold over a corpus, as `headlight atlas build`
    writes it; weights on the first token, where heads rest, are left out.
    """
    find = partial(services.atlases.atlas, model)
    facts = (await services.in_thread(find, client_left(request))).facts
    return AtlasAnswer.model_validate(
        {**facts, "tags": TAGS, "no_search": None if is_available() else MISSING}
    )


@router.get("/head", responses=described(404, 422, 503))
async def atlas_head(
    model: Model,
    query: Annotated[AtlasHeadRequest, Query()],
    request: Request,
    services: ServicesDep,
) -> AtlasHeadAnswer:
    """Count the commonest pairs, distances and parts of speech of one head, with sentences."""
    head = await services.in_thread(
        partial(_head, services.atlases, model, query), client_left(request)
    )
    return AtlasHeadAnswer.model_validate(head)


def _head(atlases: Atlases, model: str, query: AtlasHeadRequest) -> Any:
    summary = atlases.summary(atlases.atlas(model))
    heads = summary.get(query.attention)
    if heads is None:
        detail = f"the atlas has no attention {echo(query.attention)}; it has {', '.join(summary)}"
        raise Problem(422, "unknown-site", detail)
    if query.head >= len(heads):
        detail = f"there is no head {query.head}; {query.attention} has 0 to {len(heads) - 1}"
        raise Problem(422, "unknown-head", detail)
    return heads[query.head]


@router.get("/spread", responses=described(404, 422, 503, 504))
async def atlas_spread(
    model: Model,
    query: Annotated[AtlasHeadRequest, Query()],
    request: Request,
    services: ServicesDep,
) -> AtlasSpreadAnswer:
    """Divide the sentences in tenths by one head's largest weight, with one of each.

    The first tenths are where the head does least. Weights on the first token do not count.
    """
    ask = partial(spread, attention=query.attention, head=query.head)
    return AtlasSpreadAnswer.model_validate(await _asked(model, ask, request, services))


@router.get("/like", include_in_schema=False)
async def atlas_like(
    model: Model,
    query: Annotated[AtlasLikeRequest, Query()],
    request: Request,
    services: ServicesDep,
) -> dict[str, str]:
    """Name the two words of an example as a search takes them: it finds where the same happens.

    Not in the OpenAPI description: the page fills its form with it.
    """
    await services.in_thread(partial(services.atlases.atlas, model), client_left(request))
    of_query, of_key = kinds_at(query.text, (query.query, query.key))
    return {"query": of_query, "key": of_key}


@router.get("/search", responses=described(404, 422, 503, 504))
async def atlas_search(
    model: Model,
    query: Annotated[AtlasSearchRequest, Query()],
    request: Request,
    services: ServicesDep,
) -> AtlasSearchAnswer:
    """Rank the heads that attend from some words to others, with sentences.

    A lift of 2 says that such pairs are twice as frequent among the weights of the head as among
    all pairs that its queries see. Closing the connection ends the search.
    """
    ask = partial(search, question=Question(**query.model_dump()))
    return AtlasSearchAnswer.model_validate(await _asked(model, ask, request, services))


async def _asked(
    model: str, ask: Callable[..., Any], request: Request, services: Services
) -> dict[str, Any]:
    """Ask DuckDB about a model's atlas."""
    if not is_available():
        raise Problem(503, "no-search", MISSING)
    seconds = services.settings.search_seconds
    work = partial(_answered, services.atlases, model, partial(ask, seconds=seconds))
    return asdict(await services.searches.run(work, client_left(request)))


def _answered(atlases: Atlases, model: str, ask: Callable[..., Any]) -> Any:
    try:
        return ask(atlases.atlas(model))
    except AtlasError as error:
        raise Problem(422, "unknown-head", str(error)) from error
    except SearchTooSlow as error:
        raise Problem(504, "too-slow", str(error)) from error


@router.get("/matches", responses=described(404, 422, 503, 504))
async def atlas_matches(
    model: Model,
    query: Annotated[AtlasMatchesRequest, Query()],
    request: Request,
    services: ServicesDep,
) -> AtlasMatchesAnswer:
    """Match every head with the head of another model that does the most alike, by both atlases.

    Heads are as similar as the distances, the parts of speech and the scores of their weights over
    the corpora. The assignment is the best in sum.
    """
    if find_spec("scipy") is None:
        raise Problem(503, "no-search", NO_SCIPY)
    work = partial(_matches, services.atlases, model, query.other)
    matches = await services.searches.run(work, client_left(request))
    return AtlasMatchesAnswer(other=query.other, matches=matches)


def _matches(atlases: Atlases, model: str, other: str) -> list[AtlasMatchAnswer]:
    heads = []
    for name in (model, other):
        atlas = atlases.atlas(name)
        heads.append(heads_of(atlases.summary(atlas), atlases.profile(atlas)))
    return [
        AtlasMatchAnswer(
            attention=each.head.attention,
            head=each.head.number,
            other_attention=each.other.attention,
            other_head=each.other.number,
            similarity=each.similarity,
        )
        for each in match(*heads)
    ]
