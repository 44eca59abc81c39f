"""The figures on a model card: the metrics of its recipe, measured on the files at hand.

Every model is measured on the sample texts that ship with the project, so that a clone can repeat
these figures; the others are measured on text that the corpus held back, if it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headlight.model.lab.evaluation import (
    fill,
    positions,
    preference,
    quantization,
    reasoning,
    stories,
    translate,
)
from headlight.model.lab.evaluation.agreement import agreement_figures
from headlight.model.lab.evaluation.examples import measure_examples
from headlight.model.lab.evaluation.minimal_pairs import grammar_pairs, pair_figures
from headlight.model.lab.evaluation.minimal_pairs import read_pairs as read_minimal_pairs
from headlight.model.lab.evaluation.moe import expert_tokens
from headlight.model.lab.evaluation.robustness import FORMS, robustness
from headlight.model.lab.evaluation.translate import bleu
from headlight.model.lab.evaluation.word_alignment import ENGLISH_FRENCH_GOLD, read_gold
from headlight.model.lab.training.arithmetic import split
from headlight.model.lab.training.corpus import (
    CorpusError,
    SentencePair,
    read_documents,
    read_pairs,
)
from headlight.model.lab.training.preference import Comparison, read_comparisons
from headlight.model.served_transformer import Checkpoint

Quality = Callable[[Checkpoint], dict[str, float]]

SAMPLE = Path(__file__).with_name("sample.txt")
_NO_FILES = "a model of the recipe 'reasoning' is measured on problems, not files; leave them out"


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The files to measure on.

    ``text`` is held-out text, held-out pairs for `translate`, or comparisons that were not trained
    on for `reward`. ``other`` are texts of another kind, of unseen authors for instance. ``corpus``
    is the training corpus: `stories` counts there its words and which tokens each expert takes,
    `translate` trains the IBM models on it. ``minimal_pairs`` are grammatical sentences and their
    ungrammatical twins, ``gold`` a second word alignment.
    """

    text: tuple[Path, ...] = ()
    other: tuple[Path, ...] = ()
    corpus: tuple[Path, ...] = ()
    minimal_pairs: Path | None = None
    gold: Path | None = None


def recipe_of(checkpoint: Checkpoint) -> str:
    """Return the recipe that the card names, or else the first that trains models of this kind."""
    kind = checkpoint.config.kind
    known = [name for name, measured in _MEASURED.items() if measured.kind == kind]
    named = checkpoint.description.card.training.get("recipe")
    return str(named) if named in known else known[0]


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
    recipe = recipe_of(checkpoint)
    for name, called in _OPTIONAL.items():
        if getattr(evidence, name) and name not in _MEASURED[recipe].takes:
            raise ValueError(
                f"a model of the recipe '{recipe}' is not measured on {called}; leave it out"
            )
    if evidence.other and not evidence.text:
        raise ValueError("another text is measured beside a held-out one; name it with --text")
    figures = rounded(_MEASURED[recipe].on(checkpoint, evidence))
    if evidence.text and recipe in _QUALITY:
        figures["robustness"] = _robustness(checkpoint, evidence)
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
    found = {name: value for name, value in known.items() if name in kept} | dict(measured)
    others = known.get("robustness", {}).get(_OTHERS)
    if others and not evidence.other and "robustness" in measured:
        found["robustness"] = {**measured["robustness"], _OTHERS: others}
    return found


def measure_bits(checkpoint: Checkpoint, evidence: Evidence, bits: Sequence[int]) -> dict[str, Any]:
    """Measure a model in fewer bits on the evidence or, without any, on the project's own texts.

    Returns:
        As `quantization.evaluate`, rounded, with the names of the files as ``text``.

    Raises:
        CorpusError: a file is unusable, or too short.
        ValueError: bits are out of range, the model is quantized already, or there is other
            evidence than a text.
    """
    if replace(evidence, text=()) != Evidence():
        raise ValueError("fewer bits are measured on a text; leave the other files out")
    text, quality = _quality(recipe_of(checkpoint), evidence.text)
    return {"text": text, **rounded(quantization.evaluate(checkpoint, quality, bits))}


