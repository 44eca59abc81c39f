"""The atlas of a model: what its heads attend to over a corpus, and searches in it."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Path, Query, Request

from headlight.model.atlas.deciles import spread
from headlight.model.atlas.layout import AtlasError
from headlight.model.atlas.matching import compared
from headlight.model.atlas.search import MISSING, Question, SearchTooSlow, is_available, search
from headlight.model.atlas.space import space
from headlight.model.atlas.tags import TAGS, kinds_at
from headlight.model.corpus import CorpusError
from headlight.models.atlases import Atlases
from headlight.problems import Problem, described, echo
from headlight.schemas.atlas import (
    AtlasAnswer,
    AtlasHeadAnswer,
    AtlasHeadRequest,
    AtlasLikeRequest,
    AtlasMatchesAnswer,
    AtlasMatchesRequest,
    AtlasSearchAnswer,
    AtlasSearchRequest,
    AtlasSpaceRequest,
    AtlasSpreadAnswer,
)
from headlight.services import Services, ServicesDep
from headlight.serving.concurrency import ClientLeft, client_left

router = APIRouter(prefix="/api/v1/models/{model}/atlas", tags=["atlases"])

MOST_TEXTS = 5
Result = TypeVar("Result")
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


async def _asked(model: str, ask: Callable[..., Any], request: Request, services: Services) -> Any:
    """Ask DuckDB about a model's atlas."""
    if not is_available():
        raise Problem(503, "no-search", MISSING)
    seconds = services.settings.search_seconds
    work = partial(_answered, services.atlases, model, partial(ask, seconds=seconds))
    return await services.searches.run(work, client_left(request))


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
    """Match every head with the head of another model that does the most alike.

    Heads are as similar as the scores of their profiles; the assignment is the best in sum. If both
    models cut the project's texts alike, the attention of matched heads is compared over them.
    """
    names = (model, query.other)
    profiles = []
    for name in names:
        if not (profile := services.atlases.described(name).heads):
            detail = f"the heads of '{name}' have no profile; 'headlight profile {name}' makes one"
            raise Problem(404, "no-profile", detail)
        profiles.append(profile)
    work = partial(compared, profiles=profiles, n_texts=MOST_TEXTS)
    return AtlasMatchesAnswer.model_validate(
        await _read(services, names, client_left(request), work)
    )


@router.get("/space", include_in_schema=False)
async def atlas_space(
    model: Model,
    query: Annotated[AtlasSpaceRequest, Query()],
    request: Request,
    services: ServicesDep,
) -> dict[str, Any]:
    """Return the vectors of a head over the project's texts, on their two principal axes.

    Not in the OpenAPI description: the page draws it.
    """
    work = partial(space, **query.model_dump())
    return await _read(services, (model,), client_left(request), work)


async def _read(
    services: Services, names: Sequence[str], left: ClientLeft, work: Callable[..., Result]
) -> Result:
    """Return what work makes of some models, which are loaded first."""
    with ExitStack() as stack:
        ids = [await services.use_model(name, stack, left) for name in names]

        def done() -> Result:
            try:
                return work(*map(services.registry.checkpoint, ids))
            except (AtlasError, CorpusError) as error:
                raise Problem(422, "no-reading", str(error)) from error
            except ImportError as error:
                raise Problem(503, "no-search", str(error)) from error

        return await services.readings.run(done, left)
