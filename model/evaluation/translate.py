"""The figures of `translate`: BLEU, and word alignment compared with the IBM models."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from headlight.model.checkpoint import Checkpoint
from headlight.model.evaluation.word_alignment import (
    ENGLISH_FRENCH_GOLD,
    Aligner,
    AlignmentScore,
    GoldPair,
    Link,
    aligner,
    alignment_error_rate,
    best_head,
    best_layer,
    read_gold,
    short_pairs,
    split_words,
)
from headlight.model.training.batches import is_held_out
from headlight.model.training.corpus import SentencePair
from headlight.model.training.recipes.translate import TranslateConfig
from headlight.model.translation import translate

SHORT = 15


def evaluate(
    checkpoint: Checkpoint,
    pairs: Sequence[SentencePair],
    *,
    trained_on: Sequence[SentencePair] = (),
    literary: Sequence[GoldPair] = (),
) -> dict[str, Any]:
    """Measure translation and word alignment.

    Args:
        checkpoint: an encoder–decoder.
        pairs: held-out pairs to translate.
        trained_on: the training corpus. Its held-out part is translated too, and the IBM models
            are trained on the rest, as a baseline.
        literary: a second gold standard of word alignment; only its short pairs are aligned.

    Returns:
        The figures by name. Error rates are of word alignment on the project's own gold, except
        ``alignment_literary``.
    """
    gold = read_gold(ENGLISH_FRENCH_GOLD)
    share = TranslateConfig().held_out
    held_out = [pair for pair in trained_on if is_held_out(pair.source, share)]
    figures: dict[str, Any] = {}
    if pairs:
        figures["bleu"] = {"text": bleu(checkpoint, pairs)}
    if held_out:
        figures.setdefault("bleu", {})["held_out"] = bleu(checkpoint, held_out)
    figures |= alignment_figures(checkpoint, gold, short_pairs(literary, SHORT))
    if trained_on:
        learned = [
            (source, target) for source, target in trained_on if not is_held_out(source, share)
        ]
        figures["ibm_models"] = {
            "model_1": _named(alignment_error_rate(ibm_model_1_links(learned, gold), gold)),
            "model_2": _named(alignment_error_rate(ibm_model_2_links(learned, gold), gold)),
        }
    return figures


def alignment_figures(
    checkpoint: Checkpoint, gold: Sequence[GoldPair], literary: Sequence[GoldPair] = ()
) -> dict[str, Any]:
    """Score the best head and the best layer on the gold; score the same two on a second gold."""
    head, layer = best_head(checkpoint, gold), best_layer(checkpoint, gold)
    figures = {"alignment": {"pairs": len(gold), "head": _placed(head), "layer": _placed(layer)}}
    if literary:
        figures["alignment_literary"] = {
            "pairs": len(literary),
            "head": _placed(_again(checkpoint, literary, head)),
            "layer": _placed(_again(checkpoint, literary, layer)),
        }
    return figures


def _again(checkpoint: Checkpoint, gold: Sequence[GoldPair], chosen: Aligner) -> Aligner:
    return aligner(checkpoint, gold, layer=chosen.layer, head=chosen.head, shift=chosen.shift)


def _placed(found: Aligner) -> dict[str, Any]:
    place = {"layer": found.layer, "head": found.head, "shift": found.shift}
    if found.head is None:
        del place["head"]
    return place | _named(found.score)


def _named(score: AlignmentScore) -> dict[str, float]:
    return {
        "error_rate": score.error_rate,
        "precision": score.precision,
        "recall": score.recall,
    }


# --- BLEU -----------------------------------------------------------------------------------------


def bleu(checkpoint: Checkpoint, pairs: Sequence[SentencePair]) -> float:
    """Compute BLEU, in [0, 100], over the distinct sources, each against all its references.

    Papineni et al. 2002, https://aclanthology.org/P02-1040/; computed by sacrebleu (Post 2018,
    https://arxiv.org/abs/1804.08771) with its defaults, so that scores compare.

    Args:
        checkpoint: an encoder–decoder.
        pairs: sources and references; a source may have several.

    Raises:
        ImportError: sacrebleu is not installed.
    """
    try:
        import sacrebleu
    except ImportError as error:
        raise ImportError(
            "BLEU needs sacrebleu, which is not installed; pip install headlight[evaluate]"
        ) from error
    references: dict[str, list[str]] = defaultdict(list)
    for source, target in pairs:
        references[source].append(target)
    most = max(map(len, references.values()))
    streams = [
        [known[number] if number < len(known) else None for known in references.values()]
        for number in range(most)
    ]
    score: float = sacrebleu.corpus_bleu(translations(checkpoint, list(references)), streams).score
    return score


def translations(
    checkpoint: Checkpoint, sources: Sequence[str], *, batch_rows: int = 64
) -> list[str]:
    """Translate with the model, in the order of the sources."""
    tokenizer = checkpoint.tokenizer
    ids = [[tokenizer.start_id, *pieces] for pieces in tokenizer.encode_ids(sources)]
    order = sorted(range(len(ids)), key=lambda number: len(ids[number]))
    found = [""] * len(ids)
    for first in range(0, len(order), batch_rows):
        numbers = order[first : first + batch_rows]
        targets = translate(
            checkpoint.model,
            [ids[number] for number in numbers],
            start_id=tokenizer.start_id,
            end_id=tokenizer.end_id,
        )
        for number, target in zip(numbers, targets, strict=True):
            found[number] = tokenizer.decode(target)
    return found


# --- IBM models -----------------------------------------------------------------------------------


def ibm_model_1_links(
    sentences: Sequence[tuple[str, str]], gold: Sequence[GoldPair], *, n_iterations: int = 5
) -> list[set[Link]]:
    """Align the gold with IBM model 1, which ignores the order of the words.

    Brown et al. 1993, section 4.1, https://aclanthology.org/J93-2003/; trained and decoded by
    nltk. Every French word is linked to its most probable English word, or to none; an unknown
    word is linked to the last.

    Args:
        sentences: pairs of an English and a French text to train on; lower-cased.
        gold: the pairs to align; lower-cased, not trained on.
        n_iterations: rounds of expectation maximisation.

    Returns:
        The links of each gold pair.

    Raises:
        ImportError: nltk is not installed.
    """
    return _ibm_links("IBMModel1", sentences, gold, n_iterations)


def ibm_model_2_links(
    sentences: Sequence[tuple[str, str]], gold: Sequence[GoldPair], *, n_iterations: int = 5
) -> list[set[Link]]:
    """Align the gold with IBM model 2, which adds the positions of the words.

    As `ibm_model_1_links`; section 4.2. nltk first trains a model 1 for twice as many rounds, and
    links next to nothing in a pair of two lengths that no training pair had.
    """
    return _ibm_links("IBMModel2", sentences, gold, n_iterations)


def _ibm_links(
    name: str, sentences: Sequence[tuple[str, str]], gold: Sequence[GoldPair], n_iterations: int
) -> list[set[Link]]:
    try:
        from nltk import translate
    except ImportError as error:
        raise ImportError(
            "the IBM models need nltk, which is not installed; pip install headlight[evaluate]"
        ) from error

    def aligned(english: Sequence[str], french: Sequence[str]) -> Any:
        return translate.AlignedSent([w.lower() for w in french], [w.lower() for w in english])

    corpus = [aligned(split_words(english), split_words(french)) for english, french in sentences]
    model = getattr(translate, name)(corpus, n_iterations)
    unseen = [aligned(pair.english_words, pair.french_words) for pair in gold]
    model.align_all(unseen)
    return [
        {(english, french) for french, english in pair.alignment if english is not None}
        for pair in unseen
    ]
