"""Checkpoints: a folder with config.json, tokenizer.json, model.safetensors and CARD.md.

Nothing is pickled, so loading an untrusted folder runs none of its code. Every file is written
under a temporary name and renamed, so that no reader sees a partial file.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from headlight.model.checkpoint.card import ModelCard, read_card, write_card
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.checkpoint.difference import Difference
from headlight.model.checkpoint.files import (
    CARD,
    CONFIG,
    MAX_BYTES,
    TOKENIZER,
    WEIGHTS,
    CheckpointError,
    added_models_dir,
    open_file,
    open_tensors,
    read_file,
    require_file,
    require_finished,
    require_memory,
    unique_keys,
)
from headlight.model.checkpoint.profile import read_profile
from headlight.model.checkpoint.run_curves import read_curves
from headlight.model.checkpoint.shared_tokenizer import shared_tokenizer
from headlight.model.checkpoint.steps import AT, id_of, steps_in, whole_of
from headlight.model.config import TransformerConfig
from headlight.model.description import Description
from headlight.model.extras import warn_if_newer
from headlight.model.foreign import is_foreign, load_foreign, load_live
from headlight.model.foreign.folder import Progress, no_progress
from headlight.model.hooks import SkipInitialisation
from headlight.model.positions import BASE, frequencies
from headlight.model.quantization.affine import Quantization, UnknownPart, matrices_of
from headlight.model.quantization.storage import restored_weights, stored_layout, stored_weights
from headlight.model.tokenizer import Tokenizer, read_normalization, read_tokenizer
from headlight.model.trace import AttentionFacts, Rotation
from headlight.model.transformer import Transformer

if TYPE_CHECKING:
    from headlight.model.foreign.model import ForeignModel

LONGEST_TEXT = 2**17
"""The tokens that a model reads whose positions have no end."""

ZOO = Path(__file__).parents[1] / "zoo"

KEPT_WITH_THE_CODE = ("stories", "positions-sinusoidal")
"""The models of the distribution headlight-viz; the other ones of the zoo are headlight-viz-zoo."""

_DTYPES = ("F16", "BF16", "F32")
_MAX_BYTES_PER_NUMBER = 8  # a float64 file then fails for its dtype, not for its size
# The header's own metadata; and a name, dtype, shape and offsets for every tensor.
_HEADER_BYTES, _HEADER_BYTES_PER_TENSOR = 2**16, 2**10


def describe(folder: Path | str) -> Description:
    """Read a checkpoint's metadata, and check the names, shapes and dtypes of its weights.

    Raises:
        UnfinishedRun: the folder is that of a training run without a model yet.
        CheckpointError: a file is missing or damaged or contradicts another, or the model needs
            more memory than this machine has.
    """
    folder = Path(folder)
    require_finished(folder)
    require_file(folder, CONFIG, MAX_BYTES[CONFIG])
    config, quantization, difference = _read_config(folder)
    for name, max_bytes in MAX_BYTES.items():
        if name != TOKENIZER or tokenizer_file(folder) == folder / name:
            require_file(folder, name, max_bytes)
    base = None if difference is None else _read_base(folder, difference)
    try:
        card = read_card(folder / CARD)
    except ValueError as error:
        raise CheckpointError(str(error)) from error
    bare = meta_model(config)
    _require_weights(folder, bare, quantization, difference, base)
    revision = _revision(folder)
    return Description(
        id=id_of(folder),
        config=config,
        card=card,
        revision=revision,
        n_parameters=sum(parameter.numel() for parameter in bare.parameters()),
        sites=bare.sites,
        attentions=tuple(_attentions(config)),
        rotation=_rotation(config) if config.positional == "rotary" else None,
        features=_FEATURES[config.kind],
        trained_tokens=_trained_tokens(config, card),
        longest_text=config.max_tokens if config.positional == "learned" else LONGEST_TEXT,
        normalization=read_normalization(tokenizer_file(folder)),
        matrices=tuple(matrices_of(bare)),
        quantization=quantization,
        heads=read_profile(folder, revision),
        curves=read_curves(folder),
    )


def _trained_tokens(config: TransformerConfig, card: ModelCard) -> int:
    """Return the length of the training texts; ``max_tokens`` if the card does not state it."""
    stated = card.metrics.get("trained_tokens")
    if type(stated) is int and 0 < stated <= config.max_tokens:
        return stated
    return config.max_tokens


_FEATURES = {
    "decoder": frozenset({"generate", "logit_lens", "head_outputs"}),
    "encoder": frozenset({"fill", "logit_lens", "head_outputs"}),
    "encoder-decoder": frozenset({"translate", "logit_lens", "head_outputs"}),
}


def _attentions(config: TransformerConfig) -> Iterator[AttentionFacts]:
    """Yield the terms of each softmax, the encoder's first."""
    kinds = [("encoder", "self_attention")] if config.has_encoder else []
    kinds += [("decoder", "self_attention")] if config.has_decoder else []
    kinds += [("decoder", "cross_attention")] if config.kind == "encoder-decoder" else []
    for stack, kind in kinds:
        is_self = kind == "self_attention"
        for layer in range(config.n_layers):
            yield AttentionFacts(
                path=f"{stack}.layers.{layer}.{kind}",
                is_causal=is_self and stack == "decoder",
                n_heads=config.n_heads,
                n_groups=config.n_groups,
                scale=config.d_head**-0.5,
                has_bias=is_self and config.positional == "alibi",
            )


