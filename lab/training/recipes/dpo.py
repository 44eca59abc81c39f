"""The recipe `dpo`: a decoder that learns from --comparisons directly, without a reward model.

    headlight train dpo --comparisons comparisons.jsonl --out runs/stories-dpo

The loss of a comparison is −log σ(β · (log π/π_reference of the better answer − of the worse one));
π/π_reference takes the place of a reward that is never computed (Rafailov et al. 2023, equation 7,
https://arxiv.org/abs/2305.18290). The reference is the model that the run begins with, frozen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from headlight.lab.training.batches import Batch, padded
from headlight.lab.training.config import LoopConfig, Recipe, require
from headlight.lab.training.examples import ExampleBatches, ExamplesConfig
from headlight.lab.training.preference import (
    Comparison,
    encode_comparisons,
    line_end,
    read_comparisons,
)
from headlight.lab.training.recipes import reward, stories
from headlight.model.checkpoint.loading import load_checkpoint
from headlight.model.transformer import Prediction, Transformer

_ENDS_SENTENCE = re.compile(r"[.!?][\"')]*$")


@dataclass(frozen=True, kw_only=True)
class DpoConfig(ExamplesConfig):
    """The settings of the batches and of the loss.

    ``beta`` is β: how strongly the model is held to the reference. ``reference`` is the folder of
    the frozen model, the one that the run begins with unless it is set. ``reward`` is the folder of
    a reward model that rates the answers on the card; training does not read it.
    """

    beta: float = 0.1
    reference: str = ""
    reward: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, "beta", self.beta > 0, "be positive")


def dpo_losses(
    log_probs: Float[Tensor, "pair 2"], reference: Float[Tensor, "pair 2"], *, beta: float
) -> Float[Tensor, " pair"]:
    """Compute −log σ(β · difference of log π/π_reference), in nats.

    Args:
        log_probs: of the preferred text under the model, then of the other.
        reference: those under the reference.
        beta: β.
    """
    ratios = log_probs - reference
    return F.softplus(-beta * (ratios[:, 0] - ratios[:, 1]))


@dataclass(frozen=True, kw_only=True)
class DpoBatch(Batch):
    """Comparisons: ``ids`` (pair, 2, token), the preferred text first, padded at the end.

    ``targets`` (pair, 2, token) are the ids shifted, −1 at padding; ``is_counted`` (pair) is True;
    ``reference`` (pair, 2) holds the log-probabilities under the reference.
    """

    reference: Tensor
    beta: float

    def predict(self, model: Transformer) -> Prediction:
        """Run the model on all texts."""
        prediction: Prediction = model(self.ids.flatten(0, 1))
        return prediction

    def losses(self, prediction: Prediction, *, smoothing: float = 0.0) -> Float[Tensor, " pair"]:
        """Compute `dpo_losses`; with smoothing, that share of the pairs is reversed.

        The tokens before the first difference have equal terms, which cancel: the prompt needs no
        mask.
        """
        log_probs = text_log_probs(prediction.logits, self.targets.flatten(0, 1)).view(-1, 2)
        losses = dpo_losses(log_probs, self.reference, beta=self.beta)
        if not smoothing:
            return losses
        reversed_ = dpo_losses(log_probs.flip(1), self.reference.flip(1), beta=self.beta)
        return (1 - smoothing) * losses + smoothing * reversed_


def text_log_probs(
    logits: Float[Tensor, "row token vocab"], targets: Tensor
) -> Float[Tensor, " row"]:
    """Sum the log-probabilities of the targets of each row; −1 is no target."""
    losses = F.cross_entropy(
        logits.flatten(0, 1).float(), targets.flatten(), ignore_index=-1, reduction="none"
    )
    return -losses.view_as(targets).sum(dim=1)


Pair = tuple[list[int], list[int]]


class DpoBatches(ExampleBatches[Comparison, tuple[Pair, Tensor]]):
    """The batches of the recipe: pairs of texts with their log-probabilities under the reference.

    Raises:
        CheckpointError: the reference is unreadable.
    """

    @cached_property
    def reference(self) -> Transformer:
        """The frozen model."""
        return load_checkpoint(Path(self.material.config.reference)).model

    def encode(self, examples: Sequence[Comparison]) -> list[tuple[Pair, Tensor]]:
        """As `ExampleBatches.encode`; what ends with its sentence ends its paragraph as well."""
        end = line_end(self.tokenizer)
        encoded = encode_comparisons(examples, self.tokenizer, self.material.max_tokens)
        pairs = [
            (_ended(better, each.better, end), _ended(worse, each.worse, end))
            for (better, worse), each in zip(encoded, examples, strict=True)
        ]
        rated: list[Tensor] = []
        for first in range(0, len(pairs), 16):
            batch = self.pad([(pair, torch.zeros(2)) for pair in pairs[first : first + 16]])
            with torch.no_grad():
                logits = batch.predict(self.reference).logits
                rated += text_log_probs(logits, batch.targets.flatten(0, 1)).view(-1, 2)
        return list(zip(pairs, rated, strict=True))

    def pad(self, encoded: Sequence[tuple[Pair, Tensor]]) -> Batch:
        """As `ExampleBatches.pad`."""
        ids, is_token = padded([row for pair, _ in encoded for row in pair], self.tokenizer.end_id)
        targets = ids.masked_fill(~is_token, -1)
        return DpoBatch(
            ids=ids[:, :-1].unflatten(0, (len(encoded), 2)),
            targets=targets[:, 1:].unflatten(0, (len(encoded), 2)),
            is_counted=torch.ones(len(encoded), dtype=torch.bool),
            reference=torch.stack([reference for _, reference in encoded]),
            beta=self.material.config.beta,
        )


def _ended(ids: list[int], text: str, end: int) -> list[int]:
    return [*ids, end] if _ENDS_SENTENCE.search(text) else ids


RECIPE = Recipe(
    model=stories.CONFIG,
    rows=DpoConfig(),
    loop=LoopConfig(
        steps=150,
        optimizer="adamw",
        learning_rate=3e-5,
        warmup=10,
        decay=0.5,
        weight_decay=0.0,
        balance_weight=0.01,
        validate_every=50,
    ),
    read=read_comparisons,
    texts=reward.RECIPE.texts,
    batches=DpoBatches,
    figures="headlight.lab.evaluation.figures:RlhfFigures",
    begins_from="stories",
    reads="comparisons",
)
