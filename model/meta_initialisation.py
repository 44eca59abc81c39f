"""A model before its weights: built without drawing numbers that nobody will read.

Drawing them takes longer than reading a file does; and where tensors have no memory, PyTorch loads
its compiler to do so, which is a second of a server's start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from headlight.model.config import TransformerConfig
from headlight.model.transformer import Transformer

_DRAWS = (Tensor.normal_, Tensor.uniform_)


class _Undrawn(TorchFunctionMode):
    """While it is entered, initialising a tensor leaves it as it is."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func in _DRAWS or getattr(func, "__module__", None) == nn.init.__name__:
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return func(*args, **kwargs)


def skeleton(config: TransformerConfig) -> Transformer:
    """The model without memory for its weights: names and shapes alone."""
    with torch.device("meta"), _Undrawn():
        return Transformer(config)


def undrawn(config: TransformerConfig) -> Transformer:
    """The model with memory for its weights, which hold whatever lay there: load them next."""
    with _Undrawn():
        return Transformer(config)