def _rotation(config: TransformerConfig) -> Rotation:
    """Return the rotation of neighbouring dimensions (`positions.rotate`)."""
    return Rotation(
        first=tuple(range(0, config.d_head, 2)),
        second=tuple(range(1, config.d_head, 2)),
        speeds=tuple(frequencies(config.d_head).tolist()),
        base=BASE,
    )


def find_model(model: Path | str, models_dir: Path | None = None) -> Path:
    """Return the folder of a model, by its name or as it is; ``name@512`` is its state at step 512.

    A name takes precedence over a folder of that name; write ``./stories`` for the folder.

    Args:
        model: a name or a folder.
        models_dir: of the models that were added; None: `added_models_dir`.

    Raises:
        CheckpointError: there is neither a model nor a folder of that name.
    """
    if isinstance(model, str) and AT in model and not Path(model).is_dir():
        whole, _, step = model.rpartition(AT)
        folder = find_model(whole, models_dir)
        if step.isdecimal() and (found := steps_in(folder).get(int(step))):
            return found
        steps = ", ".join(map(str, steps_in(folder))) or "none"
        raise CheckpointError(f"the model {whole!r} has no step {step!r}; its steps are {steps}")
    shipped = _names_in(ZOO)
    if model in shipped:
        return ZOO / model
    models_dir = models_dir or added_models_dir()
    added = _names_in(models_dir)
    if model in added:
        return models_dir / model
    if not Path(model).is_dir():
        raise CheckpointError(
            f"there is no model or folder {str(model)!r}; "
            f"the models are {', '.join([*shipped, *added])}{way_to_the_zoo()}"
        )
    return Path(model)


def way_to_the_zoo() -> str:
    """Return how the rest of the models that ship is installed; empty: they are there."""
    is_alone = set(_names_in(ZOO)) == set(KEPT_WITH_THE_CODE)
    return "; more come with: pip install headlight-viz-zoo" if is_alone else ""


def _names_in(directory: Path) -> list[str]:
    if not directory.is_dir():
        return []
    names = (path.name for path in directory.iterdir() if (path / CONFIG).is_file())
    return sorted(name for name in names if not name.startswith((".", "_")))


def load(
    model: Path | str | nn.Module,
    tokenizer: Any = None,
    *,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
    on_progress: Progress = no_progress,
) -> Checkpoint | ForeignModel:
    """Load a model in eval mode: ``load("stories")``, ``load("runs/mine")``, ``load("./gpt2")``.

    Args:
        model: the name of a model that ships or that `headlight add` added, a folder with the four
            files, or the folder of a checkpoint of Transformers (`foreign`); see `find_model`. Or a
            model of Transformers that is in memory; see `load_live`.
        tokenizer: of a model in memory; None: it is asked by ``ids``.
        device: of the weights.
        dtype: float32 or bfloat16; independent of the dtype in the file.
        on_progress: called with the share that is done, from 0 to 1, of a checkpoint of
            Transformers.

    Raises:
        CheckpointError: there is no such model, a file is missing or damaged, a tensor's name,
            shape or dtype contradicts the config, or a weight is not finite.
    """
    warn_if_newer("torch")
    if not isinstance(model, str | Path):
        return load_live(model, tokenizer)
    folder = find_model(model)
    if is_foreign(folder):
        return load_foreign(folder, device=device, dtype=dtype, on_progress=on_progress)
    return load_checkpoint(folder, device=device, dtype=dtype)


def load_checkpoint(
    folder: Path, *, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
) -> Checkpoint:
    """As `load`, of a folder with the four files.

    Raises:
        CheckpointError: as `load`.
    """
    description = describe(folder)
    config = description.config
    assert isinstance(config, TransformerConfig)
    tokenizer = _read_tokenizer(folder, config)
    transformer = uninitialised_model(config)
    weights = _read_weights(folder, transformer.weights(), description.quantization)
    transformer.load_weights(weights)
    transformer.to(device=device, dtype=dtype).eval()
    return Checkpoint(model=transformer, tokenizer=tokenizer, description=description)


