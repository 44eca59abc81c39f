"""Every figure on the card of `stories`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxtyping import Int
from torch import Tensor

from headlight.model.checkpoint import Checkpoint
from headlight.model.evaluation.attention_heads import (
    HeadScore,
    induction_head,
    previous_token_head,
)
from headlight.model.evaluation.bits_per_byte import bits_per_byte
from headlight.model.evaluation.expert_load import expert_load, load_entropy
from headlight.model.evaluation.figures import rounded
from headlight.model.evaluation.minimal_pairs import MinimalPair, pair_accuracy
from headlight.model.training.corpus import CorpusError, TokenStream

HEAD_ROWS = 32


def evaluate(
    checkpoint: Checkpoint, documents: Sequence[str], pairs: Sequence[MinimalPair]
) -> dict[str, Any]:
    """Measure the model on held-out text and on minimal pairs.

    Args:
        checkpoint: the model.
        documents: held-out text, at least one context long.
        pairs: minimal pairs; without any, the figures about them are left out.

    Returns:
        The figures by name, rounded to four digits, ready for the card.

    Raises:
        CorpusError: the text is shorter than one context.
    """
    stream = TokenStream.encode(documents, checkpoint.tokenizer)
    rows = _rows(stream.ids, checkpoint.config.max_tokens - 1)
    induction, copying = induction_head(checkpoint)
    figures: dict[str, Any] = {
        **bits_per_byte(checkpoint, documents),
        "previous_token_head": _named(previous_token_head(checkpoint, rows[:HEAD_ROWS])),
        "induction_head": _named(induction),
        "copy_accuracy": copying,
    }
    if checkpoint.config.moe is not None:
        load = expert_load(checkpoint, rows)
        figures["expert_load_entropy"] = {
            f"layer_{n}": load_entropy(share) for n, share in load.items()
        }
        figures["smallest_expert_share"] = {
            f"layer_{n}": float(share.min()) for n, share in load.items()
        }
    if pairs:
        accuracy = pair_accuracy(checkpoint, pairs)
        figures["minimal_pairs"] = sum(accuracy.values()) / len(accuracy)
        figures["minimal_pairs_by_paradigm"] = accuracy
    return rounded(figures)


def _rows(ids: Int[Tensor, " all"], length: int) -> Int[Tensor, "row token"]:
    if len(ids) < length:
        raise CorpusError(f"the text has {len(ids)} tokens; evaluation needs at least {length}")
    return ids[: len(ids) // length * length].view(-1, length)


def _named(score: HeadScore) -> dict[str, int | float]:
    return {"layer": score.layer, "head": score.head, "weight": score.weight}
