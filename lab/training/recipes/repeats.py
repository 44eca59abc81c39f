"""The recipe `repeats`: a small decoder on text that repeats itself, to watch its heads form.

    headlight train repeats --corpus train.txt --out runs/forming --keep-steps 18

The mix of a batch is the same from the first step to the last, so that whatever changes in the
heads comes from learning: rows of text, as `gpt` reads them; refrains, which are rows of text in
which one passage returns after a while; and lists, one segment of unrelated tokens over and over.
No head is told where to look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from headlight.lab.training.batches import Batch, Material, generator_of, repeated_rows
from headlight.lab.training.config import LoopConfig, require
from headlight.lab.training.recipes import gpt, positions


@dataclass(frozen=True, kw_only=True)
class RepeatsConfig(positions.PositionsConfig):
    """The settings of the batches.

    ``refrains`` and ``lists`` of the ``count`` rows of a batch are no plain text. A passage that
    returns has from ``shortest`` tokens to a third of the row.

    Raises:
        ValueError: a number is out of its range.
    """

    refrains: int = 8
    lists: int = 4
    shortest: int = 6

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("refrains", "lists"):
            require(self, name, getattr(self, name) >= 0, "be at least 0")
        rule = f"be at most count ({self.count}) together with the lists ({self.lists})"
        require(self, "refrains", self.refrains + self.lists <= self.count, rule)
        rule = f"lie between 1 and a third of tokens ({self.tokens})"
        require(self, "shortest", 1 <= self.shortest <= self.tokens // 3, rule)


class RepeatsBatches(positions.PositionsBatches):
    """The batches of the recipe.

    Raises:
        CorpusError: the corpus has fewer than two rows, one to train and one to validate on.
    """

    config: RepeatsConfig

    def batch(self, step: int) -> Batch:
        """Return the rows of a step: text first, then refrains, then lists."""
        config, text = self.config, self.trained
        generator = generator_of(text.seed, step, 2)
        n_read = config.count - config.lists
        rows = text.take(step * n_read, n_read) if n_read else None
        parts = []
        if rows is not None:
            ids = torch.cat([rows.ids, rows.targets[:, -1:]], dim=1)
            for number in range(n_read - config.refrains, n_read):
                ids[number, 1:] = self._with_refrain(ids[number, 1:], generator)
            parts.append(Batch.of_rows(ids, rows.is_counted))
        if config.lists:
            parts.append(
                repeated_rows(
                    text.stream.ids,
                    count=config.lists,
                    length=text.length,
                    longest=3 * text.length // 8,
                    start_id=text.start_id,
                    generator=generator,
                )
            )
        return Batch.join(*parts)

    def _with_refrain(self, row: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Let one passage of a row of text return in it; what is pushed out at the end is lost."""
        n_tokens = len(row)

        def draw(low: int, high: int) -> int:
            return int(torch.randint(low, high + 1, (1,), generator=generator))

        size = draw(self.config.shortest, n_tokens // 3)
        first = draw(0, n_tokens - 2 * size)
        again = draw(first + size, n_tokens - size)
        passage = row[first : first + size]
        return torch.cat([row[:again], passage, row[again:]])[:n_tokens]


def _batches(material: Material[Sequence[str], RepeatsConfig]) -> RepeatsBatches:
    positions.require_room(material)
    return RepeatsBatches(material.text_rows(material.config.tokens), material.config)


RECIPE = replace(
    gpt.RECIPE,
    model=replace(gpt.CONFIG, n_layers=3, d_ff=256, vocab_size=1024),
    rows=RepeatsConfig(tokens=128, count=32),
    loop=LoopConfig(steps=2400, decay=0.3, learning_rate=3e-3),
    batches=_batches,
)
