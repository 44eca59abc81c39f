"""Tokens: how a model cuts a text."""

from collections.abc import Sequence
from functools import partial

from fastapi import APIRouter, Request

from headlight.errors import described
from headlight.json_route import JsonRoute
from headlight.model.trace import Token
from headlight.registry import Registry
from headlight.schemas.traces import TokenAnswer, TokenizeAnswer, TokenizeRequest
from headlight.services import ServicesDep, client_left
from headlight.tracing.jobs import check_text, model_errors_as_problems

router = APIRouter(
    prefix="/api/v1",
    tags=["tokens"],
    route_class=JsonRoute,
    responses=described(400, 404, 413, 415, 422, 503, 504),
)


QUICK_CHARACTERS = 500
"""A text of as many is cut on the event loop, in under a millisecond."""


@router.post("/tokenize")
async def tokenize(
    order: TokenizeRequest, request: Request, services: ServicesDep
) -> TokenizeAnswer:
    """Cut a text into a model's tokens, each with its place in the text."""
    check_text(order.text, services.settings.max_characters)
    model = services.registry.describe(order.model).id
    cut = partial(_cut, services.registry, model, order.text)
    if len(order.text) <= QUICK_CHARACTERS and services.registry.is_loaded(model):
        tokens = cut()
    else:
        tokens = await services.in_thread(cut, client_left(request))
    answers = [TokenAnswer.model_validate(token, from_attributes=True) for token in tokens]
    return TokenizeAnswer(model=model, tokens=answers)


def _cut(registry: Registry, model: str, text: str) -> Sequence[Token]:
    with model_errors_as_problems():
        return registry.checkpoint(model).tokenizer.encode(text)
