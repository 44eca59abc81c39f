"""The figures on a model card: the metrics of its recipe, measured on the files at hand.

Every model is measured on the sample texts that ship with the project, so that a clone can repeat
these figures. The others are measured on text that the corpus held back, if it is given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from headlight.lab.evaluation import fill, positions, preference, reasoning, stories, translate
from headlight.lab.evaluation.agreement import agreement_figures
from headlight.lab.evaluation.examples import measure_examples
from headlight.lab.evaluation.moe import expert_tokens
from headlight.lab.evaluation.text import bits_per_byte
from headlight.lab.evaluation.word_alignment import read_gold
from headlight.lab.figures import Evidence, Figures
from headlight.lab.training.preference import read_comparisons
from headlight.lab.training.recipe_registry import RECIPES
from headlight.model.checkpoint.card import rounded
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.corpus import CorpusError, SentencePair, read_documents, read_pairs
from headlight.model.profiles.folder import ENGLISH_FRENCH, SAMPLE

_NO_FILES = "a model of the recipe 'reasoning' is measured on problems, not files; leave them out"
_OPTIONAL = {"corpus": "a corpus", "gold": "a word alignment"}
Measured = Callable[[Checkpoint, Sequence[str]], Mapping[str, Any]]
_NEEDED = {"alignment_literary": "gold"}
"""The figures of a card that no text gives, and the file that each needs."""


def recipe_of(checkpoint: Checkpoint) -> str:
    """Return the recipe that the card names, or else the usual one of models of this kind."""
    kind = checkpoint.config.kind
    known = {name: recipe for name, recipe in RECIPES.items() if recipe.model.kind == kind}
    named = checkpoint.description.card.training.get("recipe")
    return str(named) if named in known else next(name for name in known if known[name].is_usual)


def figures_of(checkpoint: Checkpoint) -> Figures:
    """Return the figures of a model's recipe."""
    named = RECIPES[recipe_of(checkpoint)].figures
    figures: Figures = (resolve_name(named) if isinstance(named, str) else named)()
    return figures


def measure(checkpoint: Checkpoint, evidence: Evidence) -> dict[str, Any]:
    """Measure a model on the evidence and, under ``sample``, on the project's own texts.

    With evidence, a sample shorter than the model's context is left out. The corpus of `stories`
    gives no figures here: see `measure_expert_tokens`.

    Returns:
        The figures by name, rounded to four digits.

    Raises:
        CorpusError: a file is unusable, or too short.
        ValueError: a model of this recipe takes no such evidence.
    """
    if evidence == Evidence():
        return {"sample": sample_figures(checkpoint)}
    by_recipe = figures_of(checkpoint)
    for name, called in _OPTIONAL.items():
        if getattr(evidence, name) and name not in by_recipe.takes:
            recipe = recipe_of(checkpoint)
            raise ValueError(
                f"a model of the recipe '{recipe}' is not measured on {called}; leave it out"
            )
    figures = rounded(by_recipe.measure(checkpoint, evidence))
    with suppress(CorpusError):
        figures["sample"] = sample_figures(checkpoint)
    return figures


def joined(
    known: Mapping[str, Any], measured: Mapping[str, Any], evidence: Evidence
) -> dict[str, Any]:
    """Renew the figures of a card, and keep those that need a file that was not given.

    Args:
        known: the figures on the card.
        measured: those of `measure`.
        evidence: the files of `measured`.
    """
    if evidence.text:
        kept = {name for name, needed in _NEEDED.items() if not getattr(evidence, needed)}
    else:
        kept = set(known)
    return {name: value for name, value in known.items() if name in kept} | dict(measured)


def measure_expert_tokens(checkpoint: Checkpoint, evidence: Evidence) -> dict[str, Any]:
    """Count which tokens of its corpus each expert of a `stories` model takes.

    Returns:
        As `expert_tokens`, rounded, with the names of the files as ``text``; nothing without a
        corpus, or for another recipe.

    Raises:
        CorpusError: a file is unusable, or too short.
        ValueError: the model is dense.
    """
    if not evidence.corpus or not figures_of(checkpoint).counts_expert_tokens:
        return {}
    experts = expert_tokens(checkpoint, read_documents(evidence.corpus))
    return {"text": [path.name for path in evidence.corpus], **rounded(experts)}


def sample_figures(checkpoint: Checkpoint) -> dict[str, Any]:
    """Measure a model, and what the examples on its card claim, on the project's own texts.

    Returns:
        The figures by name, rounded to four digits; under ``examples`` those of `measure_examples`.

    Raises:
        CorpusError: the sample is shorter than the model's context.
        ValueError: an example names a claim that is not known.
    """
    by_recipe = figures_of(checkpoint)
    figures = by_recipe.sample(checkpoint)
    if figures is None:
        figures = by_recipe.measure(checkpoint, Evidence(text=(SAMPLE,)))
    figures = rounded(figures)
    if examples := measure_examples(checkpoint, read_documents((SAMPLE,))):
        figures["examples"] = rounded(examples)
    return figures