def save(
    folder: Path,
    model: Transformer,
    tokenizer: Tokenizer,
    card: ModelCard,
    *,
    dtype: torch.dtype = torch.float16,
    quantization: Quantization | None = None,
    difference: Difference | None = None,
) -> None:
    """Write the four files, replacing each one atomically; of a difference there is no tokenizer.

    Args:
        folder: created if it is missing; its name is the model's id.
        model: on any device.
        tokenizer: the one the model was trained with.
        card: the model card.
        dtype: of the weights in the file that are not quantized.
        quantization: of the matrices; None: none is quantized.
        difference: store only the difference from this model, without `quantization`.

    Raises:
        CheckpointError: the base of the difference is not there, or has another revision.
        UnknownPart: a part of the quantization matches no matrix.
        ValueError: a weight to quantize is not finite, or the base has other weights.
    """
    stated = model.config.to_dict()
    if difference is not None:
        base, _ = _read_base(folder, difference)
        weights = difference.stored(model.weights(), load_checkpoint(base).model.weights())
        stated["difference"] = difference.to_dict()
    else:
        weights = stored_weights(model.weights(), quantization, dtype)
    if quantization is not None:
        stated["quantization"] = quantization.to_dict()
    config = json.dumps(stated, indent=2) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / CONFIG, lambda path: path.write_text(config, encoding="utf-8"))
    if difference is None:
        write_atomically(
            folder / TOKENIZER, lambda path: path.write_text(tokenizer.to_json(), encoding="utf-8")
        )
    write_atomically(folder / CARD, lambda path: write_card(path, card))
    write_atomically(folder / WEIGHTS, lambda path: save_file(weights, path))


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file under a temporary name and rename it: readers see the old file or the new."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        write(partial)
        with partial.open("rb+") as written:
            os.fsync(written.fileno())
        partial.chmod(0o644)  # safetensors makes the file readable only by its owner
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def tokenizer_file(folder: Path) -> Path:
    """Return the tokenizer of a folder: its own, a shared one, or that of the whole or the base.

    Raises:
        CheckpointError: the config is damaged, or the model that has the tokenizer is not there.
    """
    if not (folder / TOKENIZER).exists() and (folder / CONFIG).exists():
        *_, difference = _read_config(folder)
        if difference is not None:
            return shared_tokenizer(difference.folder(folder, ZOO), ZOO)
        if (whole := whole_of(folder)) is not None:
            return shared_tokenizer(whole, ZOO)
    return shared_tokenizer(folder, ZOO)


def _read_base(folder: Path, difference: Difference) -> tuple[Path, TransformerConfig]:
    """Return the folder and the config of the base of a difference, once its revision is checked.

    Raises:
        CheckpointError: it is not there, has another revision, or is a difference itself.
    """
    base = difference.folder(folder, ZOO)
    config, quantization, earlier = _read_config(base)
    if earlier is not None or quantization is not None:
        raise CheckpointError(
            f"{folder} is a difference from {base}, which is quantized or a difference itself"
        )
    difference.require(folder, base, _revision(base))
    return base, config


def _read_config(folder: Path) -> tuple[TransformerConfig, Quantization | None, Difference | None]:
    path = folder / CONFIG
    try:
        content = read_file(folder, CONFIG, MAX_BYTES[CONFIG])
        data = json.loads(content, object_pairs_hook=unique_keys)
        if not isinstance(data, dict):
            raise ValueError("a config must be a JSON object")
        quantization = data.pop("quantization", None)
        if quantization is not None:
            quantization = Quantization.from_dict(quantization)
        difference = data.pop("difference", None)
        if difference is not None:
            difference = Difference.from_dict(difference)
            if quantization is not None:
                raise ValueError("difference and quantization exclude each other")
        return TransformerConfig.from_dict(data), quantization, difference
    except RecursionError as error:
        raise CheckpointError(f"{path}: nests too deeply") from error
    except json.JSONDecodeError as error:
        raise CheckpointError(f"{path} is not JSON: {error}") from error
    except CheckpointError:
        raise
    except ValueError as error:
        why = re.sub(r"(\S{60})\S{20,}", r"\1…", str(error))  # a value may be of any length
        raise CheckpointError(f"{path}: {why}") from error


def _read_tokenizer(folder: Path, config: TransformerConfig) -> Tokenizer:
    path = tokenizer_file(folder)
    try:
        tokenizer = read_tokenizer(path)
    except ValueError as error:
        raise CheckpointError(str(error)) from error
    if tokenizer.vocab_size != config.vocab_size:
        raise CheckpointError(
            f"{path} has {tokenizer.vocab_size} tokens, but {CONFIG} says {config.vocab_size}"
        )
    tokenizer.disable_cache()
    return tokenizer


