"""The figures of `translate`: BLEU, typed text, and word alignment beside the IBM models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headlight.model.evaluation.ibm_models import (
    diagonal_links,
    ibm_model_1_links,
    ibm_model_2_links,
)
from headlight.model.evaluation.translations import bleu, typed_figures
from headlight.model.evaluation.word_alignment import (
    ENGLISH_FRENCH_GOLD,
    Aligner,
    AlignmentScore,
    GoldPair,
    aligner,
    alignment_error_rate,
    best_head,
    best_layer,
    read_gold,
    short_pairs,
)
from headlight.model.served_transformer import Checkpoint
from headlight.model.training.batches import is_held_out
from headlight.model.training.corpus import SentencePair
from headlight.model.training.recipes.translate import TranslateConfig

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
        trained_on: the training corpus. Its held-out part is translated too, the IBM models are
            trained on the rest, as a baseline, and with `pairs` the figures of `typed_figures` are
            measured.
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
    if pairs and trained_on:
        figures["typed"] = typed_figures(
            checkpoint,
            pairs,
            trained_on=trained_on,
            long_pairs=[SentencePair(pair.english, pair.french) for pair in literary],
        )
    figures |= alignment_figures(checkpoint, gold, short_pairs(literary, SHORT))
    if trained_on:
        learned = [
            (source, target) for source, target in trained_on if not is_held_out(source, share)
        ]
        figures["ibm_models"] = {
            "model_1": _named(alignment_error_rate(ibm_model_1_links(learned, gold), gold)),
            "model_2": _named(alignment_error_rate(ibm_model_2_links(learned, gold), gold)),
            "diagonal": _named(alignment_error_rate(diagonal_links(learned, gold), gold)),
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