def _quality(recipe: str, files: Sequence[Path]) -> tuple[list[str], Quality]:
    """Return the names of the texts that fewer bits are measured on, and the measurement."""
    texts = files or (SAMPLE,)
    names = [path.name for path in texts]
    if recipe == "reasoning":
        require_no_files(files)
        return [f"{len(split().test)} problems"], reasoning.right_and_products
    if recipe == "reward":
        if not files:
            names = [preference.COMPARISONS.name]
        comparisons = read_comparisons(files) if files else preference.held_out_comparisons()
        return names, lambda one: _accuracy(one, comparisons)
    if recipe == "translate":
        pairs = _pairs(files)
        if not pairs:
            gold = read_gold(ENGLISH_FRENCH_GOLD)
            pairs = [pair.sentences for pair in gold]
            names = [ENGLISH_FRENCH_GOLD.name]
        return names, lambda one: {"bleu": bleu(one, pairs)}
    documents = read_documents(texts)
    return names, lambda one: _QUALITY[recipe](one, documents)


def require_no_files(files: Sequence[Path]) -> None:
    """Raise ValueError if a model of the recipe ``reasoning`` is to be measured on files."""
    if files:
        raise ValueError(_NO_FILES)


def _accuracy(checkpoint: Checkpoint, comparisons: Sequence[Comparison]) -> dict[str, float]:
    return {"accuracy": preference.evaluate_reward(checkpoint, comparisons)["accuracy"]}


def _bits_per_byte(checkpoint: Checkpoint, documents: Sequence[str]) -> dict[str, float]:
    return {"bits_per_byte": stories.bits_per_byte(checkpoint, documents)["bits_per_byte"]}


def _masked_words(checkpoint: Checkpoint, documents: Sequence[str]) -> dict[str, float]:
    found = fill.evaluate(checkpoint, documents)
    names = ("masked_word_accuracy", "masked_word_in_first_five")
    return {name: found[name] for name in names}


_QUALITY = {
    **dict.fromkeys(("stories", "distill", "rlhf"), _bits_per_byte),
    "positions": _bits_per_byte,
    "fill": _masked_words,
}


def measure_expert_tokens(checkpoint: Checkpoint, evidence: Evidence) -> dict[str, Any]:
    """Count which tokens of its corpus each expert of a `stories` model takes.

    Returns:
        As `expert_tokens`, rounded, with the names of the files as ``text``; nothing without a
        corpus, or for another recipe.

    Raises:
        CorpusError: a file is unusable, or too short.
        ValueError: the model is dense.
    """
    if not evidence.corpus or recipe_of(checkpoint) != "stories":
        return {}
    found = expert_tokens(checkpoint, read_documents(evidence.corpus))
    return {"text": [path.name for path in evidence.corpus], **rounded(found)}


def sample_figures(checkpoint: Checkpoint) -> dict[str, Any]:
    """Measure a model, and what the examples on its card claim, on the project's own texts.

    Returns:
        The figures by name, rounded to four digits; under ``examples`` those of `measure_examples`.

    Raises:
        CorpusError: the sample is shorter than the model's context.
        ValueError: an example names a claim that is not known.
    """
    figures = _sample_figures(checkpoint)
    if found := measure_examples(checkpoint, read_documents((SAMPLE,))):
        figures["examples"] = rounded(found)
    return figures


def _sample_figures(checkpoint: Checkpoint) -> dict[str, Any]:
    recipe = recipe_of(checkpoint)
    if recipe == "reasoning":
        reach = reasoning.robustness(checkpoint)
        return rounded({**reasoning.evaluate(checkpoint), "robustness": reach})
    if recipe == "translate":
        gold = read_gold(ENGLISH_FRENCH_GOLD)
        pairs = [pair.sentences for pair in gold]
        return rounded(translate.evaluate(checkpoint, pairs))
    if recipe == "reward":
        return rounded(_reward_sample(checkpoint))
    evidence = Evidence(text=(SAMPLE,))
    figures = {**_MEASURED[recipe].on(checkpoint, evidence), **own_sentences(checkpoint, recipe)}
    return {**rounded(figures), "robustness": _robustness(checkpoint, evidence)}


