"""Tokens: how a model cuts a text."""

from functools import partial

from fastapi import APIRouter, Request

from headlight.errors import described
from headlight.json_route import JsonRoute
from headlight.schemas.traces import TokenAnswer, TokenizeAnswer, TokenizeRequest
from headlight.services import ServicesDep

router = APIRouter(
    prefix="/api/v1",
    tags=["tokens"],
    route_class=JsonRoute,
    responses=described(400, 404, 413, 415, 422, 503, 504),
)


@router.post("/tokenize")
async def tokenize(
    order: TokenizeRequest, request: Request, services: ServicesDep
) -> TokenizeAnswer:
    """Cut a text into a model's tokens, each with its place in the text."""
    model, tokens = await services.run(request, partial(services.tracer.tokenize, order))
    answers = [TokenAnswer.model_validate(token, from_attributes=True) for token in tokens]
    return TokenizeAnswer(model=model, tokens=answers)
