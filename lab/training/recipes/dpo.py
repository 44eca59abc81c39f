"""The recipe `dpo`: a decoder that learns from --comparisons directly, without a reward model.

    headlight train dpo --comparisons comparisons.jsonl --out runs/stories-dpo

The loss of a comparison is −log σ(β · (log π/π_reference of the better answer − of the worse one));
π/π_reference takes the place of a reward that is never computed (Rafailov et al. 2023, equation 7,
https://arxiv.org/abs/2305.18290). The reference is the model that the run begins with, frozen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from headlight.lab.training.batches import Batch, generator_of
from headlight.lab.training.config import LoopConfig, Recipe, require
from headlight.lab.training.preference import (
    Comparison,
    encode_comparisons,
    read_comparisons,
)
from headlight.lab.training.recipes import reward, stories
from headlight.model.checkpoint.loading import load_checkpoint
from headlight.model.config import TransformerConfig
from headlight.model.tokenizer import Tokenizer
from headlight.model.transformer import Prediction, Transformer

_ENDS_SENTENCE = re.compile(r"[.!?][\"')]*$")


@dataclass(frozen=True, kw_only=True)
class DpoConfig:
    """The settings of the batches and of the loss.

    A batch has ``count`` comparisons; ``held_out`` is as in `RewardConfig`. ``beta`` is β: how
    strongly the model is held to the reference. ``reference`` is the folder of the frozen model,
    the one that the run begins with unless it is set. ``reward`` is the folder of a reward model
    that rates the answers on the card; training does not read it.

    Raises:
        ValueError: a number is out of its range.
    """

    count: int = 16
    held_out: float = 0.15
    beta: float = 0.1
    reference: str = ""
    reward: str = ""

    def __post_init__(self) -> None:
        require(self, "count", self.count >= 1, "be at least 1")
        require(self, "held_out", 0 < self.held_out < 1, "lie in (0, 1)")
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

    def _map(self, change: Callable[[Tensor], Tensor]) -> DpoBatch:
        return replace(
            self,
            ids=change(self.ids),
            targets=change(self.targets),
            is_counted=change(self.is_counted),
            reference=change(self.reference),
        )


def text_log_probs(
    logits: Float[Tensor, "row token vocab"], targets: Tensor
) -> Float[Tensor, " row"]:
    """Sum the log-probabilities of the targets of each row; −1 is no target."""
    losses = F.cross_entropy(
        logits.flatten(0, 1).float(), targets.flatten(), ignore_index=-1, reduction="none"
    )
    return -losses.view_as(targets).sum(dim=1)


class DpoBatches:
    """The batches of the recipe, in a new order in every epoch.

    Args:
        comparisons: all of them.
        tokenizer: of the model.
        max_tokens: the longest text that the model reads.
        config: the settings, with the folder of the reference.
        seed: decides the order together with the epoch.

    Raises:
        CorpusError: there are too few comparisons, or one is too long.
        CheckpointError: the reference is unreadable.
    """

    def __init__(
        self,
        comparisons: Sequence[Comparison],
        tokenizer: Tokenizer,
        max_tokens: int,
        config: DpoConfig,
        seed: int,
    ) -> None:
        (self.line_end,) = tokenizer.encode_ids(["\n"])[0]
        self.padding, self.beta, self.seed = tokenizer.end_id, config.beta, seed
        reference = load_checkpoint(Path(config.reference)).model
        trained, held_out = (
            self._encoded(part, tokenizer, max_tokens)
            for part in reward.divide(comparisons, config.held_out)
        )
        self.trained, self.held_out = (
            list(zip(pairs, self._rated(pairs, reference), strict=True))
            for pairs in (trained, held_out)
        )
        self.count = min(config.count, len(self.trained))

    def _encoded(
        self, comparisons: Sequence[Comparison], tokenizer: Tokenizer, max_tokens: int
    ) -> list[tuple[list[int], list[int]]]:
        """Tokenize; an answer that ends with its sentence ends its paragraph as well."""
        pairs = encode_comparisons(comparisons, tokenizer, max_tokens)
        sides = [(each.better, each.worse) for each in comparisons]
        return [
            (self._ended(better, texts[0]), self._ended(worse, texts[1]))
            for (better, worse), texts in zip(pairs, sides, strict=True)
        ]

    def _ended(self, ids: list[int], text: str) -> list[int]:
        return [*ids, self.line_end] if _ENDS_SENTENCE.search(text) else ids

    def _rated(
        self, pairs: Sequence[tuple[list[int], list[int]]], reference: Transformer
    ) -> list[Tensor]:
        """Return the log-probabilities (2) of each pair under the reference, computed once."""
        rated: list[Tensor] = []
        for first in range(0, len(pairs), 16):
            batch = self._padded([(pair, torch.zeros(2)) for pair in pairs[first : first + 16]])
            with torch.inference_mode():
                logits = batch.predict(reference).logits
                rated += text_log_probs(logits, batch.targets.flatten(0, 1)).view(-1, 2).clone()
        return [each.clone() for each in rated]

    def _padded(self, pairs: Sequence[tuple[tuple[list[int], list[int]], Tensor]]) -> DpoBatch:
        rows = [row for pair, _ in pairs for row in pair]
        longest = max(map(len, rows))
        ids = torch.tensor([[*row, *[self.padding] * (longest - len(row))] for row in rows])
        is_target = torch.arange(longest) < torch.tensor([len(row) for row in rows])[:, None]
        targets = ids.masked_fill(~is_target, -1)
        return DpoBatch(
            ids=ids[:, :-1].unflatten(0, (len(pairs), 2)),
            targets=targets[:, 1:].unflatten(0, (len(pairs), 2)),
            is_counted=torch.ones(len(pairs), dtype=torch.bool),
            reference=torch.stack([reference for _, reference in pairs]),
            beta=self.beta,
        )

    def batch(self, step: int) -> Batch:
        """Return the next comparisons of the epoch."""
        epoch, place = divmod(step, len(self.trained) // self.count)
        order = torch.randperm(len(self.trained), generator=generator_of(self.seed, epoch))
        chosen = order[place * self.count : (place + 1) * self.count].tolist()
        return self._padded([self.trained[number] for number in chosen])

    def validation(self) -> list[Batch]:
        """Return the held-out comparisons."""
        starts = range(0, len(self.held_out), 16)
        return [self._padded(self.held_out[first : first + 16]) for first in starts]


def _batches(
    comparisons: Sequence[Comparison],
    tokenizer: Tokenizer,
    model: TransformerConfig,
    rows: DpoConfig,
    seed: int,
) -> DpoBatches:
    return DpoBatches(comparisons, tokenizer, model.max_tokens, rows, seed)


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
    batches=_batches,
    figures="headlight.lab.evaluation.figures:RlhfFigures",
    begins_from="stories",
    reads="comparisons",
)
