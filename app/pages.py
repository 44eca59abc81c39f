"""The pages that need no model: the application, the documentation of the API, and problems.

The whole view is in the URL's fragment, so no log of this server holds a text. Nothing here imports
PyTorch: these pages answer while it loads.
"""

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.templating import Jinja2Templates
from markupsafe import Markup

from headlight.addresses import root_of
from headlight.middleware.security import CONTENT_SECURITY_POLICY
from headlight.problems import Problem
from headlight.settings import HOME
from headlight.static_files import DOCS_URL, PLOTLY_URL, STATIC_URL, THEME_SCRIPT, logo

router = APIRouter(include_in_schema=False)

_templates = Jinja2Templates(HOME / "templates")
_templates.env.globals["theme_first"] = Markup(THEME_SCRIPT)  # a file of ours  # noqa: S704
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


def render(request: Request, template: str, status: int = 200, **context: Any) -> Response:
    """Return a page whose addresses are relative to it."""
    root = root_of(request)
    urls = {"static_url": STATIC_URL, "plotly_url": PLOTLY_URL, "docs_url": DOCS_URL}
    context |= {name: root + url.removeprefix("/") for name, url in urls.items()}
    context["root"] = root
    return _templates.TemplateResponse(request, template, context, status, headers=_REVALIDATE)


@router.get("/")
async def page(request: Request) -> Response:
    """Return the application."""
    return application(request)


def application(request: Request, status: int = 200) -> Response:
    """Return the application; with `?embed` one view of it, for a frame in another page."""
    settings = request.app.state.settings
    is_open = not settings.api_keys  # what is fetched early has no key
    is_embedded = "embed" in request.query_params
    context = {"logo": logo(), "is_open": is_open, "is_embedded": is_embedded}
    response = render(request, "index.html", status, **context)
    if is_embedded and settings.embed_origins:
        # Browsers that read frame-ancestors do not read X-Frame-Options.
        response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY.replace(
            "frame-ancestors 'none'", " ".join(("frame-ancestors", *settings.embed_origins))
        )
    return response


def problem_page(request: Request, problem: Problem) -> Response:
    """Return the page at an address where there is nothing."""
    return render(request, "problem.html", **problem.document())


# FastAPI's own page loads Swagger UI from a CDN, and starts it inline, which the content security
# policy forbids.
@router.get("/docs")
async def docs(request: Request) -> Response:
    """Swagger UI, served from an installed package."""
    return render(request, "docs.html")


@router.get("/docs/start.js")
async def start() -> Response:
    """Return the script that opens Swagger UI on its page."""
    return Response(_START, media_type="text/javascript")
