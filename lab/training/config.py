"""The configuration of a run: a recipe, the loop's hyperparameters, and changes to both by name.

A setting is named by its part and its field: ``model.d_model``, ``rows.held_out``, ``loop.steps``.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, ValidationError, create_model

from headlight.lab.figures import Figures
from headlight.lab.training.batches import Batches, Material
from headlight.model.config import MAXIMA as MOST_OF
from headlight.model.config import ExpertsConfig, TransformerConfig, require_known
from headlight.model.optimization.optimizers import OPTIMIZERS
from headlight.model.optimization.schedule import SCHEDULES

PARTS = ("model", "rows", "loop")
BATCH_SETTINGS = ("smoothing", "balance_weight", "accumulate")
"""The settings of the loop that only an update from a batch with targets reads."""
MOE = [f"moe.{field.name}" for field in fields(ExpertsConfig)]
STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
MAX_INTEGER = 2**62


@dataclass(frozen=True, kw_only=True)
class LoopConfig:
    """The hyperparameters of the training loop.

    Args:
        steps: the number of updates.
        seed: decides the initial weights and every batch.
        optimizer: ``muon`` for the matrices inside the layers, with AdamW for the rest, or
            ``adamw`` for everything.
        learning_rate: at its peak.
        adam_share: with Muon, the share of the learning rate that AdamW uses.
        schedule: the learning rate schedule; a name of `SCHEDULES`.
        warmup: steps in which the learning rate rises.
        decay: fraction of all steps in which it falls at the end.
        weight_decay: decoupled, of the matrices inside the layers.
        clip: greatest norm of the gradient.
        smoothing: label smoothing, the share of each target spread over the vocabulary.
        balance_weight: weight of the experts' balance loss.
        teacher_weight: with a teacher, the share of the distillation loss; the rest is
            cross-entropy. 0 leaves the teacher unread.
        temperature: of both distributions in the distillation loss.
        accumulate: gradient accumulation: parts that each batch is read in, to save memory.
        validate_every: steps between two validations.
        save_every: steps between two states on disk.
        best: whether the model is that of the validation with the lowest held-out loss, and not of
            the last step.
        patience: validations in a row without a lower held-out loss after which the run ends; 0:
            it never ends early.
        averaged: the number of states saved last whose weights are averaged in the model; 1 for
            those of the last step (Vaswani et al. 2017, section 6.1).
        keep_steps: the number of states that are kept as models, in sub-folders ``step*``: before
            the first step, after the last, the others evenly spaced in the logarithm; 0: none.

    Raises:
        ValueError: a number is out of its range, or a name is unknown.
    """

    steps: int = 3300
    seed: int = 0
    optimizer: str = "muon"
    learning_rate: float = 6e-3
    adam_share: float = 0.5
    schedule: str = "warmup_stable_decay"
    warmup: int = 90
    decay: float = 0.3
    weight_decay: float = 0.05
    clip: float = 1.0
    smoothing: float = 0.0
    balance_weight: float = 0.1
    teacher_weight: float = 0.5
    temperature: float = 1.0
    accumulate: int = 1
    validate_every: int = 100
    save_every: int = 50
    best: bool = False
    patience: int = 0
    averaged: int = 1
    keep_steps: int = 0

    def __post_init__(self) -> None:
        for name in ("steps", "accumulate", "validate_every", "save_every", "averaged"):
            require(self, name, getattr(self, name) >= 1, "be at least 1")
        for name in ("steps", "seed", "warmup"):
            require(self, name, 0 <= getattr(self, name) < MAX_INTEGER, "lie between 0 and 2^62")
        for name in ("learning_rate", "adam_share", "clip", "temperature"):
            require(self, name, getattr(self, name) > 0, "be positive")
        for name in ("patience", "keep_steps"):
            require(self, name, 0 <= getattr(self, name) < MAX_INTEGER, "lie between 0 and 2^62")
        if self.best and self.averaged > 1:
            raise ValueError("best and averaged choose different weights; leave out one")
        for name in ("weight_decay", "balance_weight"):
            require(self, name, getattr(self, name) >= 0, "be at least 0")
        require(self, "decay", 0 <= self.decay <= 1, "lie in [0, 1]")
        require(self, "teacher_weight", 0 <= self.teacher_weight <= 1, "lie in [0, 1]")
        require(self, "smoothing", 0 <= self.smoothing < 1, "lie in [0, 1)")
        require_known("optimizer", self.optimizer, OPTIMIZERS)
        require_known("schedule", self.schedule, tuple(SCHEDULES))


def require(settings: object, name: str, is_met: bool, rule: str) -> None:
    """Raise ValueError if a setting breaks its rule; the message names it, its value and the rule.

    Args:
        settings: that have it.
        name: of the setting.
        is_met: whether the rule is met.
        rule: what the setting must do, as "be at least 1".
    """
    if not is_met:
        raise ValueError(f"{name} ({getattr(settings, name)}) must {rule}")


def _none(*_: Any) -> list[Any]:  # called like every recipe's
    return []


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The defaults and the functions that train one kind of model.

    Args:
        model: the architecture.
        rows: the settings of the batches; a frozen dataclass.
        loop: the hyperparameters.
        read: reads the corpus from files.
        texts: gives the texts of the corpus, from which the tokenizer is trained.
        batches: makes the batches of their `Material`.
        has_mask: whether the vocabulary has a mask token.
        make_loop: makes the loop, with the arguments of `Loop`.
        is_sampled: whether the loop samples its own batches; it then reads no teacher, and computes
            in float32, because policy gradients divide the probabilities of two passes.
        begins_from: the model that a run begins with unless it names another; empty: none.
        needs_teacher: whether a run must name a teacher, whose tokenizer it takes.
        steps_without_text: the steps of a run, counted from 1, whose batches hold no text of the
            corpus; given the rows' settings and the number of steps.
        figures: the class of the figures on the cards of its models, or the place of that class in
            the package for evaluation, ``module:class``.
        is_usual: whether a model of this kind whose card names no recipe is taken for one of it.
        reads: the files to train on, ``corpus`` or ``comparisons``; empty: none.
        takes_reward: whether a run must name a reward model, which rates samples.
        unread: the names of the loop's settings that have no effect, given the rows' settings.
    """

    model: TransformerConfig
    rows: Any
    loop: LoopConfig
    read: Callable[[Sequence[Path]], Any]
    texts: Callable[[Any], Iterable[str]]
    batches: Callable[[Material[Any, Any]], Batches]
    figures: str | Callable[[], Figures]
    has_mask: bool = False
    make_loop: Callable[..., Any] | None = None
    is_sampled: bool = False
    begins_from: str = ""
    needs_teacher: bool = False
    steps_without_text: Callable[[Any, int], list[range]] = _none
    is_usual: bool = False
    reads: str = "corpus"
    takes_reward: bool = False
    unread: Callable[[Any], Sequence[str]] = _none


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The validated settings of a run."""

    model: TransformerConfig
    rows: Any
    loop: LoopConfig


def change(recipe: Recipe, changes: Mapping[str, Any]) -> Settings:
    """Change some settings of a recipe.

    If `model.n_layers` changes and `model.moe.layers` does not, the layers with experts follow:
    all of them if the recipe has experts in every layer, else those that are still there.

    Args:
        recipe: gives every setting that does not change.
        changes: as in `merge`.

    Raises:
        ValueError: a setting is unknown, has another type, or a value that is not allowed.
    """
    settings = settings_of(recipe)
    merge(settings, changes)
    _fit_experts(settings["model"], recipe.model)
    return check(settings, recipe)


def _fit_experts(model: Any, recipe: TransformerConfig) -> None:
    """Let ``moe.layers`` follow ``n_layers``, unless `check` is about to reject either."""
    n_layers = model.get("n_layers") if isinstance(model, dict) else None
    moe = model.get("moe") if isinstance(model, dict) else None
    if recipe.moe is None or type(n_layers) is not int or not isinstance(moe, dict):
        return
    if n_layers == recipe.n_layers or moe.get("layers") != recipe.moe.layers:
        return
    in_every_layer = len(recipe.moe.layers) == recipe.n_layers
    kept = [layer for layer in recipe.moe.layers if layer < n_layers]
    # An absurd number of layers is for the validation to reject, not for a range to hold.
    moe["layers"] = (
        [*range(n_layers)] if in_every_layer and n_layers <= MOST_OF["n_layers"] else kept
    )


def settings_of(recipe: Recipe) -> dict[str, Any]:
    """Return the settings of a recipe as plain data: a mapping for each of `PARTS`."""
    return {part: asdict(getattr(recipe, part)) for part in PARTS}


def merge(settings: dict[str, Any], changes: Mapping[str, Any]) -> None:
    """Merge changes into settings: a mapping into a mapping; anything else replaces.

    Args:
        settings: changed in place.
        changes: by names with dots, ``{"loop.steps": 10}``, or nested, ``{"loop": {"steps": 10}}``.
    """
    for name, value in changes.items():
        first, _, rest = str(name).partition(".")
        new = {rest: value} if rest else value
        if isinstance(new, Mapping):
            inner = settings.get(first)
            settings[first] = dict(inner) if isinstance(inner, Mapping) else {}
            merge(settings[first], new)
        else:
            settings[first] = new


def check(settings: Mapping[str, Any], recipe: Recipe) -> Settings:
    """Validate plain data as settings; a missing field takes its dataclass's default.

    Raises:
        ValueError: a setting is unknown, has another type, or a value that is not allowed.
    """
    form = create_model(
        "Settings",
        __config__=STRICT,
        model=(TransformerConfig, ...),
        rows=(type(recipe.rows), ...),
        loop=(LoopConfig, ...),
    )
    try:
        checked = form.model_validate_json(json.dumps(settings, default=str))
    except ValidationError as error:
        problems = error.errors(include_url=False)
        raise ValueError("; ".join(_sentence(problem, recipe) for problem in problems)) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the settings are not plain data: {error}") from error
    return Settings(**{part: getattr(checked, part) for part in PARTS})


def _sentence(problem: Mapping[str, Any], recipe: Recipe) -> str:
    """Describe one validation error."""
    name = ".".join(map(str, problem["loc"]))
    match problem["type"]:
        case "value_error":
            return str(problem["ctx"]["error"])
        case "unexpected_keyword_argument" | "extra_forbidden":
            return _unknown(name, recipe)
        case "missing" | "missing_argument":
            return f"{name} is missing"
        case "dataclass_type":
            rule = "be a mapping of names to values"
        case _:
            rule = problem["msg"].partition(" should ")[2] or f"be readable: {problem['msg']}"
    value = reprlib.repr(problem["input"])
    return f"{name} is {value}; it must {rule}" if name else f"the settings must {rule}"


def _unknown(name: str, recipe: Recipe) -> str:
    part = name.partition(".")[0]
    if part not in PARTS:
        return f"there is no setting {name!r}; every name begins with {', '.join(PARTS)}"
    values = settings_of(recipe)[part]
    names = [*values, *(MOE if part == "model" else [])]
    if near := get_close_matches(name, [f"{part}.{each}" for each in names], n=1, cutoff=0.7):
        return f"there is no setting {name!r}; did you mean {near[0]!r}?"
    known = ", ".join(f"{each}={reprlib.repr(value)}" for each, value in values.items())
    return f"there is no setting {name!r}; the settings of {part} are {known}"
