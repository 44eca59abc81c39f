"""The recipe `stories`: a small decoder trained on children's books.

    headlight train stories --corpus train.txt --out runs/stories

It trains in stages. The first stages read nothing but repeated segments of unrelated tokens, until
some heads attend to the previous token and others find the earlier occurrence and copy what
followed it (induction, Olsson et al. 2022, https://arxiv.org/abs/2209.11895); plain text of this
size does not teach that. Their rows are short at first: a head with uniform attention gives each
of 32 tokens four times the weight of each of 128. The later stages read the books and repeated
rows, of which a 24th keeps these heads in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headlight.lab.training.batches import Batch, Material, TextRows, generator_of, repeated_rows
from headlight.lab.training.config import LoopConfig, Recipe, require
from headlight.lab.training.loop import Loop
from headlight.model.config import ExpertsConfig, TransformerConfig
from headlight.model.corpus import lines, read_documents
from headlight.model.transformer import Prediction, Transformer

CONFIG = TransformerConfig(
    n_layers=4,
    n_heads=6,
    d_model=192,
    d_ff=384,
    vocab_size=4096,
    max_tokens=256,
    moe=ExpertsConfig(n_experts=8, top_k=2, layers=(0, 1, 2, 3)),
)


# A batch of more rows is a mistake; it would fill any memory.
MAX_ROWS = 65_536


class Stage(NamedTuple):
    """A stage of the run: the steps, the tokens in a row, and the rows of each kind in a batch.

    ``text`` are rows of the corpus. ``drawn_by_frequency`` and ``drawn_evenly`` are rows of
    repeated segments, whose tokens are drawn by their frequency in the corpus or uniformly from
    all tokens that occur in it.
    """

    steps: int
    tokens: int
    text: int = 0
    drawn_by_frequency: int = 0
    drawn_evenly: int = 0


STAGES = (
    Stage(250, tokens=32, drawn_by_frequency=64),
    Stage(100, tokens=64, drawn_by_frequency=32),
    Stage(100, tokens=128, drawn_by_frequency=16),
    Stage(400, tokens=256, text=24, drawn_by_frequency=8, drawn_evenly=16),
    Stage(4250, tokens=256, text=46, drawn_by_frequency=1, drawn_evenly=1),
)


@dataclass(frozen=True, kw_only=True)
class StoriesConfig:
    """The settings of the batches and of their loss.

    ``stages`` follow each other; the last lasts until the end of the run. The last ``held_out``
    rows of text are for validation. In rows of repeated segments ``copying_heads`` of each layer
    learn where to attend. In the balance loss, the part of `token_share` above
    ``token_share_bound`` has the weight ``token_share_weight``. ``head_dropout`` is the probability
    that a head does not write in a row of text.

    Raises:
        ValueError: there is no stage, a stage has no rows, or a number is out of its range.
    """

    stages: tuple[Stage, ...] = STAGES
    held_out: int = 64
    copying_heads: int = 2
    token_share_weight: float = 5.0
    token_share_bound: float = 0.55
    head_dropout: float = 0.05

    def __post_init__(self) -> None:
        object.__setattr__(self, "stages", tuple(Stage(*stage) for stage in self.stages))
        if not self.stages:
            raise ValueError("stages is empty; a run needs at least one")
        for stage in self.stages:
            if stage.text + stage.drawn_by_frequency + stage.drawn_evenly < 1:
                raise ValueError(f"{stage} has no rows")
            if not all(0 <= number <= MAX_ROWS for number in stage[2:]) or stage.steps < 1:
                raise ValueError(
                    f"{stage} must have at least 1 step, and from 0 to {MAX_ROWS} rows of a kind"
                )
        for name in ("held_out", "copying_heads"):
            require(self, name, getattr(self, name) >= 1, "be at least 1")
        for name in ("token_share_weight", "token_share_bound"):
            require(self, name, getattr(self, name) >= 0, "be at least 0")
        require(self, "head_dropout", 0 <= self.head_dropout < 1, "lie in [0, 1)")

    def steps_without_text(self, steps: int) -> list[range]:
        """Return the steps of a run, counted from 1, that read no row of text."""
        ranges: list[range] = []
        first = 1
        for number, stage in enumerate(self.stages, start=1):
            end = steps + 1 if number == len(self.stages) else min(first + stage.steps, steps + 1)
            if not stage.text and first < end:
                begin = ranges.pop().start if ranges and ranges[-1].stop == first else first
                ranges.append(range(begin, end))
            first = end
        return ranges


class StoriesBatches:
    """The batches of the recipe.

    Raises:
        CorpusError: the corpus has fewer than two rows, one to train and one to validate on.
        ValueError: the rows of a stage are longer than the model's context, or too short to repeat.
    """

    def __init__(self, text: TextRows, config: StoriesConfig, seed: int) -> None:
        for stage in config.stages:
            if not 12 <= stage.tokens <= text.length:
                raise ValueError(f"{stage}: tokens must lie between 12 and {text.length}")
        self.text, self.held_out = text.hold_out(config.held_out)
        self.known_ids = text.stream.ids.unique()
        self.config = config
        self.seed = seed

    def batch(self, step: int) -> Batch:
        """Return the rows of the step's stage, text first."""
        first_step = first_row = 0
        for stage in self.config.stages[:-1]:
            if step < first_step + stage.steps:
                break
            first_step += stage.steps
            first_row += stage.steps * stage.text
        else:
            stage = self.config.stages[-1]
        batches = []
        if stage.text:
            row = first_row + (step - first_step) * stage.text
            batches.append(replace(self.text, length=stage.tokens).take(row, stage.text))
        if stage.drawn_by_frequency:
            batches.append(self._drawn_by_frequency(step, stage))
        if stage.drawn_evenly:
            batches.append(self._drawn_evenly(step, stage))
        return Batch.join(*batches)

    def validation(self) -> list[Batch]:
        """Return the held-out rows of text."""
        return self.held_out.once()

    def _drawn_by_frequency(self, step: int, stage: Stage) -> Batch:
        return repeated_rows(
            self.text.stream.ids,
            count=stage.drawn_by_frequency,
            length=stage.tokens,
            longest=3 * stage.tokens // 8,
            start_id=self.text.start_id,
            generator=generator_of(self.seed, step),
        )

    def _drawn_evenly(self, step: int, stage: Stage) -> Batch:
        return repeated_rows(
            self.known_ids,
            count=stage.drawn_evenly,
            length=stage.tokens,
            longest=stage.tokens // 2,
            start_id=self.text.start_id,
            generator=generator_of(self.seed, step, 1),
        )


