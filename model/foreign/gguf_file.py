"""Convert a GGUF file, as llama.cpp reads them, to the folder of a checkpoint of Transformers.

The numbers are those that Transformers makes of the file's blocks, in float32. The format is at
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from headlight.model.checkpoint.files import CONFIG, CheckpointError, require_memory
from headlight.model.extras import missing
from headlight.model.foreign.folder import SINGLE, read_config
from headlight.model.foreign.loading import MissingExtra, quiet, reason, transformers_library
from headlight.model.hooks import SkipInitialisation

SUFFIX = ".gguf"


def find_gguf(source: Path) -> Path | None:
    """Return the GGUF file that a source is, or the only one of a folder without a config.

    Raises:
        CheckpointError: the folder has several.
    """
    if source.is_file() and source.suffix.lower() == SUFFIX:
        return source
    if not source.is_dir() or (source / CONFIG).exists():
        return None
    found = sorted(path for path in source.iterdir() if path.suffix.lower() == SUFFIX)
    if len(found) > 1:
        names = ", ".join(path.name for path in found[:5])
        raise CheckpointError(f"{source} holds {len(found)} GGUF files: {names}; name one of them")
    return found[0] if found else None


def convert_gguf(path: Path, folder: Path) -> str:
    """Write the config, the weights and the tokenizer of a GGUF file to a folder.

    Returns:
        The formats of its tensors, the commonest first: ``Q4_1, F32``.

    Raises:
        MissingExtra: Transformers or the package gguf is not installed.
        CheckpointError: the file is damaged, or Transformers cannot convert its architecture.
    """
    library = transformers_library()
    try:
        reader_of = import_module("gguf").GGUFReader
    except ImportError as error:
        raise MissingExtra(missing("a GGUF file", "gguf", "hf")) from error
    try:
        tensors = reader_of(path).tensors
        formats = Counter(tensor.tensor_type.name for tensor in tensors)
        n_numbers = sum(int(tensor.n_elements) for tensor in tensors)
    except Exception as error:  # whatever the bytes make of the library
        raise CheckpointError(f"{path} is no GGUF file, or is cut off; fetch it again") from error
    require_memory(path, n_numbers)
    try:
        with quiet():
            _write(path, folder, library)
    except CheckpointError:
        raise
    except Exception as error:
        raise CheckpointError(f"{path} cannot be converted: {reason(error)}") from error
    return ", ".join(name for name, _ in formats.most_common())


def _write(path: Path, folder: Path, library: Any) -> None:
    load = import_module("transformers.modeling_gguf_pytorch_utils").load_gguf_checkpoint
    members = dict(load(str(path))["config"])
    config = library.AutoConfig.for_model(members.pop("model_type"), **members)
    kind = library.MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    config.architectures = [kind.__name__]
    config.save_pretrained(folder)
    read_config(folder)  # bounds its sizes
    with torch.device("meta"), SkipInitialisation(of_meta_alone=True):
        bare = kind(config)
    weights = load(str(path), return_tensors=True, model_to_load=bare, torch_dtype=torch.float32)
    save_file(weights["tensors"], folder / SINGLE, metadata={"format": "pt"})
    alone = folder / f"tokenizer{SUFFIX}"  # the library would read others of its folder
    alone.symlink_to(path.resolve())
    try:
        tokenizer = library.AutoTokenizer.from_pretrained(str(folder), gguf_file=alone.name)
        tokenizer.save_pretrained(folder)
    finally:
        alone.unlink()
