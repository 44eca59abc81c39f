"""The pages that need a model: its card, the application at a short link, and saved pages.

A reader who shares a link asks the server to keep it (`headlight.serving.links`).
"""

from contextlib import ExitStack
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from headlight.model.checkpoint.card import flatten, to_markdown
from headlight.models.cards import model_answer, prose_of
from headlight.pages import application, render
from headlight.problems import Problem, described
from headlight.routes.links import state_of
from headlight.routes.strict_json import JsonRoute
from headlight.schemas import SAFETENSORS
from headlight.schemas.traces import TraceRequest
from headlight.serialization.formats import ResponseFormat
from headlight.serialization.trace import encode
from headlight.services import ServicesDep
from headlight.serving.concurrency import client_left
from headlight.serving.experiments import experiment_tabs

router = APIRouter(route_class=JsonRoute, include_in_schema=False)


@router.get("/s/{link_id}")
async def shared(link_id: str, request: Request, services: ServicesDep) -> Response:
    """Return the application at a link; its script asks for the state, or tells of its lack."""
    try:
        await state_of(link_id, request, services)
    except Problem as problem:
        return application(request, problem.status_code)
    return application(request)


@router.get("/experiments")
async def experiments(request: Request, services: ServicesDep) -> Response:
    """Return the page of experiments."""
    services.experiments.prepare()
    return render(request, "experiments.html", tabs=experiment_tabs())


@router.get("/models/{model}/card", responses=described(404, 503))
def card(model: str, request: Request, services: ServicesDep) -> Response:
    """Return the card of one model, off the event loop."""
    description = services.registry.describe(model)
    model_card = description.card
    context: dict[str, Any] = {
        "id": description.id,
        "title": model_card.title or description.id,
        "facts": {
            "Licence": [model_card.licence],
            "Trained on": model_card.trained_on,
            "Attribution": model_card.attribution,
            **{name.capitalize(): _lines_of(value) for name, value in flatten(model_card.training)},
            "Revision": [description.revision],
        },
        "prose": prose_of(to_markdown(model_card)),
    }
    return render(request, "card.html", **context)


def _lines_of(value: object) -> list[object]:
    """Return a count with its thousands apart, each of several, or anything else as it is."""
    if isinstance(value, str):
        return [*value.split(" && ")]
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return [f"{value:,}" if is_count else value]


@router.post("/api/v1/page")
async def saved(body: TraceRequest, request: Request, services: ServicesDep) -> Response:
    """Return the page as a file: all views of a text, to be opened without a server.

    Not in the OpenAPI description, because its answer is a document to read, whose content may
    change with every version; `headlight trace --html` and `trace.show()` make the same.
    """
    from headlight import saved_page  # imports HTTPX, which a server does not need to start
    from headlight.client.decode import read_trace

    left, traces = client_left(request), services.traces
    sent_as = ResponseFormat(media_type=SAFETENSORS)
    with services.pages.place(), ExitStack() as stack:
        name = await services.use_model(body.model, stack, left)
        registry = services.registry
        card = model_answer(registry.describe(name), registry.status(name)).model_dump(mode="json")
        everything, *less = saved_page.whole_requests(body, card)
        try:
            _, encoded = await traces.trace(everything, sent_as, left)
        except Problem:  # a long text has too many numbers for every view
            if not less:
                raise
            _, encoded = await traces.trace(less[0], sent_as, left)
        encoded.reservation.release()
        trace = read_trace(encoded.body)
        asked = list(saved_page.further_requests(body, card, trace))
        answers = await traces.continued((wanted for _, wanted in asked), left)

        def page() -> str:
            held = [
                (ask, encode(answer, sent_as))
                for (ask, _), answer in zip(asked, answers, strict=True)
            ]
            held += saved_page.positional_answers(card, trace)
            whole = encoded.body
            return saved_page.render(saved_page.Archive(card=card, whole=whole, further=held))

        return HTMLResponse(await services.computations.run(page, left))


@router.get("/api/v1/page")
async def shell(request: Request, services: ServicesDep) -> Response:
    """Return the page as a file without answers, to which the page adds those of a long text.

    Not in the OpenAPI description, as `saved`.
    """
    from headlight import saved_page

    return HTMLResponse(await services.in_thread(saved_page.shell, client_left(request)))