def _batches(material: Material[Sequence[str], StoriesConfig]) -> StoriesBatches:
    return StoriesBatches(material.text_rows(material.max_tokens), material.config, material.seed)


class StoriesLoop(Loop):
    """The loop of the recipe.

    From rows of repeated segments only the first ``copying_heads`` heads of each layer learn where
    to attend; otherwise all would learn induction. The others write as ever, so that copying does
    not depend on their silence. To the balance loss is added what `token_share` exceeds
    ``token_share_bound`` by, in all layers with experts but the first, whose router reads little
    but the token. In rows of text each head is silent with probability ``head_dropout``; a model
    that never missed one fails when one is ablated.
    """

    def _predict(self, part: Batch, model: Transformer | None = None) -> Prediction:
        if model is not None and model is not self.model:
            return super()._predict(part, model)
        assert isinstance(self.batches, StoriesBatches)
        config, moe = self.batches.config, self.model.config.moe
        is_repeated = ~part.is_counted.all(dim=1)

        def change(context: Tensor) -> Tensor:
            context = _detach(context, is_repeated, config.copying_heads)
            is_off = torch.rand(context.shape[:2], device=context.device) < config.head_dropout
            return context.masked_fill((is_off & ~is_repeated[:, None])[..., None, None], 0)

        with self.model.edit("*.self_attention.context", change):
            if moe is None or len(moe.layers) < 2:
                return super()._predict(part)
            with self.model.capture(["*.experts.router_probs"]) as captured:
                prediction = super()._predict(part)
        later = [*captured.values()][1:]
        shares = torch.stack([token_share(probs, part.ids) for probs in later])
        excess = (shares - config.token_share_bound).relu().mean()
        balance_loss = prediction.balance_loss + config.token_share_weight * excess
        return prediction._replace(balance_loss=balance_loss)


def _detach(
    context: Float[Tensor, "batch head query d_head"], is_row: Bool[Tensor, " batch"], n_first: int
) -> Float[Tensor, "batch head query d_head"]:
    """Let no gradient of some rows reach the heads after the first `n_first`."""
    is_other = torch.arange(context.shape[1], device=context.device) >= n_first
    return torch.where((is_row[:, None] & is_other)[..., None, None], context.detach(), context)


def token_share(
    router_probs: Float[Tensor, "batch query expert"], ids: Int[Tensor, "batch query"]
) -> Float[Tensor, ""]:
    """Compute how far the token, and not its context, decides where a router sends it.

    Σ_e p̄_e² / mean of Σ_e p_e², where p̄ is the mean of the probabilities over the occurrences of
    a token, and both sums are weighted by the occurrences: 1 if the router reads nothing but the
    token, 1/n_experts if it is certain each time and each expert is chosen as often for each
    token. A token that occurs once is not counted.
    """
    _, token, counts = ids.flatten().unique(return_inverse=True, return_counts=True)
    probs = router_probs.flatten(0, 1)
    sums = probs.new_zeros(len(counts), probs.shape[1]).index_add(0, token, probs)
    is_repeated = counts > 1
    of_token: Tensor = (sums.square().sum(dim=1) / counts)[is_repeated].sum()
    of_each = probs.square().sum(dim=1)[is_repeated[token]].sum()
    return of_token / of_each.clamp(min=1e-9)


RECIPE = Recipe(
    model=CONFIG,
    rows=StoriesConfig(),
    loop=LoopConfig(steps=5100, decay=0.4),
    read=read_documents,
    texts=lines,
    batches=_batches,
    make_loop=StoriesLoop,
    figures="headlight.lab.evaluation.figures:StoriesFigures",
    is_usual=True,
    steps_without_text=StoriesConfig.steps_without_text,
)
