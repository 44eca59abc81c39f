"""The recipe `gpt`: a plain decoder on plain text, with no stages, experts or edits.

    headlight train gpt --corpus books/ --out runs/mine
    headlight train gpt --corpus books/ --out runs/large --set model.d_model=512 \\
        --set model.n_layers=8

The architecture is GPT's with rotary positions; the batches are rows of text (`positions`).
"""

from __future__ import annotations

from dataclasses import replace

from headlight.lab.training.config import LoopConfig
from headlight.lab.training.recipes import positions
from headlight.model.config import TransformerConfig

CONFIG = TransformerConfig(
    n_layers=4,
    n_heads=4,
    d_model=128,
    d_ff=512,
    vocab_size=4096,
    max_tokens=256,
    positional="rotary",
)

RECIPE = replace(
    positions.RECIPE,
    model=CONFIG,
    rows=positions.PositionsConfig(tokens=256, count=16),
    loop=LoopConfig(steps=2000, decay=0.4, best=True),
    figures="headlight.lab.evaluation.figures:GptFigures",
)
