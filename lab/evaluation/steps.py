"""Scores over a training: of every head, of a repeated list, and the early and late loss.

They are measured at each kept state (`headlight.model.checkpoint.steps`), on the same rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from headlight.lab.evaluation.text import attention, whole_rows
from headlight.lab.training.batches import prepend
from headlight.lab.training.losses import token_losses
from headlight.model.checkpoint.card import rounded
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.checkpoint.loading import load_checkpoint, write_atomically
from headlight.model.checkpoint.steps import SCORES, steps_in
from headlight.model.corpus import TokenStream

N_ROWS = 64
ROW = 128
LIST = 40
"""Random tokens that are read, and then once more."""


def write_scores(folder: Path, documents: Sequence[str], *, named: Sequence[str]) -> None:
    """Measure each state of a training, and write the scores into the model's folder.

    Args:
        folder: of the model.
        documents: held-out text.
        named: the names of its files.

    Raises:
        CorpusError: the text is shorter than a row.
    """
    states, rows = [], None
    for step, path in steps_in(folder).items():
        checkpoint = load_checkpoint(path)
        if rows is None:
            rows = whole_rows(TokenStream.encode(documents, checkpoint.tokenizer).ids, ROW)
            rows = rows[torch.arange(min(N_ROWS, len(rows))) * len(rows) // min(N_ROWS, len(rows))]
        tokens = checkpoint.description.card.training.get("tokens", 0)
        states.append({"step": step, "tokens": tokens, **rounded(scores_of(checkpoint, rows))})
    content = {"text": list(named), "rows": 0 if rows is None else len(rows), "states": states}
    text = json.dumps(content)
    write_atomically(folder / SCORES, lambda partial: partial.write_text(text, "utf-8"))


def scores_of(checkpoint: Checkpoint, rows: Int[Tensor, "row token"]) -> dict[str, Any]:
    """Measure one state.

    Returns:
        ``previous`` (layer, head): the mean weight on the token before, in the rows. ``induction``
        (layer, head): the mean weight on what followed the token before, in random lists that are
        read twice (Olsson et al. 2022, https://arxiv.org/abs/2209.11895), and ``repeat_gain``: how
        much lower the loss of the second reading is. ``early_loss`` and ``late_loss``: of the first
        and of the last quarter of the rows. Losses are in nats a token.
    """
    start = checkpoint.tokenizer.start_id
    weights, losses = _read(checkpoint, prepend(start, rows))
    generator, drawn = torch.Generator().manual_seed(0), rows.unique()
    drawn = drawn[torch.randint(len(drawn), (len(rows), LIST), generator=generator)]
    again, of_list = _read(checkpoint, prepend(start, torch.cat([drawn, drawn], dim=1)))
    queries = torch.arange(LIST + 1, 2 * LIST)
    places = torch.arange(1, weights.shape[-1])
    quarter = rows.shape[1] // 4
    return {
        "previous": weights[..., places, places - 1].mean((1, 3)).tolist(),
        "induction": again[..., queries, queries - LIST + 1].mean((1, 3)).tolist(),
        "repeat_gain": (of_list[:, 1:LIST].mean() - of_list[:, LIST + 1 :].mean()).item(),
        "early_loss": losses[:, :quarter].mean().item(),
        "late_loss": losses[:, -quarter:].mean().item(),
    }


def _read(checkpoint: Checkpoint, ids: Int[Tensor, "row token"]) -> tuple[Tensor, Tensor]:
    """Return the weights (layer, row, head, query, key) and the losses (row, token) of rows."""
    weights, logits = attention(checkpoint, ids[:, :-1])
    return weights, token_losses(logits, ids[:, 1:])
