"""Experiments: their descriptions, and the route that runs them."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import ExitStack
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Path, Request, Response
from fastapi.sse import format_sse_event
from pydantic import ValidationError

from headlight.model.experiments.experiment import Experiment, Parameters
from headlight.problems import InvalidMembers, Problem, described, echo, server_stopping
from headlight.routes.strict_json import JsonRoute
from headlight.schemas import EVENT_STREAM, JSON
from headlight.schemas.experiments import (
    ExperimentAnswer,
    ExperimentEvent,
    ExperimentResult,
    ExperimentsAnswer,
    ExperimentSummary,
)
from headlight.serialization.accept import negotiate
from headlight.serialization.sending import EVENTS, EventStream, encode_event
from headlight.services import Services, ServicesDep
from headlight.serving.concurrency import client_left
from headlight.serving.experiment_runs import Run, description
from headlight.serving.experiments import experiment_answer, known_experiments

router = APIRouter(prefix="/api/v1", tags=["experiments"], route_class=JsonRoute)


@router.get("/experiments")
async def experiments() -> ExperimentsAnswer:
    """Every experiment in short."""
    return ExperimentsAnswer(
        experiments=[
            ExperimentSummary(
                id=each.id, title=each.title, is_streamed=each.is_streamed, see=each.see
            )
            for each in known_experiments().values()
        ]
    )


@router.get("/experiments/{experiment}", responses=described(404))
async def experiment(
    experiment: Annotated[str, Path(description="The experiment's id.")],
) -> ExperimentAnswer:
    """One experiment: its parameters with their limits, its arrays, and what to see."""
    return experiment_answer(_require(experiment))


def _require(name: str) -> Experiment:
    known = known_experiments()
    if name not in known:
        detail = f"there is no experiment {echo(name)}; there are {', '.join(known)}"
        raise Problem(404, "unknown-experiment", detail, available=list(known))
    return known[name]


async def _open_run() -> AsyncIterator[ExitStack]:
    """Yield a stack for the run; it is closed after the last event or when the client left."""
    with ExitStack() as stack:
        yield stack


_RESULT = ExperimentResult.model_json_schema(ref_template="#/components/schemas/{model}")
del _RESULT["$defs"]  # they are components, as the events have them too
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": ExperimentEvent,
        "description": "The result as JSON, or Server-Sent Events: one `start`, a `frame` for each "
        "part of the result, and one `end` or `error`, each with one line of JSON as `data`. A "
        "long run that has to wait for others sends `waiting` first, whenever it moves up. "
        "Without a preference in the Accept header it is JSON, at the end of the run.",
        "content": {JSON: {"schema": _RESULT}, **EVENTS},
    },
    **described(400, 404, 406, 413, 415, 422, 503, 504),
}


@router.post(
    "/experiments/{experiment}", status_code=200, response_class=EventStream, responses=_ANSWERS
)
async def run_experiment(
    experiment: Annotated[str, Path(description="The experiment's id.")],
    parameters: Annotated[
        dict[str, Any],
        Body(description="By name; `GET /experiments/{experiment}` has their JSON Schema."),
    ],
    request: Request,
    services: ServicesDep,
    stack: Annotated[ExitStack, Depends(_open_run)],
) -> Response:
    """Run an experiment. Closing the connection ends it.

    Parameters that are omitted have their defaults; `{}` is a request.
    """
    definition = _require(experiment)
    form = negotiate(request.headers.get("accept", ""), (JSON, EVENT_STREAM))
    run = stack.enter_context(
        services.experiments.run(definition, _validated(definition, parameters))
    )
    if form == JSON:
        await run.begin(client_left(request))
        body = await run.result(client_left(request))
        return Response(body, media_type=JSON, headers={"Cache-Control": "no-store"})
    if run.is_waiting:
        return EventStream(_queued_events(services, run))
    first = await run.frame(client_left(request))
    return EventStream(_events(services, run, first))


def _validated(of: Experiment, values: dict[str, Any]) -> Parameters:
    """Return the parameters; a wrong one is reported as that of any other request."""
    try:
        return of.parameters(**values)
    except ValidationError as error:
        errors = [{**each, "loc": ("body", *each["loc"])} for each in error.errors()]
        raise InvalidMembers(errors, values, of.parameters.model_fields) from error


async def _queued_events(services: Services, run: Run) -> AsyncGenerator[bytes]:
    """Yield `waiting` whenever fewer runs are ahead, and then the events of the run."""
    async for data in run.queue():
        yield format_sse_event(event="waiting", data_str=data.decode())
        if services.streams.is_stopping:
            raise server_stopping()
    async for event in _events(services, run, await run.frame()):
        yield event


async def _events(services: Services, run: Run, first: bytes | None) -> AsyncGenerator[bytes]:
    """Yield the event `start`, a `frame` for each frame as it is computed, and `end`."""
    yield encode_event("start", description(run.experiment, run.parameters))
    frame = first
    while frame is not None:
        yield format_sse_event(event="frame", data_str=frame.decode())
        if services.streams.is_stopping:
            raise server_stopping()
        frame = await run.frame()
    yield encode_event("end", {"n_frames": run.n_frames})
