"""Gradient checkpointing: recompute the layers in the backward pass in place of keeping them.

A layer keeps its input only, and the backward pass runs it again (Chen et al. 2016,
https://arxiv.org/abs/1604.06174). A step takes about a third longer and needs the memory of one
layer's activations instead of all. `torch.utils.checkpoint` does the work and restores the random
numbers of dropout, so gradients are those of a run without it.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from headlight.model.transformer import Stack, Transformer


def recompute_layers(model: Transformer) -> None:
    """Let every layer of a model be recomputed when gradients are computed, from now on."""
    for stack in model.modules():
        if isinstance(stack, Stack):
            for layer in stack.layers:
                _recompute(layer)


def _recompute(layer: nn.Module) -> None:
    forward = layer.forward

    @wraps(forward)
    def run(*inputs: Any, **options: Any) -> Any:
        if not torch.is_grad_enabled():
            return forward(*inputs, **options)
        return checkpoint(forward, *inputs, use_reentrant=False, **options)

    layer.forward = run
