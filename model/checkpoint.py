"""A model on disk: a folder with config.json, tokenizer.json, model.safetensors and CARD.md.

Nothing is pickled, so loading a stranger's folder runs none of their code. A file is written
beside its name and then moved over it, so that none is ever half written.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from model.card import ModelCard, read_card, write_card
from model.config import TransformerConfig
from model.sites import Site
from model.skeleton import skeleton, undrawn
from model.tokenizer import Tokenizer, read_tokenizer
from model.transformer import Transformer

CONFIG, TOKENIZER, WEIGHTS, CARD = "config.json", "tokenizer.json", "model.safetensors", "CARD.md"
ZOO = Path(__file__).parent / "zoo"


class CheckpointError(ValueError):
    """A folder that holds no sound model; the message names the file and what is wrong."""


@dataclass(frozen=True, kw_only=True)
class Description:
    """What a folder says of its model, read without loading the weights."""

    id: str
    config: TransformerConfig
    card: ModelCard
    revision: str
    n_parameters: int
    sites: tuple[Site, ...]


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A model ready to run, with its tokenizer and what its folder says of it."""

    model: Transformer
    tokenizer: Tokenizer
    description: Description

    @property
    def id(self) -> str:
        """The name of the model: that of its folder."""
        return self.description.id

    @property
    def config(self) -> TransformerConfig:
        """The architecture."""
        return self.description.config

    @property
    def device(self) -> torch.device:
        """Where the weights lie."""
        return self.model.vectors.device

    @property
    def precision(self) -> str:
        """What it computes in: float32 or bfloat16."""
        return str(self.model.vectors.dtype).removeprefix("torch.")


def describe(folder: Path | str) -> Description:
    """Read what a folder says of its model, without its weights.

    Raises:
        CheckpointError: a file is missing, damaged, or contradicts another.
    """
    folder = Path(folder)
    config = _read_config(folder)
    try:
        card = read_card(folder / CARD)
    except ValueError as error:
        raise CheckpointError(str(error)) from error
    bare = skeleton(config)
    return Description(
        id=folder.name,
        config=config,
        card=card,
        revision=_revision(folder),
        n_parameters=sum(parameter.numel() for parameter in bare.parameters()),
        sites=bare.sites,
    )


def load(
    folder: Path | str,
    *,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> Checkpoint:
    """Load a model in eval mode.

    Args:
        folder: the folder with the four files.
        device: where to put the weights.
        dtype: float32 or bfloat16, whatever the file holds.

    Raises:
        CheckpointError: a file is missing or damaged, a tensor has another name, shape or dtype
            than the config asks for, or a weight is not finite.
    """
    folder = Path(folder)
    description = describe(folder)
    tokenizer = _read_tokenizer(folder, description.config)
    weights = _read_weights(folder / WEIGHTS, skeleton(description.config).weights())
    model = undrawn(description.config)
    model.load_weights(weights)
    model.to(device=device, dtype=dtype).eval()
    return Checkpoint(model=model, tokenizer=tokenizer, description=description)


def save(
    folder: Path,
    model: Transformer,
    tokenizer: Tokenizer,
    card: ModelCard,
    *,
    dtype: torch.dtype = torch.float16,
) -> None:
    """Write the four files; whatever was there stays whole until its successor is.

    Args:
        folder: made if it is missing; its name becomes the model's id.
        model: the model, on any device.
        tokenizer: the tokenizer it was trained with.
        card: the card to write beside it.
        dtype: of the weights in the file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    weights = {
        name: tensor.detach().to("cpu", dtype).contiguous()
        for name, tensor in model.weights().items()
    }
    config = json.dumps(model.config.to_dict(), indent=2) + "\n"
    write_whole(folder / CONFIG, lambda path: path.write_text(config, encoding="utf-8"))
    write_whole(
        folder / TOKENIZER, lambda path: path.write_text(tokenizer.to_json(), encoding="utf-8")
    )
    write_whole(folder / CARD, lambda path: write_card(path, card))
    write_whole(folder / WEIGHTS, lambda path: save_file(weights, path))


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file beside its name, then move it there: readers see the old one or the new."""
    partial = path.with_name(f".{path.name}.partial")
    write(partial)
    with partial.open("rb+") as written:
        os.fsync(written.fileno())
    partial.chmod(0o644)  # safetensors would keep the file to its owner
    partial.replace(path)


def _read_config(folder: Path) -> TransformerConfig:
    path = folder / CONFIG
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(data, dict):
            raise ValueError("a config is a JSON object")
        return TransformerConfig.from_dict(data)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: {error}") from error


def _read_tokenizer(folder: Path, config: TransformerConfig) -> Tokenizer:
    path = folder / TOKENIZER
    try:
        tokenizer = read_tokenizer(path)
    except ValueError as error:
        raise CheckpointError(str(error)) from error
    if tokenizer.vocab_size != config.vocab_size:
        raise CheckpointError(
            f"{path} has {tokenizer.vocab_size} tokens, but {CONFIG} says {config.vocab_size}"
        )
    return tokenizer


def _read_weights(path: Path, expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    try:
        with safe_open(path, framework="pt") as file:
            _require_same_names(path, set(file.keys()), set(expected))
            for name, model_tensor in expected.items():
                shape = tuple(file.get_slice(name).get_shape())
                if shape != tuple(model_tensor.shape):
                    raise CheckpointError(
                        f"{path}: {name} has shape {shape}, expected {tuple(model_tensor.shape)}"
                    )
            weights = {name: file.get_tensor(name) for name in expected}
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path}: {error}") from error
    for name, tensor in weights.items():
        if tensor.dtype not in (torch.float16, torch.bfloat16, torch.float32):
            raise CheckpointError(f"{path}: {name} holds {tensor.dtype}, expected floats")
        if not math.isfinite(tensor.float().abs().sum().item()):
            raise CheckpointError(f"{path}: {name} holds a weight that is not finite")
    return {name: tensor.float() for name, tensor in weights.items()}


def _require_same_names(path: Path, found: set[str], expected: set[str]) -> None:
    if missing := sorted(expected - found):
        raise CheckpointError(f"{path}: {missing[0]} is missing ({len(missing)} in all)")
    if surplus := sorted(found - expected):
        raise CheckpointError(f"{path}: {surplus[0]} is unknown ({len(surplus)} in all)")


def _revision(folder: Path) -> str:
    """The first 16 hexadecimal digits of a SHA-256 over everything that decides the numbers.

    It does not depend on how a checkout ends its lines.
    """
    digest = hashlib.sha256()
    for name in (CONFIG, TOKENIZER, WEIGHTS):
        try:
            content = (folder / name).read_bytes()
        except OSError as error:
            raise CheckpointError(f"{folder / name}: {error.strerror}") from error
        if name != WEIGHTS:
            content = content.replace(b"\r\n", b"\n")
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()[:16]