@lru_cache(16)
def meta_model(config: TransformerConfig) -> Transformer:
    """Return the model on PyTorch's meta device: names and shapes without memory.

    Models of equal configs share one; a third of a description's time goes into making it.
    """
    with torch.device("meta"), SkipInitialisation():
        return Transformer(config)


def uninitialised_model(config: TransformerConfig) -> Transformer:
    """Return the model with uninitialised weights, to be loaded next."""
    with SkipInitialisation():
        return Transformer(config)


def _require_weights(
    folder: Path,
    meta: Transformer,
    quantization: Quantization | None,
    difference: Difference | None = None,
    base: tuple[Path, TransformerConfig] | None = None,
) -> None:
    """Check the names, shapes and dtypes of the weights by the header of their file.

    Raises:
        CheckpointError: one differs from the config's, or the weights exceed the memory.
    """
    try:
        if difference is not None and base is not None:
            expected = difference.layout(meta.weights(), meta_model(base[1]).weights())
        else:
            expected = stored_layout(meta.weights(), quantization)
    except UnknownPart as error:
        raise CheckpointError(f"{folder / CONFIG}: {error}") from error
    n_numbers = sum(tensor.numel() for tensor in (*meta.parameters(), *meta.buffers()))
    require_memory(folder / CONFIG, n_numbers)
    header_bytes = _HEADER_BYTES + _HEADER_BYTES_PER_TENSOR * len(expected)
    path, max_bytes = folder / WEIGHTS, header_bytes + _MAX_BYTES_PER_NUMBER * n_numbers
    _require_short_header(folder, header_bytes, max_bytes)
    try:
        with open_tensors(folder, WEIGHTS, max_bytes) as file:
            _require_same_names(path, set(file.keys()), set(expected))
            for name, stored in expected.items():
                entry = file.get_slice(name)
                shape, dtypes = tuple(entry.get_shape()), stored.dtypes or _DTYPES
                if shape != stored.shape:
                    raise CheckpointError(
                        f"{path}: {name} has shape {shape}, expected {stored.shape}"
                    )
                if entry.get_dtype() not in dtypes:
                    raise CheckpointError(
                        f"{path}: {name} holds {entry.get_dtype()}, expected {', '.join(dtypes)}"
                    )
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path}: {error}") from error


def _require_short_header(folder: Path, header_bytes: int, max_bytes: int) -> None:
    """Check the length of a safetensors header before it is parsed into objects."""
    with open_file(folder, WEIGHTS, max_bytes) as file:
        length = int.from_bytes(file.read(8), "little")
    if length > header_bytes:
        raise CheckpointError(
            f"{folder / WEIGHTS}: the header has {length:,} bytes; this model's may have "
            f"{header_bytes:,}"
        )


def _read_weights(
    folder: Path, shapes: Mapping[str, Tensor], quantization: Quantization | None
) -> dict[str, Tensor]:
    path = folder / WEIGHTS
    try:
        with open_tensors(folder, WEIGHTS, path.stat().st_size) as file:  # `describe` bounds it
            *_, difference = _read_config(folder)
            if difference is None:
                weights = restored_weights(file.get_tensor, shapes, quantization)
            else:
                base, config = _read_base(folder, difference)
                known = _read_weights(base, meta_model(config).weights(), None)
                weights = difference.restored(file.get_tensor, shapes, known)
    except CheckpointError:
        raise
    except (OSError, SafetensorError, ValueError) as error:
        raise CheckpointError(f"{path}: {error}") from error
    for name, tensor in weights.items():
        if not math.isfinite(tensor.abs().sum().item()):
            raise CheckpointError(f"{path}: {name} holds a weight that is not finite")
    return weights


def _require_same_names(path: Path, names: set[str], expected: set[str]) -> None:
    if missing := sorted(expected - names):
        raise CheckpointError(f"{path}: the tensor {missing[0]} is missing ({len(missing)} in all)")
    if surplus := sorted(names - expected):
        raise CheckpointError(f"{path}: the tensor {surplus[0]} is unknown ({len(surplus)} in all)")


def _revision(folder: Path) -> str:
    """Return the first 16 hexadecimal digits of a SHA-256 over config, tokenizer and weights.

    The config of a difference names the revision of its base. Line endings are normalised, because
    they depend on the settings of a Git checkout.
    """
    digest = hashlib.sha256()
    try:
        for path in (folder / CONFIG, tokenizer_file(folder)):
            content = read_file(path.parent, path.name, MAX_BYTES[path.name])
            content = content.replace(b"\r\n", b"\n")
            digest.update(hashlib.sha256(content).digest())
        with open_file(folder, WEIGHTS, (folder / WEIGHTS).stat().st_size) as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    except OSError as error:
        raise CheckpointError(f"{error.filename}: {error.strerror}") from error
    return digest.hexdigest()[:16]