def _reward_sample(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the figures on the held-out comparisons, and the accuracy if they are typed."""
    held_out = preference.held_out_comparisons()
    measured = {
        name: preference.evaluate_reward(
            checkpoint,
            [
                replace(one, prompt=typed(one.prompt), a=typed(one.a), b=typed(one.b))
                for one in held_out
            ],
        )
        for name, typed in FORMS.items()
    }
    forms = {name: found["accuracy"] for name, found in measured.items()}
    return {**measured["as_written"], "robustness": {"figure": "accuracy", "forms": forms}}


def own_sentences(checkpoint: Checkpoint, recipe: str) -> dict[str, Any]:
    """Return the figures on the project's own sentences, which no other text changes."""
    figures: dict[str, Any] = {**agreement_figures(checkpoint)}
    figures |= pair_figures(checkpoint, grammar_pairs(), "grammar_pairs")
    if recipe == "fill":
        figures["blanks"] = fill.filled_blanks(checkpoint)
    elif recipe != "positions":
        figures["continuations"] = stories.continuations(checkpoint)
    return figures


def _robustness(checkpoint: Checkpoint, evidence: Evidence) -> dict[str, Any]:
    others = {path.name: read_documents([path]) for path in evidence.other}
    found: dict[str, Any] = rounded(robustness(checkpoint, read_documents(evidence.text), others))
    return found


def rounded(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Round every float of nested mappings and lists to four digits, as plain data."""
    return {name: _rounded(value) for name, value in figures.items()}


def _rounded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return rounded(value)
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return round(float(value), 4) if isinstance(value, float) else value


def _stories(checkpoint: Checkpoint, evidence: Evidence) -> dict[str, Any]:
    if not evidence.text and not evidence.minimal_pairs:
        return {}
    pairs = read_minimal_pairs(evidence.minimal_pairs) if evidence.minimal_pairs else []
    documents = read_documents(evidence.text)
    figures = stories.evaluate(checkpoint, documents, pairs)
    if evidence.corpus:
        corpus = read_documents(evidence.corpus)
        figures["sampling"] = stories.sampling_figures(checkpoint, documents, corpus)
    return figures


def _translate(checkpoint: Checkpoint, evidence: Evidence) -> dict[str, Any]:
    return translate.evaluate(
        checkpoint,
        _pairs(evidence.text),
        trained_on=_pairs(evidence.corpus),
        literary=read_gold(evidence.gold) if evidence.gold else (),
    )


def _fill(checkpoint: Checkpoint, evidence: Evidence) -> dict[str, Any]:
    figures = fill.evaluate(checkpoint, read_documents(evidence.text)) if evidence.text else {}
    if evidence.minimal_pairs:
        figures |= pair_figures(checkpoint, read_minimal_pairs(evidence.minimal_pairs))
    return figures


def _positions(checkpoint: Checkpoint, evidence: Evidence) -> dict[str, Any]:
    return positions.evaluate(checkpoint, read_documents(evidence.text))


def _reasoning(_checkpoint: Checkpoint, _evidence: Evidence) -> dict[str, Any]:
    raise ValueError(_NO_FILES)


def _distill(checkpoint: Checkpoint, evidence: Evidence) -> dict[str, Any]:
    return preference.evaluate_student(checkpoint, read_documents(evidence.text))


def _reward(checkpoint: Checkpoint, evidence: Evidence) -> dict[str, Any]:
    return preference.evaluate_reward(checkpoint, read_comparisons(evidence.text))


def _rlhf(checkpoint: Checkpoint, evidence: Evidence) -> dict[str, Any]:
    return preference.evaluate_preferred(checkpoint, read_documents(evidence.text))


def _pairs(paths: Sequence[Path]) -> list[SentencePair]:
    return read_pairs(paths) if paths else []


@dataclass(frozen=True)
class _Measured:
    """A recipe's kind of model, the evidence it ``takes``, and the function that measures."""

    kind: str
    takes: frozenset[str]
    on: Callable[[Checkpoint, Evidence], dict[str, Any]]


_OPTIONAL = {
    "other": "another text",
    "corpus": "a corpus",
    "minimal_pairs": "minimal pairs",
    "gold": "a word alignment",
}
_OTHERS = "other_texts"
_NEEDED = {
    "minimal_pairs": "minimal_pairs",
    "minimal_pairs_by_paradigm": "minimal_pairs",
    "ibm_models": "corpus",
    "sampling": "corpus",
    "alignment_literary": "gold",
}
"""The figures of a card that no text gives, and the file that each needs."""

_MEASURED = {
    "stories": _Measured(
        "decoder", frozenset({"text", "other", "corpus", "minimal_pairs"}), _stories
    ),
    "translate": _Measured("encoder-decoder", frozenset({"text", "corpus", "gold"}), _translate),
    "fill": _Measured("encoder", frozenset({"text", "other", "minimal_pairs"}), _fill),
    "positions": _Measured("decoder", frozenset({"text", "other"}), _positions),
    "reasoning": _Measured("decoder", frozenset(), _reasoning),
    "distill": _Measured("decoder", frozenset({"text", "other"}), _distill),
    "reward": _Measured("decoder", frozenset({"text"}), _reward),
    "rlhf": _Measured("decoder", frozenset({"text", "other"}), _rlhf),
}
