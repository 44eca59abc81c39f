"""Everything a run needs to go on where it stopped, in one safetensors file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from headlight.model.checkpoint import CheckpointError, write_whole
from headlight.model.transformer import Transformer

STATE = "training.safetensors"


def save_state(
    path: Path,
    model: Transformer,
    optimizers: Sequence[torch.optim.Optimizer],
    progress: Mapping[str, Any],
) -> None:
    """Write weights, optimizer moments and progress; the file before stays until this is whole."""
    tensors = {f"model.{name}": tensor.contiguous() for name, tensor in model.weights().items()}
    for key, tensor in _moments(model, optimizers):
        tensors[key] = tensor.contiguous()
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"progress": json.dumps(progress)}
    write_whole(path, lambda partial: save_file(tensors, partial, metadata))


def load_state(
    path: Path, model: Transformer, optimizers: Sequence[torch.optim.Optimizer]
) -> dict[str, Any]:
    """Put weights and moments back; return the progress.

    Raises:
        CheckpointError: the file is missing, damaged, or from a model of another shape.
    """
    try:
        with safe_open(path, framework="pt") as file:
            progress = json.loads((file.metadata() or {})["progress"])
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        weights = {
            key.removeprefix("model."): tensor
            for key, tensor in tensors.items()
            if key.startswith("model.")
        }
        model.load_weights(weights)
    except (OSError, SafetensorError, KeyError, RuntimeError, ValueError) as error:
        raise CheckpointError(f"{path} does not continue this run: {error}") from error
    names = {parameter: name for name, parameter in model.named_parameters()}
    for number, optimizer in enumerate(optimizers):
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                prefix = f"optimizer.{number}.{names[parameter]}."
                optimizer.state[parameter] = {
                    key.removeprefix(prefix): _placed(tensor, parameter)
                    for key, tensor in tensors.items()
                    if key.startswith(prefix)
                }
    return dict(progress)


def _moments(
    model: Transformer, optimizers: Sequence[torch.optim.Optimizer]
) -> list[tuple[str, Tensor]]:
    names = {parameter: name for name, parameter in model.named_parameters()}
    return [
        (f"optimizer.{number}.{names[parameter]}.{key}", value)
        for number, optimizer in enumerate(optimizers)
        for parameter, state in optimizer.state.items()
        for key, value in state.items()
    ]


def _placed(tensor: Tensor, parameter: Tensor) -> Tensor:
    return tensor.to(parameter.device) if tensor.ndim else tensor
