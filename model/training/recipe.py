"""What makes a recipe: an architecture, a way to read a corpus, and the batches made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headlight.model.config import TransformerConfig
from headlight.model.tokenizer import Tokenizer
from headlight.model.training.loop import Batches
from headlight.model.training.loop_config import LoopConfig


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How to train one kind of model.

    Args:
        model: its architecture.
        rows: what decides its rows; a frozen dataclass.
        loop: how it learns.
        read: reads the corpus from files.
        texts: the corpus as texts for the tokenizer to learn from.
        batches: makes the batches from the corpus, the tokenizer, the architecture, the rows'
            settings and the seed.
        has_mask: whether the vocabulary has a token for a masked piece.
    """

    model: TransformerConfig
    rows: Any
    loop: LoopConfig
    read: Callable[[Sequence[Path]], Any]
    texts: Callable[[Any], Iterable[str]]
    batches: Callable[[Any, Tokenizer, TransformerConfig, Any, int], Batches]
    has_mask: bool = False