class TextFigures(Figures):
    """The figures of a language model, on text.

    Args:
        measured: measures a model on the documents of a text.
        writes: whether the card shows what the model writes.
    """

    def __init__(self, measured: Measured | None = None, *, writes: bool = True) -> None:
        self._measured, self._writes = measured, writes

    def measure(self, checkpoint: Checkpoint, evidence: Evidence) -> dict[str, Any]:
        """As `Figures.measure`."""
        assert self._measured is not None
        return dict(self._measured(checkpoint, read_documents(evidence.text)))

    def sample(self, checkpoint: Checkpoint) -> dict[str, Any]:
        """Measure a model on the sample, on sentences of the project, and on what it writes."""
        evidence = Evidence(text=(SAMPLE,))
        return {**self.measure(checkpoint, evidence), **self.own_sentences(checkpoint)}

    def own_sentences(self, checkpoint: Checkpoint) -> dict[str, Any]:
        """Measure a model on the project's own sentences, which no other text changes."""
        return {**agreement_figures(checkpoint), **self.written(checkpoint)}

    def written(self, checkpoint: Checkpoint) -> dict[str, Any]:
        """Return what a model writes, if its card shows it."""
        return {"continuations": stories.continuations(checkpoint)} if self._writes else {}


class StoriesFigures(TextFigures):
    """The figures of `stories`."""

    takes = frozenset({"text", "corpus"})
    counts_expert_tokens = True

    def measure(self, checkpoint: Checkpoint, evidence: Evidence) -> dict[str, Any]:
        """As `Figures.measure`."""
        return bits_per_byte(checkpoint, read_documents(evidence.text)) if evidence.text else {}


class FillFigures(TextFigures):
    """The figures of `fill`."""

    def measure(self, checkpoint: Checkpoint, evidence: Evidence) -> dict[str, Any]:
        """As `Figures.measure`."""
        return fill.evaluate(checkpoint, read_documents(evidence.text))

    def written(self, checkpoint: Checkpoint) -> dict[str, Any]:
        """As `TextFigures.written`: the words for blanks."""
        return {"blanks": fill.filled_blanks(checkpoint)}


PositionsFigures = partial(TextFigures, positions.evaluate, writes=False)
GptFigures = partial(TextFigures, bits_per_byte)
DistillFigures = partial(TextFigures, preference.evaluate_student)
RlhfFigures = partial(TextFigures, preference.evaluate_preferred)


class TranslateFigures(Figures):
    """The figures of `translate`, on sentence pairs."""

    takes = frozenset({"text", "corpus", "gold"})

    def measure(self, checkpoint: Checkpoint, evidence: Evidence) -> dict[str, Any]:
        """As `Figures.measure`."""
        return translate.evaluate(
            checkpoint,
            _pairs(evidence.text),
            trained_on=_pairs(evidence.corpus),
            literary=read_gold(evidence.gold) if evidence.gold else (),
        )

    def sample(self, checkpoint: Checkpoint) -> dict[str, Any]:
        """As `Figures.sample`: the aligned sentences."""
        return translate.evaluate(checkpoint, _aligned_pairs())


class ReasoningFigures(Figures):
    """The figures of `reasoning`, on problems that it makes."""

    takes = frozenset()

    def measure(self, checkpoint: Checkpoint, evidence: Evidence) -> dict[str, Any]:
        """As `Figures.measure`: no file is taken."""
        raise ValueError(_NO_FILES)

    def sample(self, checkpoint: Checkpoint) -> dict[str, Any]:
        """As `Figures.sample`: the test problems."""
        reach = reasoning.robustness(checkpoint)
        return {**reasoning.evaluate(checkpoint), "robustness": reach}


class RewardFigures(Figures):
    """The figures of `reward`, on comparisons."""

    def measure(self, checkpoint: Checkpoint, evidence: Evidence) -> dict[str, Any]:
        """As `Figures.measure`."""
        return preference.evaluate_reward(checkpoint, read_comparisons(evidence.text))

    def sample(self, checkpoint: Checkpoint) -> dict[str, Any]:
        """As `Figures.sample`: the comparisons that were held out, and the accuracy if typed."""
        held_out = preference.held_out_comparisons()
        measured = {
            name: preference.evaluate_reward(
                checkpoint,
                [
                    replace(each, prompt=typed(each.prompt), a=typed(each.a), b=typed(each.b))
                    for each in held_out
                ],
            )
            for name, typed in FORMS.items()
        }
        forms = {name: figures["accuracy"] for name, figures in measured.items()}
        return {**measured["as_written"], "robustness": {"figure": "accuracy", "forms": forms}}


OPENING = re.compile(r'(?<!\S)"')


def typographic(text: str) -> str:
    """Write quotation marks, apostrophes, dashes and ellipses as word processors do."""
    curved = OPENING.sub("\u201c", text).replace('"', "\u201d").replace("'", "\u2019")
    return curved.replace("--", "\u2014").replace("...", "\u2026")


FORMS: Mapping[str, Callable[[str], str]] = {
    "as_written": lambda text: text,
    "lower_case": str.lower,
    "capitals": str.upper,
    "typographic": typographic,
}


def _pairs(paths: Sequence[Path]) -> list[SentencePair]:
    return read_pairs(paths) if paths else []


def _aligned_pairs() -> list[SentencePair]:
    return [pair.sentences for pair in read_gold(ENGLISH_FRENCH)]
