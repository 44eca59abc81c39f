"""The pages: the application, the cards of the models, and the documentation of the API.

The whole view is in the URL's fragment, so no log of this server holds a text; a reader who shares
a link asks the server to keep it (`headlight.serving.links`).
"""

from contextlib import ExitStack
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse
from fastapi.templating import Jinja2Templates
from markupsafe import Markup

from headlight.addresses import root_of
from headlight.middleware.security import CONTENT_SECURITY_POLICY
from headlight.model.checkpoint.card import flatten, to_markdown
from headlight.models.cards import model_answer, prose_of
from headlight.problems import Problem, described
from headlight.routes.links import state_of
from headlight.routes.strict_json import JsonRoute
from headlight.schemas import SAFETENSORS
from headlight.schemas.traces import TraceRequest
from headlight.serialization.formats import ResponseFormat
from headlight.services import ServicesDep
from headlight.serving.concurrency import client_left
from headlight.serving.experiments import experiment_tabs
from headlight.settings import HOME
from headlight.static_files import DOCS_URL, PLOTLY_URL, STATIC_URL, THEME_SCRIPT, logo

router = APIRouter(route_class=JsonRoute, include_in_schema=False)

_templates = Jinja2Templates(HOME / "templates")
_templates.env.globals["theme_first"] = Markup(THEME_SCRIPT)  # a file of ours  # nosec B704
_REVALIDATE = {"Cache-Control": "no-cache"}

_START = """
// A link in the button that opens an operation would be a control inside another one; the groups
// of operations are headings of the third level without one of the second; the introduction is in
// no landmark; the list of servers, of which there is one, has no name.
const accessible = () => ({
  wrapComponents: {
    DeepLink: (_, { React }) => ({ text }) => React.createElement('span', null, text),
    InfoContainer: (Original, { React }) => (props) => React.createElement(
      'div', { role: 'region', 'aria-label': 'Introduction' },
      React.createElement(Original, props),
    ),
    ServersContainer: () => () => null,
    operations: (Original, { React }) => (props) => React.createElement(
      React.Fragment, null,
      React.createElement('h2', { className: 'unseen' }, 'Operations'),
      React.createElement(Original, props),
    ),
  },
});
// The document names no server: its paths are below the root that this page is in.
const here = () => ({
  statePlugins: { spec: { wrapActions: {
    updateJsonSpec: (update) => (spec) =>
      update({ ...spec, servers: [{ url: new URL('.', location.href).pathname }] }),
  } } },
});
SwaggerUIBundle({
  url: 'openapi.json', dom_id: '#swagger-ui', deepLinking: true, validatorUrl: null,
  plugins: [accessible, here],
});
"""


def _page(request: Request, template: str, status: int = 200, **context: Any) -> Response:
    """Return a page whose addresses are relative to it."""
    root = root_of(request)
    urls = {"static_url": STATIC_URL, "plotly_url": PLOTLY_URL, "docs_url": DOCS_URL}
    context |= {name: root + url.removeprefix("/") for name, url in urls.items()}
    context["root"] = root
    return _templates.TemplateResponse(request, template, context, status, headers=_REVALIDATE)


@router.get("/")
async def page(request: Request) -> Response:
    """Return the application."""
    return _application(request)


def _application(request: Request, status: int = 200) -> Response:
    """Return the application; with `?embed` one view of it, for a frame in another page."""
    settings = request.app.state.services.settings
    is_open = not settings.api_keys  # what is fetched early has no key
    is_embedded = "embed" in request.query_params
    context = {"logo": logo(), "is_open": is_open, "is_embedded": is_embedded}
    response = _page(request, "index.html", status, **context)
    if is_embedded and settings.embed_origins:
        # Browsers that read frame-ancestors do not read X-Frame-Options.
        response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY.replace(
            "frame-ancestors 'none'", " ".join(("frame-ancestors", *settings.embed_origins))
        )
    return response


@router.get("/s/{link_id}")
async def shared(link_id: str, request: Request, services: ServicesDep) -> Response:
    """Return the application at a link; its script asks for the state, or tells of its lack."""
    try:
        await state_of(link_id, request, services)
    except Problem as problem:
        return _application(request, problem.status_code)
    return _application(request)


@router.get("/experiments")
async def experiments(request: Request, services: ServicesDep) -> Response:
    """Return the page of experiments."""
    services.experiments.prepare()
    return _page(request, "experiments.html", tabs=experiment_tabs())


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
    return _page(request, "card.html", **context)


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

    left = client_left(request)

    async def answer(wanted: TraceRequest) -> bytes:
        _, encoded = await services.traces.trace(
            wanted, ResponseFormat(media_type=SAFETENSORS), left
        )
        encoded.reservation.release()
        return encoded.body

    with ExitStack() as stack:
        name = await services.use_model(body.model, stack, left)
        registry = services.registry
        card = model_answer(registry.describe(name), registry.status(name)).model_dump(mode="json")
        everything, *less = saved_page.whole_requests(body, card)
        try:
            whole = await answer(everything)
        except Problem:  # a long text has too many numbers for every view
            if not less:
                raise
            whole = await answer(less[0])
        trace = read_trace(whole)
        further = [
            (ask, await answer(wanted))
            for ask, wanted in saved_page.further_requests(body, card, trace)
        ]

    def page() -> str:
        held = [*further, *saved_page.positional_answers(card, trace)]
        return saved_page.render(saved_page.Archive(card=card, whole=whole, further=held))

    return HTMLResponse(await services.computations.run(page, left))


@router.get("/api/v1/page")
async def shell(request: Request, services: ServicesDep) -> Response:
    """Return the page as a file without answers, to which the page adds those of a long text.

    Not in the OpenAPI description, as `saved`.
    """
    from headlight import saved_page

    return HTMLResponse(await services.in_thread(saved_page.shell, client_left(request)))


def problem_page(request: Request, problem: Problem) -> Response:
    """Return the page at an address where there is nothing."""
    return _page(request, "problem.html", **problem.document())


# FastAPI's own page loads Swagger UI from a CDN, and starts it inline, which the content security
# policy forbids.
@router.get("/docs")
async def docs(request: Request) -> Response:
    """Swagger UI, served from an installed package."""
    return _page(request, "docs.html")


@router.get("/docs/start.js")
async def start() -> Response:
    """Return the script that opens Swagger UI on its page."""
    return Response(_START, media_type="text/javascript")
