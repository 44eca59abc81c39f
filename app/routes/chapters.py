"""Chapters: the list, each with its steps, one that is dropped on the page, and right answers.

Not in the OpenAPI description, as the page's files: they are for the page that is served with them.
"""

from contextlib import ExitStack
from typing import Annotated

import orjson
from fastapi import APIRouter, Path, Request
from pydantic import Field, ValidationError

from headlight.chapters.chapter import Chapter, ChapterError, read_chapter
from headlight.chapters.library import summary_of, without_the_zoo
from headlight.chapters.outcomes import Ask, Opens, Outcome
from headlight.chapters.rules import Rule
from headlight.forms import Answer
from headlight.forms import Request as Body
from headlight.problems import Problem, echo, validation_message
from headlight.routes.strict_json import JsonRoute
from headlight.schemas import JSON
from headlight.serialization.formats import ResponseFormat
from headlight.services import Services, ServicesDep
from headlight.serving.concurrency import client_left
from headlight.serving.experiments import known_experiments

router = APIRouter(prefix="/api/v1", route_class=JsonRoute, include_in_schema=False)


class ChapterSummary(Answer):
    """A chapter in short."""

    id: str
    title: str
    about: str
    n_steps: int
    n_questions: int
    is_for_any: bool


class ChaptersAnswer(Answer):
    """Every chapter in short, and by file name why one cannot be read."""

    chapters: list[ChapterSummary]
    unavailable: dict[str, str]


class ReadRequest(Body):
    """The file of a chapter that a reader dropped on the page."""

    name: str = Field("the file", max_length=200)
    text: str
    model: str | None = Field(None, description="For a chapter that holds for any.")


class RightRequest(Body):
    """A rule, and the step that it is asked at."""

    opens: Opens
    answer: Rule


@router.get("/chapters")
async def chapters(request: Request, services: ServicesDep) -> ChaptersAnswer:
    """Every chapter in short."""
    known, faults = await services.in_thread(services.chapters.chapters, client_left(request))
    known, apart = without_the_zoo(known, {each.id for each in services.registry.listed})
    return ChaptersAnswer(
        chapters=[ChapterSummary(**summary_of(each)) for each in known], unavailable=faults | apart
    )


@router.get("/chapters/{chapter}")
async def chapter(
    chapter: Annotated[str, Path(description="The chapter's id.")],
    request: Request,
    services: ServicesDep,
    model: str | None = None,
) -> Chapter:
    """One chapter with its steps; one for any model is about the model that is named."""
    known, _ = await services.in_thread(services.chapters.chapters, client_left(request))
    for each in known:
        if each.id == chapter:
            return await _about(each, model, request, services)
    available = [each.id for each in known]
    detail = f"there is no chapter {echo(chapter)}; there are {', '.join(available)}"
    raise Problem(404, "unknown-chapter", detail, available=available)


@router.post("/chapters/read")
async def read(body: ReadRequest, request: Request, services: ServicesDep) -> Chapter:
    """Return the chapter of a file; nothing is kept."""

    def chapter() -> Chapter:
        try:
            return read_chapter(body.text, body.name, "dropped")
        except ChapterError as error:
            raise Problem(422, "unreadable-chapter", str(error)) from error

    found = await services.files.run(chapter, client_left(request))
    return await _about(found, body.model, request, services)


async def _about(
    chapter: Chapter, model: str | None, request: Request, services: Services
) -> Chapter:
    if chapter.finds is None:
        return chapter
    left = client_left(request)
    with ExitStack() as stack:
        used = await services.use_model(model, stack, left)

        def about() -> Chapter:
            try:
                return chapter.of_model(services.registry.checkpoint(used))
            except ValueError as error:
                raise Problem(422, "nothing-found", str(error)) from error

        return await services.circuits.run(about, left)


@router.post("/chapters/answer")
async def right(body: RightRequest, request: Request, services: ServicesDep) -> Outcome:
    """Return what is right at a step, computed from the trace or the experiment."""
    try:
        asks = body.answer.asks(body.opens)
        answers = [await _answered(ask, request, services) for ask in asks]

        def outcome() -> Outcome:
            return body.answer.outcome(body.opens, [*map(orjson.loads, answers)])

        return await services.files.run(outcome, client_left(request))
    except ValidationError as error:
        fault = error.errors()[0]
        detail = f"{'.'.join(map(str, fault['loc']))}: {validation_message(fault)}"
        raise Problem(422, "no-answer", detail) from error
    except ValueError as error:
        raise Problem(422, "no-answer", str(error)) from error


async def _answered(ask: Ask, request: Request, services: Services) -> bytes:
    """Return the API's answer to a request of a rule, as JSON."""
    left = client_left(request)
    if ask.trace is not None:
        with ExitStack() as stack:
            await services.use_model(ask.trace.model, stack, left)
            sent_as = ResponseFormat(media_type=JSON)
            _, encoded = await services.traces.trace(ask.trace, sent_as, left)
        encoded.reservation.release()
        return encoded.body
    known = known_experiments()
    if ask.experiment not in known:
        detail = f"there is no experiment {echo(ask.experiment)}; there are {', '.join(known)}"
        raise Problem(404, "unknown-experiment", detail, available=list(known))
    definition = known[ask.experiment]
    with services.experiments.run(definition, definition.parameters(**ask.knobs)) as run:
        return await run.result(left)
