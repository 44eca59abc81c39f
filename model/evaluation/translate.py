"""Every figure on the card of `translate`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headlight.model.checkpoint import Checkpoint
from headlight.model.evaluation.bleu import bleu
from headlight.model.evaluation.cross_attention import Aligner, aligner, best_head, best_layer
from headlight.model.evaluation.figures import rounded
from headlight.model.evaluation.word_alignment import (
    ENGLISH_FRENCH_GOLD,
    AlignmentScore,
    GoldPair,
    alignment_error_rate,
    ibm_model_1_links,
    ibm_model_2_links,
    read_gold,
    short_pairs,
)
from headlight.model.training.batches import is_held_out
from headlight.model.training.corpus import SentencePair
from headlight.model.training.translate import TranslateConfig

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
        trained_on: the corpus of the model. The part of it that training kept back is translated
            too, and the IBM models learn from the rest, to compare with.
        literary: another gold of word alignment, whose short pairs are aligned.

    Returns:
        The figures by name, rounded to four digits, ready for the card; error rates are of word
        alignment on the project's own gold, save ``literary``.
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
    return rounded(figures)


def alignment_figures(
    checkpoint: Checkpoint, gold: Sequence[GoldPair], literary: Sequence[GoldPair] = ()
) -> dict[str, Any]:
    """The best head and the best layer on the gold; the same two on another gold."""
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
