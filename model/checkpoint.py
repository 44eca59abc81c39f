"""A model on disk: a folder with config.json, tokenizer.json, model.safetensors and CARD.md.

Nothing is pickled, so loading a stranger's folder runs none of their code. A file is written
beside its name and then moved over it, so that none is ever half written.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from headlight.model.card import ModelCard, read_card, write_card
from headlight.model.checkpoint_files import (
    CARD,
    CONFIG,
    LARGEST,
    TOKENIZER,
    WEIGHTS,
    CheckpointError,
    require_file,
    require_finished,
    require_memory,
)
from headlight.model.config import TransformerConfig
from headlight.model.meta_initialisation import skeleton, undrawn
from headlight.model.sites import Site
from headlight.model.tokenizer import Tokenizer, read_tokenizer
from headlight.model.transformer import Transformer

ZOO = Path(__file__).parent / "zoo"

_DTYPES = ("F16", "BF16", "F32")
_MOST_BYTES_PER_NUMBER = 8  # so that a file of float64 is refused for its dtype
# What a header needs: its own metadata, and for every tensor a name, a dtype, a shape and a place.
_HEAD_BYTES, _HEAD_BYTES_PER_TENSOR = 2**16, 2**10


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
    """Read what a folder says of its model; of its weights, no more than names and shapes.

    Raises:
        CheckpointError: a file is missing, damaged, or contradicts another, or the model is larger
            than this machine.
    """
    folder = Path(folder)
    require_finished(folder)
    for name, most_bytes in LARGEST.items():
        require_file(folder, name, most_bytes)
    config = _read_config(folder)
    try:
        card = read_card(folder / CARD)
    except ValueError as error:
        raise CheckpointError(str(error)) from error
    bare = skeleton(config)
    _require_weights(folder, bare)
    return Description(
        id=folder.name,
        config=config,
        card=card,
        revision=_revision(folder),
        n_parameters=sum(parameter.numel() for parameter in bare.parameters()),
        sites=bare.sites,
    )


def find_model(model: Path | str) -> Path:
    """The folder of a model that ships, if that is its name, or else the folder itself.

    A name counts before a folder of that name: write ``./stories`` for the folder.

    Raises:
        CheckpointError: there is neither.
    """
    shipped = sorted(path.name for path in ZOO.iterdir() if (path / CONFIG).is_file())
    if model in shipped:
        return ZOO / model
    if not Path(model).is_dir():
        raise CheckpointError(
            f"there is no model or folder {str(model)!r}; "
            f"the models that ship are {', '.join(shipped)}"
        )
    return Path(model)


def load(
    model: Path | str,
    *,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> Checkpoint:
    """Load a model in eval mode: ``load("stories")``, ``load("runs/mine")``.

    Args:
        model: the name of a model that ships, or a folder with the four files, as `find_model`
            looks for it.
        device: where to put the weights.
        dtype: float32 or bfloat16, whatever the file holds.

    Raises:
        CheckpointError: there is no such model, a file is missing or damaged, a tensor has another
            name, shape or dtype than the config asks for, or a weight is not finite.
    """
    folder = find_model(model)
    description = describe(folder)
    tokenizer = _read_tokenizer(folder, description.config)
    transformer = undrawn(description.config)
    transformer.load_weights(_read_weights(folder / WEIGHTS, transformer.weights()))
    transformer.to(device=device, dtype=dtype).eval()
    return Checkpoint(model=transformer, tokenizer=tokenizer, description=description)


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
        data = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_with_each_key_once)
        if not isinstance(data, dict):
            raise ValueError("a config is a JSON object")
        return TransformerConfig.from_dict(data)
    except RecursionError as error:
        raise CheckpointError(f"{path}: it is nested too deeply for a config") from error
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: {error}") from error


def _with_each_key_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object; which of two equal keys counts is nothing to guess about."""
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"{key} is said twice")
        found[key] = value
    return found


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
    tokenizer.keep_no_words()
    return tokenizer


def _require_weights(folder: Path, skeleton: Transformer) -> None:
    """Refuse weights of other names, shapes or dtypes, by the head of their file alone.

    Raises:
        CheckpointError: so they are, or there are more than this machine holds.
    """
    expected = skeleton.weights()
    n_numbers = sum(tensor.numel() for tensor in (*skeleton.parameters(), *skeleton.buffers()))
    require_memory(folder / CONFIG, n_numbers)
    head_bytes = _HEAD_BYTES + _HEAD_BYTES_PER_TENSOR * len(expected)
    path = require_file(folder, WEIGHTS, head_bytes + _MOST_BYTES_PER_NUMBER * n_numbers)
    _require_short_head(path, head_bytes)
    try:
        with safe_open(path, framework="pt") as file:
            _require_same_names(path, set(file.keys()), set(expected))
            for name, tensor in expected.items():
                found = file.get_slice(name)
                _require_same_shape(path, name, tuple(found.get_shape()), tuple(tensor.shape))
                if found.get_dtype() not in _DTYPES:
                    raise CheckpointError(
                        f"{path}: {name} holds {found.get_dtype()}, expected {', '.join(_DTYPES)}"
                    )
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path}: {error}") from error


def _require_short_head(path: Path, most_bytes: int) -> None:
    """Refuse a head of lengths or names that no model has, before a parser makes objects of it."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
    if length > most_bytes:
        raise CheckpointError(
            f"{path}: a header of {length:,} bytes is more than the {most_bytes:,} that it can need"
        )


def _read_weights(path: Path, names: Iterable[str]) -> dict[str, Tensor]:
    try:
        with safe_open(path, framework="pt") as file:
            weights = {name: file.get_tensor(name).float() for name in names}
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path}: {error}") from error
    for name, tensor in weights.items():
        if not math.isfinite(tensor.abs().sum().item()):
            raise CheckpointError(f"{path}: {name} holds a weight that is not finite")
    return weights


def _require_same_shape(
    path: Path, name: str, found: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    if found != expected:
        raise CheckpointError(f"{path}: {name} has shape {found}, expected {expected}")


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
    try:
        for name in (CONFIG, TOKENIZER):
            content = (folder / name).read_bytes().replace(b"\r\n", b"\n")
            digest.update(hashlib.sha256(content).digest())
        with (folder / WEIGHTS).open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    except OSError as error:
        raise CheckpointError(f"{error.filename}: {error.strerror}") from error
    return digest.hexdigest()[:16]
