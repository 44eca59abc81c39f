"""Profiles of heads, measured at a reader's wish, and as a file.

Not in the OpenAPI description: the page measures the model that it shows and links to the file, and
a program calls `headlight profile MODEL`, which has more options.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import ExitStack, aclosing
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response

from headlight.model.checkpoint.profile import as_parquet
from headlight.problems import Problem
from headlight.routes.strict_json import JsonRoute
from headlight.schemas.profiles import ProfileOffer, ProfileRequest
from headlight.serialization.sending import EventStream, encode_event
from headlight.services import Services, ServicesDep
from headlight.serving.profile_runs import FORBIDDEN

router = APIRouter(
    prefix="/api/v1/models", tags=["models"], route_class=JsonRoute, include_in_schema=False
)


@router.get("/{model}/profile")
async def profile_offer(model: str, services: ServicesDep) -> ProfileOffer:
    """Return whether the server measures the heads of a model, or the reason against it."""
    return ProfileOffer(reason=_reason(services, model), seconds=services.profiles.seconds)


def _reason(services: Services, model: str) -> str:
    registry = services.registry
    return services.profiles.reason_against(registry.describe(model), registry.folder(model))


@router.get("/{model}/heads.parquet")
async def heads_file(model: str, services: ServicesDep) -> Response:
    """Return the measures of all heads as a table, each score with its control."""
    profile = services.atlases.described(model).heads
    if not profile:
        raise Problem(404, "no-profile", f"the heads of '{model}' have no profile")
    try:
        content = await services.in_thread(partial(as_parquet, profile), None)
    except ImportError as error:
        raise Problem(503, "no-search", str(error)) from error
    named = {"Content-Disposition": f'attachment; filename="{model}-heads.parquet"'}
    return Response(content, media_type="application/vnd.apache.parquet", headers=named)


async def _open_place() -> AsyncIterator[ExitStack]:
    """Yield a stack for the place of the measurement, closed after the last event."""
    with ExitStack() as stack:
        yield stack


@router.post("/{model}/profile", response_class=EventStream)
async def measure_profile(
    model: str,
    body: ProfileRequest,
    services: ServicesDep,
    stack: Annotated[ExitStack, Depends(_open_place)],
) -> Response:
    """Measure the heads of a model; events tell its progress. Closing the connection ends it."""
    if reason := _reason(services, model):
        raise Problem(FORBIDDEN, "no-profile", reason.removesuffix("."))
    stack.enter_context(services.profiles.places.place())
    return EventStream(_events(services, model, body.sentences))


async def _events(services: Services, model: str, sentences: int) -> AsyncGenerator[bytes]:
    """Yield an event `progress` for each step, and `end`, after which the model has its profile."""
    registry = services.registry
    last: dict[str, Any] = {}
    async with aclosing(services.profiles.run(registry.folder(model), sentences)) as steps:
        yield encode_event("progress", {"share": 0.0})
        async for last in steps:
            if "share" in last:
                yield encode_event("progress", last)
    await services.in_thread(partial(registry.renew_profile, model), None)
    yield encode_event("end", last)
