"""`headlight chapter check`: open every step against the models and the experiments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import orjson
from pydantic import ValidationError

from headlight.chapters.chapter import Chapter, Claim, Highlight, Question, Step
from headlight.chapters.library import circle_in
from headlight.chapters.many import Many, Passes
from headlight.chapters.outcomes import Ask, Opens, Outcome, address_parts
from headlight.model.experiments.experiment import Experiment, Frame, Parameters, TooCostly, collect
from headlight.model.served import Served
from headlight.models.model_registry import registry_of
from headlight.problems import Problem, validation_message
from headlight.schemas import JSON
from headlight.schemas.traces import TraceRequest
from headlight.serialization.formats import ResponseFormat
from headlight.serialization.trace import encode
from headlight.serving.experiment_runs import encoded_result
from headlight.settings import Settings
from headlight.static_files import STATIC
from headlight.tracing.service import trace_now

KINDS = {"cell": "cell", "number": "number", "token": "choice", "bar": "choice", "one": "choice"}
"""The kind of outcome that a question is answered by."""


class Fault(NamedTuple):
    """The line of a fault in the file, and what it is."""

    line: int
    said: str


@dataclass
class Finding:
    """The result of one step: its faults, and the right answer of its question."""

    step: Step
    faults: list[Fault] = field(default_factory=list)
    right: str = ""

    def add(self, fault: str, line: int) -> None:
        """Add a fault that is in a line of the file."""
        self.faults.append(Fault(line, fault))


@cache
def views() -> frozenset[str]:
    """Return the ids of the page's views, from the list that the page itself has."""
    script = (STATIC / "js" / "views" / "view_registry.js").read_text()
    return frozenset(re.findall(r"^    id: '(\w+)'", script, re.MULTILINE))


@cache
def _link_names() -> frozenset[str]:
    """Return the names that the scripts of a link's fields hold."""
    names = {*address_parts(), "chapter", "chapter_step"}
    for path in ("views/view_registry.js", "state/attention_switches.js"):
        names |= set(re.findall(r"\b(\w+):", (STATIC / "js" / path).read_text()))
    return frozenset(names)


