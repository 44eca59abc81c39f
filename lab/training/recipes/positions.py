"""The recipe `positions`: small decoders that differ only in their positional encoding.

    headlight train positions --corpus train.txt --out runs/positions-sinusoidal
    headlight train positions --corpus train.txt --out runs/positions-learned \\
        --set model.positional=learned --set model.max_tokens=128

They share the tokenizer, the rows and their order, and the seed, so any difference between two
of them comes from the encoding. They train on rows of 128 tokens; all but the one with learned
positions accept twice as many, to show which encoding extrapolates beyond the trained length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from headlight.lab.training.batches import Batch, Material, TextRows
from headlight.lab.training.config import LoopConfig, Recipe, require
from headlight.model.config import TransformerConfig
from headlight.model.corpus import CorpusError, lines, read_documents

CONFIG = TransformerConfig(
    n_layers=2, n_heads=4, d_model=128, d_ff=512, vocab_size=2048, max_tokens=256
)


@dataclass(frozen=True, kw_only=True)
class PositionsConfig:
    """The settings of the batches.

    A batch has ``count`` rows of ``tokens`` tokens, start token included. The last ``held_out``
    rows are for validation.

    Raises:
        ValueError: a number is out of its range.
    """

    tokens: int = 128
    count: int = 32
    held_out: int = 64

    def __post_init__(self) -> None:
        for name, least in (("tokens", 2), ("count", 1), ("held_out", 1)):
            require(self, name, getattr(self, name) >= least, f"be at least {least}")


class PositionsBatches:
    """The batches of the recipe: rows of text, the same for every encoding.

    Raises:
        CorpusError: the corpus has fewer than two rows, one to train and one to validate on.
    """

    def __init__(self, text: TextRows, config: PositionsConfig) -> None:
        trained, self.held_out = text.hold_out(config.held_out)
        # Rows may overlap; drop the training rows that reach into a held-out row.
        end = int(self.held_out.starts[0])
        is_apart = trained.starts + text.length <= end
        if not is_apart.any():
            raise CorpusError(
                f"the corpus has {len(text.stream.ids)} tokens, of which {end} are left to train "
                f"on; a row takes {text.length}"
            )
        self.trained = replace(trained, starts=trained.starts[is_apart])
        self.config = config

    def batch(self, step: int) -> Batch:
        """Return the next rows of the epoch."""
        return self.trained.take(step * self.config.count, self.config.count)

    def validation(self) -> list[Batch]:
        """Return the held-out rows."""
        return self.held_out.once()


def _batches(material: Material[Sequence[str], PositionsConfig]) -> PositionsBatches:
    require_room(material)
    # The input is a row of n + 1 tokens, start token included, without its last: n tokens.
    return PositionsBatches(material.text_rows(material.config.tokens), material.config)


def require_room(material: Material[Any, Any]) -> None:
    """Raise ValueError if the rows are longer than what the model reads."""
    tokens = material.config.tokens
    if tokens > material.max_tokens:
        raise ValueError(f"rows.tokens ({tokens}) exceeds max_tokens ({material.max_tokens})")


RECIPE = Recipe(
    model=CONFIG,
    rows=PositionsConfig(),
    loop=LoopConfig(steps=800, decay=0.6),
    read=read_documents,
    texts=lines,
    batches=_batches,
    figures="headlight.lab.evaluation.figures:PositionsFigures",
)
