"""Circuits: the tasks that ship, and the edges of a model that do a task."""

from contextlib import ExitStack
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from headlight.circuits.files import FORMATS, written
from headlight.model.served import Served
from headlight.problems import described
from headlight.routes.strict_json import JsonRoute
from headlight.schemas.circuits import CircuitAnswer, CircuitRequest, TaskAnswer, TasksAnswer
from headlight.serialization.accept import negotiate
from headlight.services import Services, ServicesDep
from headlight.serving.concurrency import client_left

router = APIRouter(prefix="/api/v1", tags=["circuits"], route_class=JsonRoute)


@router.get("/tasks", responses=described(404, 503))
async def tasks(
    request: Request,
    services: ServicesDep,
    model: Annotated[
        str | None, Query(description="With it, each task says whether its pairs fit the model.")
    ] = None,
) -> TasksAnswer:
    """Every task that ships, with the rule that its pairs are made by."""
    from headlight.model.circuits.tasks import RULES

    listed = list(RULES.items())
    if model is None:
        return TasksAnswer(tasks=[TaskAnswer(name=name, rule=rule) for name, rule in listed])
    with ExitStack() as stack:
        model_id = await services.use_model(model, stack, client_left(request))

        def fitting() -> TasksAnswer:
            served = services.registry.checkpoint(model_id)
            return TasksAnswer(
                tasks=[
                    TaskAnswer(name=name, rule=rule, lacks=lack_of(served, name))
                    for name, rule in listed
                ]
            )

        return await services.computations.run(fitting, client_left(request))


_EXAMPLES = {
    "csv": "edge,writer,reader,position,effect,loss,…\n3.3→logits,3.3,logits,,3.24,0.61,…\n"
}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": CircuitAnswer,
        "description": "The circuit, as JSON or as a file of its edges.",
        "content": {
            FORMATS[form]: {"schema": {"type": "string"}, "example": example}
            for form, example in _EXAMPLES.items()
        },
    },
    **described(400, 404, 406, 413, 415, 422, 503, 504),
}


@router.post("/models/{model}/circuit", response_class=Response, responses=_ANSWERS)
async def circuit(
    model: Annotated[str, Path(description="The model's id.")],
    body: CircuitRequest,
    request: Request,
    services: ServicesDep,
) -> Response:
    """Find the few edges of a model that do a task, and measure their own run.

    Edges are scored on one half of the pairs and measured on the other. In the run of a circuit
    every edge outside it carries what it carries for the corrupted text; its faithfulness is the
    share of the logit difference that it keeps. Closing the connection ends the search.

    `Accept` chooses JSON or `text/csv`.
    """
    media_type = negotiate(request.headers.get("accept", ""), tuple(FORMATS.values()))
    form = next(name for name, offered in FORMATS.items() if offered == media_type)
    with ExitStack() as stack:
        model_id = await services.use_model(model, stack, client_left(request))
        work = partial(_circuit, services, model_id, body)
        answer = await services.circuits.run(work, client_left(request))
    return Response(written(answer, form), media_type=media_type, headers={"Vary": "Accept"})


def lack_of(model: Served, task: str) -> str | None:
    """Return why a model cannot do a task; None: it can, as far as its tokenizer tells."""
    from headlight.model.circuits.tasks import UnfitTask, task_pairs

    try:
        task_pairs(model, task, 2)
    except UnfitTask as error:
        return str(error)
    return None


def _circuit(services: Services, model: str, body: CircuitRequest) -> CircuitAnswer:
    from headlight.circuits.find import compute

    return compute(body, services.registry.checkpoint(model))
