"""Which figures a card shows: those of its recipe, on what is at hand to measure them with.

Every model is measured on texts of the project's own, so that anybody can repeat that much from a
clone; the figures that count are those on text that the corpus held back, where somebody has it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headlight.model.checkpoint import Checkpoint
from headlight.model.evaluation import fill, positions, stories, translate
from headlight.model.evaluation.expert_tokens import expert_tokens
from headlight.model.evaluation.minimal_pairs import read_pairs as read_minimal_pairs
from headlight.model.evaluation.word_alignment import ENGLISH_FRENCH_GOLD, read_gold
from headlight.model.training.corpus import CorpusError, SentencePair, read_documents, read_pairs

SAMPLE = Path(__file__).with_name("sample.txt")


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What figures are measured on, as files.

    ``text`` is held-out text, or held-out pairs for a translator. ``corpus`` is what the model was
    trained on: what the experts of a storyteller take is counted there, and a translator is
    compared with others that learn from it. ``minimal_pairs`` are sentences right and wrong,
    ``gold`` another word alignment.
    """

    text: tuple[Path, ...] = ()
    corpus: tuple[Path, ...] = ()
    minimal_pairs: Path | None = None
    gold: Path | None = None


def recipe_of(checkpoint: Checkpoint) -> str:
    """The recipe that the card names, or else the first that trains models of this kind."""
    kind = checkpoint.config.kind
    known = [name for name, measured in _MEASURED.items() if measured.kind == kind]
    named = checkpoint.description.card.training.get("recipe")
    return str(named) if named in known else known[0]


def measure(checkpoint: Checkpoint, evidence: Evidence) -> dict[str, Any]:
    """The figures of a model: on the evidence, and under ``sample`` on the project's own texts.

    A sample that is shorter than what the model reads is left out where there is evidence. Of a
    storyteller's corpus there are no figures: see `measure_expert_tokens`.

    Raises:
        CorpusError: a file cannot be used, or is too short.
        ValueError: models of this recipe are not measured on such a thing.
    """
    if evidence == Evidence():
        return {"sample": sample_figures(checkpoint)}
    recipe = recipe_of(checkpoint)
    for name, called in _OPTIONAL.items():
        if getattr(evidence, name) and name not in _MEASURED[recipe].takes:
            raise ValueError(
                f"a model of the recipe '{recipe}' is not measured on {called}; leave that out"
            )
    figures = _MEASURED[recipe].on(checkpoint, evidence)
    with suppress(CorpusError):
        figures["sample"] = sample_figures(checkpoint)
    return figures


def measure_expert_tokens(checkpoint: Checkpoint, evidence: Evidence) -> dict[str, Any]:
    """What the experts of a storyteller take of its corpus, and the names of its files.

    Returns:
        As `expert_tokens`, and ``text``; nothing without a corpus, or of another recipe.

    Raises:
        CorpusError: a file cannot be used, or is too short.
        ValueError: the model is dense.
    """
    if not evidence.corpus or recipe_of(checkpoint) != "stories":
        return {}
    found = expert_tokens(checkpoint, read_documents(evidence.corpus))
    return {"text": [path.name for path in evidence.corpus], **found}


def sample_figures(checkpoint: Checkpoint) -> dict[str, Any]:
    """The figures on the texts that come with the project.

    Raises:
        CorpusError: the sample is shorter than what the model reads.
    """
    recipe = recipe_of(checkpoint)
    if recipe == "translate":
        gold = read_gold(ENGLISH_FRENCH_GOLD)
        pairs = [SentencePair(pair.english, pair.french) for pair in gold]
        return translate.evaluate(checkpoint, pairs)
    return _MEASURED[recipe].on(checkpoint, Evidence(text=(SAMPLE,)))


def _stories(checkpoint: Checkpoint, evidence: Evidence) -> dict[str, Any]:
    if evidence == Evidence(corpus=evidence.corpus):
        return {}
    pairs = read_minimal_pairs(evidence.minimal_pairs) if evidence.minimal_pairs else []
    return stories.evaluate(checkpoint, read_documents(evidence.text), pairs)


def _translate(checkpoint: Checkpoint, evidence: Evidence) -> dict[str, Any]:
    return translate.evaluate(
        checkpoint,
        _pairs(evidence.text),
        trained_on=_pairs(evidence.corpus),
        literary=read_gold(evidence.gold) if evidence.gold else (),
    )


def _fill(checkpoint: Checkpoint, evidence: Evidence) -> dict[str, Any]:
    return fill.evaluate(checkpoint, read_documents(evidence.text))


def _positions(checkpoint: Checkpoint, evidence: Evidence) -> dict[str, Any]:
    return positions.evaluate(checkpoint, read_documents(evidence.text))


def _pairs(paths: Sequence[Path]) -> list[SentencePair]:
    return read_pairs(paths) if paths else []


@dataclass(frozen=True)
class _Measured:
    """How the models of a recipe are measured: their kind, what it ``takes``, and the function."""

    kind: str
    takes: frozenset[str]
    on: Callable[[Checkpoint, Evidence], dict[str, Any]]


_OPTIONAL = {"corpus": "a corpus", "minimal_pairs": "minimal pairs", "gold": "a word alignment"}
_MEASURED = {
    "stories": _Measured("decoder", frozenset({"text", "corpus", "minimal_pairs"}), _stories),
    "translate": _Measured("encoder-decoder", frozenset({"text", "corpus", "gold"}), _translate),
    "fill": _Measured("encoder", frozenset({"text"}), _fill),
    "positions": _Measured("decoder", frozenset({"text"}), _positions),
}
