"""The recipe `distill`: a small dense decoder that learns from the text and from a --teacher.

    headlight train distill --teacher stories --corpus train.txt --out runs/stories-small

The loss mixes the cross-entropy of the text with T² · KL(teacher ‖ student) of the next-token
distributions (Hinton et al. 2015, https://arxiv.org/abs/1503.02531). ``loop.teacher_weight`` is the
share of the latter and ``loop.temperature`` is T. With ``--set loop.teacher_weight=0`` the same
student reads the same rows in the same order without the teacher.
"""

from __future__ import annotations

from dataclasses import replace

from headlight.lab.training.config import LoopConfig
from headlight.lab.training.recipes import positions
from headlight.model.config import TransformerConfig

CONFIG = TransformerConfig(
    n_layers=4, n_heads=4, d_model=96, d_ff=384, vocab_size=4096, max_tokens=256
)

RECIPE = replace(
    positions.RECIPE,
    model=CONFIG,
    rows=positions.PositionsConfig(tokens=256, count=8),
    loop=LoopConfig(steps=1500, decay=0.5, teacher_weight=0.9),
    figures="headlight.lab.evaluation.figures:DistillFigures",
    needs_teacher=True,
)
