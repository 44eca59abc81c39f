"""The recipe of `stories`: a small decoder that reads children's books.

    headlight train stories --corpus train.txt --out runs/stories

It trains in stages. The first see nothing but repeated segments, until heads look at the token
before and others find the earlier occurrence and copy what followed it (induction, Olsson et al.
2022); plain text of this size does not teach that. Their rows are short at first: a head that
looks at everything alike sees each of 32 tokens four times as clearly as each of 128. The later
stages see the books, and a share of repeated rows so that the heads are kept and grow sharp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from headlight.model.config import ExpertsConfig, TransformerConfig
from headlight.model.tokenizer import Tokenizer
from headlight.model.training.batches import Batch, TextRows, generator_of, repeated_rows
from headlight.model.training.corpus import CorpusError, TokenStream, lines, read_documents
from headlight.model.training.loop_config import LoopConfig
from headlight.model.training.recipe import Recipe

CONFIG = TransformerConfig(
    n_layers=4,
    n_heads=6,
    d_model=192,
    d_ff=384,
    vocab_size=4096,
    max_tokens=256,
    moe=ExpertsConfig(n_experts=8, top_k=2, layers=(0, 1, 2, 3)),
)


# More rows in one batch are a mistake that would fill any memory.
MOST_ROWS = 65_536


class Stage(NamedTuple):
    """A part of the run: so many steps, each on so many rows of so many tokens of each kind.

    ``drawn_by_frequency`` and ``drawn_evenly`` are rows of repeated segments whose tokens are
    drawn from the corpus, or with equal chances from all tokens that occur in it.
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
    Stage(850, tokens=256, text=21, drawn_by_frequency=3),
    Stage(700, tokens=256, text=12, drawn_by_frequency=5, drawn_evenly=7),
    Stage(1300, tokens=256, text=18, drawn_by_frequency=2, drawn_evenly=4),
)


@dataclass(frozen=True, kw_only=True)
class StoriesConfig:
    """What the rows of `stories` hold.

    ``stages`` follow each other; the last goes on for as long as the run does. The last
    ``held_out`` text rows are for validation.

    Raises:
        ValueError: there is no stage, one without rows, or a number is out of its range.
    """

    stages: tuple[Stage, ...] = STAGES
    held_out: int = 64

    def __post_init__(self) -> None:
        object.__setattr__(self, "stages", tuple(Stage(*stage) for stage in self.stages))
        if not self.stages:
            raise ValueError("stages is empty; a run needs at least one")
        for stage in self.stages:
            if stage.text + stage.drawn_by_frequency + stage.drawn_evenly < 1:
                raise ValueError(f"{stage} has no rows")
            if not all(0 <= number <= MOST_ROWS for number in stage[2:]) or stage.steps < 1:
                raise ValueError(
                    f"{stage} must have at least 1 step, and from 0 to {MOST_ROWS} rows of a kind"
                )
        if self.held_out < 1:
            raise ValueError(f"held_out ({self.held_out}) must be at least 1")


class StoriesBatches:
    """The batches of the recipe.

    Args:
        text: rows of the corpus.
        config: how the rows are mixed.
        seed: decides every row together with the step.

    Raises:
        CorpusError: there are not two rows, one to train on and one to validate on.
        ValueError: a stage has rows longer than the model reads, or too short to repeat.
    """

    def __init__(self, text: TextRows, config: StoriesConfig, seed: int) -> None:
        for stage in config.stages:
            if not 12 <= stage.tokens <= text.length:
                raise ValueError(f"{stage}: tokens must lie between 12 and {text.length}")
        n_rows = len(text.starts)
        if n_rows < 2:
            raise CorpusError(
                f"the corpus fills one row of {text.length} tokens; training needs at least two, "
                "one of them to validate on"
            )
        n_trained = n_rows - min(config.held_out, max(1, n_rows // 10))
        self.text = replace(text, starts=text.starts[:n_trained])
        self.held_out = replace(text, starts=text.starts[n_trained:])
        self.known_ids = text.stream.ids.unique()
        self.config = config
        self.seed = seed

    def batch(self, step: int) -> Batch:
        """The rows of the stage that the step lies in, text first."""
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
        """The held-out rows of text."""
        n_rows = len(self.held_out.starts)
        return [self.held_out.take(row, min(16, n_rows - row)) for row in range(0, n_rows, 16)]

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


def _batches(
    documents: Sequence[str],
    tokenizer: Tokenizer,
    model: TransformerConfig,
    rows: StoriesConfig,
    seed: int,
) -> StoriesBatches:
    stream = TokenStream.encode(documents, tokenizer)
    text = TextRows.cut(stream, length=model.max_tokens, start_id=tokenizer.start_id, seed=seed)
    return StoriesBatches(text, rows, seed)


RECIPE = Recipe(
    model=CONFIG,
    rows=StoriesConfig(),
    loop=LoopConfig(),
    read=read_documents,
    texts=lines,
    batches=_batches,
)
