"""Models' cards as pages: what a model read, how it learnt and what it reaches, for people."""

from functools import lru_cache
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.templating import Jinja2Templates
from markdown_it import MarkdownIt

from headlight.errors import described
from headlight.model.card import flatten, to_markdown
from headlight.services import ServicesDep
from headlight.settings import HOME

router = APIRouter(include_in_schema=False)

_templates = Jinja2Templates(HOME / "templates")
# A card may be anybody's: tags in it are text, and it brings no pictures from elsewhere.
_markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


@router.get("/models/{model}/card", responses=described(404, 503))
def card(model: str, request: Request, services: ServicesDep) -> Response:
    """The card of one model; a plain function, so that a long one is read off the event loop."""
    description = services.registry.describe(model)
    found = description.card
    context: dict[str, Any] = {
        "id": description.id,
        "title": found.title or description.id,
        "facts": {
            "Licence": [found.licence],
            "Trained on": found.trained_on,
            "Attribution": found.attribution,
            **{name.capitalize(): [value] for name, value in flatten(found.training)},
            "Revision": [description.revision],
        },
        "prose": prose_of(to_markdown(found)),
    }
    headers = {"Cache-Control": "no-cache"}
    return _templates.TemplateResponse(request, "card.html", context, headers=headers)


@lru_cache(maxsize=64)  # as many as there are models; a hostile one takes seconds
def prose_of(markdown: str) -> str:
    """Markdown as HTML, its headings one step below that of the page."""
    tokens = _markdown.parse(markdown)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 1)}"
    return str(_markdown.renderer.render(tokens, _markdown.options, {}))
