"""Minimal pairs: is a grammatical sentence more probable than its ungrammatical twin?

Warstadt et al. 2020, BLiMP, https://arxiv.org/abs/1912.00582.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from headlight.model.checkpoint import Checkpoint
from headlight.model.training.corpus import read_members
from headlight.model.training.losses import token_losses


@dataclass(frozen=True)
class MinimalPair:
    """A grammatical sentence, its ungrammatical twin, and the paradigm that they test."""

    paradigm: str
    good: str
    bad: str


def read_pairs(path: Path) -> list[MinimalPair]:
    """Read JSON lines with the members ``paradigm``, ``good`` and ``bad``.

    Raises:
        CorpusError: the file cannot be read or a line is not a pair.
    """
    return [MinimalPair(*texts) for texts in read_members(path, ("paradigm", "good", "bad"))]


def pair_accuracy(checkpoint: Checkpoint, pairs: Sequence[MinimalPair]) -> dict[str, float]:
    """Compute the share of each paradigm's pairs whose grammatical sentence is more probable.

    Returns:
        Accuracy in [0, 1] by paradigm, in alphabetical order; chance is 0.5.
    """
    sentences = [pair.good for pair in pairs] + [pair.bad for pair in pairs]
    scores = sentence_log_probabilities(checkpoint, sentences)
    rights: dict[str, list[bool]] = defaultdict(list)
    for pair, good, bad in zip(pairs, scores[: len(pairs)], scores[len(pairs) :], strict=True):
        rights[pair.paradigm].append(good > bad)
    return {paradigm: sum(right) / len(right) for paradigm, right in sorted(rights.items())}


def sentence_log_probabilities(
    checkpoint: Checkpoint, sentences: Sequence[str], *, batch_rows: int = 64
) -> list[float]:
    """Compute the log-probability of every sentence after the start token, in nats."""
    tokenizer = checkpoint.tokenizer
    rows = [[tokenizer.start_id, *ids] for ids in tokenizer.encode_ids(sentences)]
    by_length = sorted(range(len(rows)), key=lambda number: len(rows[number]))
    scores = [0.0] * len(rows)
    for first in range(0, len(rows), batch_rows):
        numbers = by_length[first : first + batch_rows]
        for number, score in zip(
            numbers, _row_scores(checkpoint, [rows[n] for n in numbers]), strict=True
        ):
            scores[number] = score
    return scores


def _row_scores(checkpoint: Checkpoint, rows: Sequence[Sequence[int]]) -> list[float]:
    # Padding is at the end of a row, where the causal mask hides it from the text.
    longest = max(map(len, rows))
    end = checkpoint.tokenizer.end_id
    ids = torch.tensor([[*row, *[end] * (longest - len(row))] for row in rows])
    is_text = torch.arange(longest) < torch.tensor([len(row) for row in rows])[:, None]
    ids = ids.to(checkpoint.device)
    with torch.inference_mode():
        losses = token_losses(checkpoint.model(ids[:, :-1]).logits, ids[:, 1:]).cpu()
    return (-(losses * is_text[:, 1:]).sum(dim=1)).tolist()