class Checker:
    """Opens steps in this process, as the server would answer.

    Raises:
        ValueError: the device does not exist here.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.registry = registry_of(settings)
        self._answers: dict[str, Mapping[str, Any]] = {}
        self._runs: dict[tuple[str, str], Sequence[Frame]] = {}
        self._passes = Passes(self._loaded)

    def check(self, chapter: Chapter, others: list[Chapter]) -> Iterator[Finding]:
        """Yield what each step gave; faults of the whole chapter are those of its first step."""
        self._passes = Passes(self._loaded)  # of one chapter: logits of many texts are large
        try:
            chapter = self.about(chapter)
        except ValueError as error:
            yield Finding(chapter.steps[0], [Fault(chapter.steps[0].line, str(error))])
            return
        for step in chapter.steps:
            finding = Finding(step)
            if step is chapter.steps[0]:
                for fault in _faults_of_next(chapter, others):
                    finding.add(fault, step.line)
            for fault in self._faults_of_opens(step, step.opens):
                finding.add(fault, step.line)
            if step.then is not None:
                for fault in self._faults_of_opens(step, step.then):
                    finding.add(f"then: {fault}", step.question_line)
            if not finding.faults:
                self._check_rules(finding, chapter)
            yield finding

    def about(self, chapter: Chapter) -> Chapter:
        """Return a chapter for any model as it is about the default one.

        Raises:
            ValueError: the model has nothing of what it finds.
        """
        return chapter.of_model(self._loaded(None)) if chapter.finds else chapter

    def answer(self, ask: Ask) -> Mapping[str, Any]:
        """Return the API's answer to a request.

        Raises:
            ValueError: it is refused.
        """
        key = ask.model_dump_json(by_alias=True)
        if key not in self._answers:
            self._answers[key] = self._answered(ask)
        return self._answers[key]

    def outcome(self, rule: Any, opens: Opens) -> Outcome:
        """Return what a rule gives at a step.

        Raises:
            ValueError: it cannot be computed.
        """
        outcome: Outcome = rule.outcome(opens, [self.answer(ask) for ask in rule.asks(opens)])
        return outcome

    def frames(self, experiment: Experiment, parameters: Parameters) -> Sequence[Frame]:
        """Return the frames of a run, which is made once."""
        key = experiment.id, parameters.model_dump_json()
        if key not in self._runs:
            self._runs[key] = list(experiment.start(parameters))
        return self._runs[key]

    def _answered(self, ask: Ask) -> Mapping[str, Any]:
        answer: Mapping[str, Any]
        if ask.trace is None:
            experiment = _experiments().get(ask.experiment)
            if experiment is None:
                known = ", ".join(_experiments())
                raise ValueError(f"there is no experiment {ask.experiment!r}; there are {known}")
            try:
                parameters = experiment.validate(ask.knobs)
            except ValidationError as error:
                known = ", ".join(experiment.parameters.model_fields)
                raise ValueError(f"{ask.experiment}: {_sentence(error, known)}") from error
            except TooCostly as error:
                raise ValueError(str(error)) from error
            result = collect(self.frames(experiment, parameters))
            answer = orjson.loads(encoded_result(experiment, parameters, result))
            return answer
        try:
            trace = trace_now(ask.trace, self.registry, self.settings)
        except Problem as problem:
            raise ValueError(problem.detail) from problem
        answer = orjson.loads(encode(trace, ResponseFormat(media_type=JSON)))
        return answer

    def _loaded(self, model: str | None) -> Served:
        try:
            return self.registry.checkpoint(model)
        except Problem as problem:
            raise ValueError(problem.detail) from problem

    def _claimed(self, claim: Claim, step: Step, chapter: Chapter) -> Outcome:
        if isinstance(claim.rule, Many):
            return claim.rule.within(chapter.texts).measured(step.opens, self._passes)
        return self.outcome(claim.rule, step.opens)

    def _check_rules(self, finding: Finding, chapter: Chapter) -> None:
        step, question = finding.step, finding.step.question
        try:
            if question is not None:
                outcome = self.outcome(question.answer, step.opens)
                finding.right = outcome.label
                for fault in _faults_of_question(question, outcome):
                    finding.add(fault, step.question_line)
        except ValueError as error:
            finding.add(f"the question has no answer: {_sentence(error)}", step.question_line)
        for claim, line in zip(step.claims, step.claim_lines, strict=True):
            try:
                said = claim.fault(self._claimed(claim, step, chapter))
            except ValueError as error:
                said = f"a claim cannot be checked: {_sentence(error)}"
            if said:
                finding.add(said, line)

    def _faults_of_opens(self, step: Step, opens: Opens) -> list[str]:
        try:
            if opens.experiment is not None:
                self.answer(Ask(experiment=opens.experiment, knobs=opens.knobs))
                is_lit = len(step.highlights) > 0
                return ["an experiment has no tokens to highlight"] if is_lit else []
            if opens.view not in views():
                known = ", ".join(sorted(views()))
                return [f"there is no view {opens.view!r}; there are {known}"]
            if unknown := [name for name in opens.more if name not in _link_names()]:
                return [f"a link has no part {unknown[0]!r}"]
            if opens.text is None:
                return ["the step opens no text and no experiment"]
            return list(self._faults_of_places(opens, step.highlights))
        except ValueError as error:
            return [_sentence(error)]

    def _faults_of_places(self, opens: Opens, highlights: Sequence[Highlight]) -> Iterator[str]:
        """Yield the layers, heads and tokens that the model and the text do not have."""
        description = self._describe(opens.model)
        config = description.config
        for name, number, count in (
            ("layer", opens.layer, config.n_layers),
            ("head", opens.head, config.n_heads),
        ):
            if number is not None and number >= count:
                yield f"there is no {name} {number}; {description.id} has {count}, from 0"
        given = {"text": opens.text, "model": opens.model, "target": opens.target}
        members: dict[str, Any] = {
            name: value for name, value in given.items() if value is not None
        }
        trace = self.answer(
            Ask(trace=TraceRequest(**members, analyses=[], capture=["*.embedding.tokens"]))
        )
        source, target = trace["tokens"], trace["target_tokens"] or trace["tokens"]
        keys = source if opens.where == "cross" else target
        for name, number, tokens in (
            ("query", opens.query, target),
            ("source", opens.source, source),
            ("key", opens.key, keys),
            *(("a highlight", each.query, target) for each in highlights),
            *(("a highlight", each.key, keys) for each in highlights),
        ):
            if number is not None and number >= len(tokens):
                yield f"there is no token {number} for {name}; the text has {len(tokens)}, from 0"

    def _describe(self, model: str | None) -> Any:
        try:
            return self.registry.describe(model)
        except Problem as problem:
            raise ValueError(problem.detail) from problem


def _faults_of_question(question: Question, outcome: Outcome) -> Iterator[str]:
    if outcome.kind != KINDS[question.by]:
        yield f"the question is answered by a {question.by}, and its rule gives a {outcome.kind}"
    values = [str(choice.value) for choice in outcome.choices]
    if unknown := [name for name in question.choices if name not in values]:
        yield f"the choice {unknown[0]!r} is not an answer; there are {', '.join(values)}"
    elif question.choices and len(question.choices) < len(values):
        lacking = [value for value in values if value not in question.choices]
        yield f"choices have no words for {', '.join(lacking)}"
    if question.within is not None and outcome.kind != "number":
        yield "`within` is for numbers only"
    if outcome.kind == "number" and not np.isfinite(float(outcome.right)):  # type: ignore[arg-type]
        yield "the right number is not finite"


def _faults_of_next(chapter: Chapter, others: list[Chapter]) -> Iterator[str]:
    known = {each.id for each in others} | {chapter.id}
    if chapter.next is not None and chapter.next not in known:
        there_are = ", ".join(sorted(known))
        yield f"there is no chapter {chapter.next!r} to go on with; there are {there_are}"
    if circle := circle_in(others, chapter):
        yield f"chapters lead to each other in a circle: {' → '.join(circle)}"


def _experiments() -> Mapping[str, Any]:
    from headlight.model.experiments.experiment_registry import EXPERIMENTS

    return EXPERIMENTS


def _sentence(error: ValueError, known: str = "") -> str:
    """Return an error in words; `known`: the names that may be given."""
    if isinstance(error, ValidationError):
        fault = error.errors()[0]
        named = ".".join(map(str, fault["loc"]))
        if fault["type"] == "extra_forbidden":
            return f"there is no {named!r}" + (f"; there are {known}" if known else "")
        return f"{named}: {validation_message(fault)}"
    return str(error)
