"""The answers that a site holds: those of texts, of the steps of chapters, and of experiments.

An answer about a text is the archive of a saved page (`headlight.saved_page`). To keep a site
small, the vectors of heads are left out but for the first example of each model, given texts, and
steps that show them: they are three quarters of an archive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import orjson
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from headlight import saved_page
from headlight.chapters.chapter import Chapter
from headlight.chapters.check import Checker
from headlight.chapters.outcomes import Opens
from headlight.client.decode import read_trace
from headlight.model.checkpoint.files import CheckpointError
from headlight.model.experiments.experiment import Experiment, TooCostly
from headlight.models.cards import model_answer
from headlight.models.model_registry import registry_of
from headlight.problems import Problem
from headlight.schemas import SAFETENSORS
from headlight.schemas.traces import TraceRequest
from headlight.serialization.formats import ResponseFormat
from headlight.serialization.trace import encode
from headlight.serving.experiment_runs import description, encoded_frame
from headlight.serving.experiments import experiment_answer
from headlight.settings import Settings
from headlight.tracing.service import trace_now

Members = dict[str, Any]

SHOWS_VECTORS = {"why", "stream"}
"""Views whose drawing needs the vectors of heads."""

TURNS_VECTORS = {"rotary", "alibi"}
"""Schemes whose every view needs them."""

VECTORS = ("head_outputs",)
"""The analyses that are left out of a smaller archive."""
SITES = ("*attention.scores", "*attention.weights", "*.embedding.positional")
"""The sites of a smaller archive, besides those of experts."""
EXPERT_SITES = tuple(site for site in saved_page.SITES if "experts" in site)

MOST_RUNS = 12
"""Of an experiment, the runs with one other value of a parameter."""
MOST_SECONDS = 5.0
"""The estimated time of such a run; the standard one may take longer."""
MOST_RUN_BYTES = 400_000


@dataclass(frozen=True)
class Reading:
    """A text to be read: the model, the text, a given target, and whether vectors are held."""

    model: str
    text: str
    target: str | None = None
    is_whole: bool = False


@dataclass
class Answers:
    """Computes answers in this process.

    Args:
        settings: of the models and their limits.
        on_note: called with what is left out.
    """

    settings: Settings
    on_note: Callable[[str], object] = lambda _: None
    checker: Checker = field(init=False)

    def __post_init__(self) -> None:
        self.checker = Checker(self.settings)
        self.registry = registry_of(self.settings)

    # --- texts ---

    def cards(self) -> list[Members]:
        """Return the full card of every model that can be read."""
        cards = []
        for model in sorted(self.registry.ids):
            try:
                cards.append(self.card(model))
            except Problem as problem:
                self.on_note(f"{model} is left out: {problem.detail}")
        return cards

    def card(self, model: str) -> Members:
        """Return the full card of a model."""
        description = self.registry.describe(model)
        answer = model_answer(description, self.registry.status(model))
        return {**answer.model_dump(mode="json"), "state": "loaded"}

    def readings(
        self, cards: Sequence[Members], chapters: Sequence[Chapter], texts: Sequence[Reading]
    ) -> list[Reading]:
        """Return what is read, each text once: examples, given texts, and the steps of chapters."""
        examples = (
            Reading(
                card["id"], example["text"], is_whole=at == 0 or card["positional"] in TURNS_VECTORS
            )
            for card in cards
            for at, example in enumerate(card["examples"])
        )
        steps = (
            Reading(
                step.opens.model or self.registry.default,
                step.opens.text,
                step.opens.target,
                is_whole=step.opens.view in SHOWS_VECTORS,
            )
            for chapter in chapters
            for step in chapter.steps
            if step.opens.text is not None
        )
        merged: dict[tuple[str, str, str | None], Reading] = {}
        for each in chain(examples, texts, steps):
            key = (each.model, each.text, each.target)
            known = merged.get(key)
            if known is None or each.is_whole:
                merged[key] = each
        return list(merged.values())

    def archive(self, reading: Reading, card: Members) -> bytes:
        """Return the archive of a text.

        Raises:
            ValueError: it cannot be read.
        """
        request = TraceRequest(model=reading.model, text=reading.text, target=reading.target)
        try:
            everything, *_ = saved_page.whole_requests(request, card)
            if not reading.is_whole:
                everything = _smaller(everything)
            whole = self._trace(everything)
            trace = read_trace(whole)
            further = [
                (ask, self._trace(wanted))
                for ask, wanted in saved_page.further_requests(request, card, trace)
            ]
        except Problem as problem:
            raise ValueError(f"{reading.text[:60]!r}: {problem.detail}") from problem
        further += saved_page.positional_answers(card, trace)
        return saved_page.Archive(card=card, whole=whole, further=further).pack()

    def _trace(self, request: TraceRequest) -> bytes:
        answer = trace_now(request, self.registry, self.settings)
        untimed = answer.untimed()  # so that equal models give equal files
        return bytes(encode(untimed, ResponseFormat(media_type=SAFETENSORS)))

    # --- chapters ---

    def outcomes(self, chapter: Chapter) -> list[Members]:
        """Return what is right at each step with a question, behind the request of the page.

        Raises:
            ValueError: an answer cannot be computed; the message names the step.
        """
        outcomes = []
        for step in chapter.steps:
            if step.question is None:
                continue
            try:
                outcome = self.checker.outcome(step.question.answer, step.opens)
            except ValueError as error:
                raise ValueError(f"{chapter.id}, step {step.title!r}: {error}") from error
            outcomes.append(
                {
                    "opens": _plain(step.opens),
                    "answer": _plain(step.question.answer),
                    "outcome": outcome.model_dump(mode="json"),
                }
            )
        return outcomes

    # --- experiments ---

    def experiment(self, experiment: Experiment, opened: Sequence[Opens]) -> Members:
        """Return the description of an experiment and its runs, each behind its parameters.

        The runs are the standard one, those that chapters open, and some with one other value.
        """
        asked: list[Members] = [{}]
        asked += [each.knobs for each in opened if each.experiment == experiment.id]
        runs: dict[bytes, Members] = {}
        if experiment.measures_machine:  # the figures of another machine would be no answer
            asked = []
        try:
            for values in asked:
                self._keep(runs, experiment, values)
        except CheckpointError as error:
            self.on_note(f"left out experiment {experiment.title!r}: {error}")
        n_kept = 0
        for values in _one_other_value(experiment):
            if n_kept == MOST_RUNS or not runs:
                break
            n_kept += self._keep(runs, experiment, values, most_seconds=MOST_SECONDS)
        return {
            "description": experiment_answer(experiment).model_dump(mode="json"),
            "runs": list(runs.values()),
        }

    def _keep(
        self,
        runs: dict[bytes, Members],
        experiment: Experiment,
        values: Members,
        most_seconds: float = 60.0,
    ) -> bool:
        """Run an experiment unless it was run so or takes too long; return whether it is kept.

        Raises:
            ValueError: the values of a chapter's step are wrong.
        """
        try:
            parameters = experiment.validate(values)
        except (ValidationError, TooCostly):
            if most_seconds < MOST_SECONDS or not values:
                raise
            return False
        standard = experiment.parameters().model_dump(mode="json")
        changed = {
            name: value
            for name, value in parameters.model_dump(mode="json").items()
            if value != standard[name]
        }
        key = orjson.dumps(changed, option=orjson.OPT_SORT_KEYS)
        if key in runs or experiment.cost(parameters).seconds > most_seconds:
            return False
        frames = [
            orjson.loads(encoded_frame(frame))
            for frame in self.checker.frames(experiment, parameters)
        ]
        run = {"values": changed, "start": description(experiment, parameters), "frames": frames}
        if values and most_seconds == MOST_SECONDS and len(orjson.dumps(run)) > MOST_RUN_BYTES:
            return False
        runs[key] = run
        return True


def _smaller(request: TraceRequest) -> TraceRequest:
    wanted = {*SITES, *EXPERT_SITES}
    capture = [site for site in request.capture or () if site in wanted]
    analyses = [name for name in request.analyses or () if name not in VECTORS]
    return request.model_copy(update={"capture": capture, "analyses": analyses})


def _plain(model: Any) -> Any:
    return model.model_dump(mode="json", exclude_none=True)


def _one_other_value(experiment: Experiment) -> Iterator[Members]:
    """Yield parameters with one other value each: in turn for each parameter the next one."""
    values = {
        name: list(_other_values(info))
        for name, info in experiment.parameters.model_fields.items()
        if name != "seed"
    }
    for at in range(max(map(len, values.values()), default=0)):
        for name, others in values.items():
            if at < len(others):
                yield {name: others[at]}


def _other_values(info: FieldInfo) -> Iterator[Any]:
    standard = info.default
    if isinstance(standard, bool):
        yield not standard
        return
    for other in getattr(info.annotation, "__args__", ()):  # a Literal's
        if isinstance(other, str) and other != standard:
            yield other
    if not isinstance(standard, int | float):
        return
    low, high = (
        next((getattr(rule, name) for rule in info.metadata if hasattr(rule, name)), None)
        for name in ("ge", "le")
    )
    for other in (standard / 2, standard * 2):
        inside = (low is None or other >= low) and (high is None or other <= high)
        if inside and other != standard:
            yield int(other) if isinstance(standard, int) else other
