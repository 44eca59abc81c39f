"""Read the folder of an untrusted checkpoint: its config and its weight files, as plain data.

Everything here happens before Transformers is imported, so a folder is rejected in milliseconds.
Transformers itself would open a pickle that an index file names, follow ``../``, fetch code for an
attention kernel that config.json names, draw random numbers for a missing tensor, and hang on a
million layers.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError

from headlight.model.checkpoint.files import (
    CONFIG,
    MAX_BYTES,
    TOKENIZER,
    CheckpointError,
    open_file,
    open_tensors,
    read_file,
    require_file,
    require_memory,
    unique_keys,
)

if TYPE_CHECKING:
    import torch
    from torch import Tensor

INDEX, SINGLE = "model.safetensors.index.json", "model.safetensors"
ADAPTER = "adapter_config.json"
GENERATION = "generation_config.json"
CHAT_TEMPLATE = "chat_template.jinja"
MODULES, POOLING, SENTENCES = "modules.json", "1_Pooling/config.json", "sentence_bert_config.json"
OPTIONAL = (GENERATION, CHAT_TEMPLATE, MODULES, POOLING, SENTENCES)
"""Files that not every folder has, beside those of the tokenizer."""
PAIRS = ("vocab.json", "merges.txt")
"""The files of a byte-pair tokenizer that was saved without a tokenizer.json."""

MAX_CONFIG_BYTES, MAX_INDEX_BYTES, MAX_HEADER_BYTES = 2**20, 2**25, 2**24
MAX_TENSORS = 300_000
MAX_WEIGHT_BYTES = 2**43
MAX_LAYERS, MAX_HEADS, MAX_EXPERTS = 1_000, 1_000, 10_000
MAX_EXPERTS_IN_TOTAL = 100_000
MAX_SIZE = 2**27
MAX_LIST = 100_000
MAX_TOKENIZER_FILES = 20
MAX_LABELS = 100_000
# A config may name these sizes whatever its weights hold: tables that are computed, and defaults.
LEAST_SIZE, LEAST_LENGTH, LEAST_TABLE = 2**20, 2**20, 2**23

_PIECE_BYTES = 2**25

_WEIGHT_FILE = re.compile(r"[A-Za-z0-9][\w.-]*\.safetensors")
_MODEL_TYPE = re.compile(r"[A-Za-z0-9][\w.-]{0,99}")
# Keys that choose code, not sizes; the caller chooses the code.
_STRIPPED = re.compile(
    r"_?attn_implementation(_internal)?|.*experts_implementation(_internal)?|auto_map|_commit_hash|"
    r"_?name_or_path|fusion_config|kernel_config|transformers_weights|custom_pipelines"
)
_LAYERS = re.compile(r"(n|num)_.*(layers?|blocks)|.*_layers|n_layers?|depth")
_HEADS = re.compile(r".*num_.*heads.*|n_heads?|.*_heads")
_EXPERTS = re.compile(r".*experts.*|.*num_.*expert.*")
_IDS = re.compile(r".*(_id|_ids|seed|token|index|theta|base|factor)$")
_LABELS = re.compile(r"num_labels|.*n_classes|num_classes")
_KINDS = re.compile(r".*(_types|_pattern)")
_POSITIONS = re.compile(r".*max_position.*|n_positions|n_ctx|.*length|.*(_|^)len")
_WIDTHS = re.compile(r"hidden_size|n_embd|d_model|dim|hidden_dim|embedding_size")
_DTYPES = {"F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL"}


Progress = Callable[[float], object]
"""Called with the share of the work that is done, from 0 to 1."""


def no_progress(_: float) -> None:
    """Ignore the progress."""


@dataclass(frozen=True)
class ForeignFolder:
    """The checked files of a checkpoint.

    ``config`` is config.json without the keys that choose code; ``architecture`` the name of the
    model's class; ``files`` the weight file of every tensor.
    """

    path: Path
    config: Mapping[str, Any]
    model_type: str
    architecture: str | None
    files: Mapping[str, Path]

    @property
    def weight_files(self) -> tuple[Path, ...]:
        """The weight files, each once."""
        return tuple(dict.fromkeys(self.files.values()))

    @property
    def n_numbers(self) -> int:
        """The numbers in all tensors, by the headers of the files."""
        count = 0
        for path in self.weight_files:
            with open_tensors(path.parent, path.name, MAX_WEIGHT_BYTES) as file:
                count += sum(
                    math.prod(file.get_slice(name).get_shape())
                    for name in file.keys()  # noqa: SIM118
                    if self.files.get(name) == path
                )
        return count


def is_foreign(folder: Path | str) -> bool:
    """Return True if a folder's config.json names a ``model_type``, as those of Transformers do."""
    path = Path(folder) / CONFIG
    try:
        config = json.loads(read_file(path.parent, CONFIG, MAX_CONFIG_BYTES))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(config, dict) and isinstance(config.get("model_type"), str)


def read_folder(folder: Path | str) -> ForeignFolder:
    """Check the files of a folder, and read its config.

    Raises:
        CheckpointError: a file is missing or damaged, names a file elsewhere, chooses code, or
            asks for sizes beyond any model.
    """
    folder = Path(folder)
    config = read_config(folder)
    if (folder / ADAPTER).exists():
        raise CheckpointError(
            f"{folder / ADAPTER}: an adapter names another model to load; merge it into its model "
            "and save that"
        )
    files = dict(_weight_files(folder))
    kept = {key: value for key, value in config.items() if key != "model_type"}
    names = config.get("architectures")
    architecture = names[0] if isinstance(names, list) and names else None
    if architecture is not None and not isinstance(architecture, str):
        raise CheckpointError(f"{folder / CONFIG}: architectures must be names of classes")
    foreign_folder = ForeignFolder(folder, kept, config["model_type"], architecture, files)
    _require_held(folder / CONFIG, kept, foreign_folder.n_numbers)
    for name, max_bytes in tokenizer_files(folder).items():
        require_file(folder, name, max_bytes)
    for name in OPTIONAL:
        if (folder / name).exists() or (folder / name).is_symlink():
            require_file(folder, name, MAX_CONFIG_BYTES)
    return foreign_folder


def read_json(folder: Path, name: str, max_bytes: int = MAX_CONFIG_BYTES) -> dict[str, Any]:
    """Return a JSON object of a folder.

    Raises:
        CheckpointError: it is missing, too large, not JSON, or not an object.
    """
    content = read_any_json(folder, name, max_bytes)
    if not isinstance(content, dict):
        raise CheckpointError(f"{folder / name}: must be a JSON object")
    return content


def read_any_json(folder: Path, name: str, max_bytes: int = MAX_CONFIG_BYTES) -> object:
    """Return what a JSON file of a folder holds.

    Raises:
        CheckpointError: it is missing, too large, or not JSON.
    """
    path = folder / name
    try:
        return json.loads(
            read_file(folder, name, max_bytes),
            object_pairs_hook=_object,
            parse_constant=_no_constant,
        )
    except CheckpointError:
        raise
    except RecursionError as error:
        raise CheckpointError(f"{path}: nests too deeply") from error
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: {error}") from error


def read_weights(
    folder: ForeignFolder,
    dtype: torch.dtype,
    on_progress: Progress = no_progress,
    *,
    is_finite: bool = False,
) -> dict[str, Tensor]:
    """Return every tensor of the weight files; one that has its dtype already stays memory-mapped.

    Args:
        folder: checked.
        dtype: the tensors of floating point are converted to it.
        on_progress: called with the share that is read.
        is_finite: an earlier check found every number of these files finite.

    Raises:
        CheckpointError: a file is damaged, lacks a tensor, or holds a number that is not finite.
    """
    require_memory(folder.path / CONFIG, folder.n_numbers, dtype.itemsize)
    import torch  # here, so that a folder is refused without it

    weights: dict[str, Tensor] = {}
    for path in folder.weight_files:
        try:
            with open_tensors(path.parent, path.name, MAX_WEIGHT_BYTES) as file:
                for name in file.keys():  # noqa: SIM118
                    if folder.files.get(name) == path:
                        weights[name] = file.get_tensor(name)
        except (OSError, SafetensorError) as error:
            raise CheckpointError(f"{path} is damaged or cut short: {error}") from error
    n_read, n_bytes = 0, sum(tensor.nbytes for tensor in weights.values())
    for name, tensor in weights.items():
        n_read += tensor.nbytes
        on_progress(n_read / n_bytes)
        if not tensor.is_floating_point():
            continue
        if not is_finite and not math.isfinite(tensor.sum(dtype=torch.float64).item()):
            path = folder.files[name]
            raise CheckpointError(f"{path}: {name} holds a weight that is not finite")
        weights[name] = tensor.to(dtype)
    return weights


def revision_of(folder: ForeignFolder) -> str:
    """Return the first 16 hexadecimal digits of a SHA-256 over all files that are read."""
    digest = hashlib.sha256()
    names = small_files(folder.path)
    names |= {path.name: MAX_WEIGHT_BYTES for path in folder.weight_files}
    for name, max_bytes in names.items():
        digest.update(sha256_of(folder.path, name, max_bytes))
    return digest.hexdigest()[:16]


def small_files(folder: Path) -> dict[str, int]:
    """Return the names of the files that are read, but for the weights, and the most bytes of each.

    Raises:
        CheckpointError: as `tokenizer_files`.
    """
    names = {CONFIG: MAX_CONFIG_BYTES, **tokenizer_files(folder)}
    there = (name for name in OPTIONAL if (folder / name).exists())
    return names | dict.fromkeys(there, MAX_CONFIG_BYTES)


def tokenizer_files(folder: Path) -> dict[str, int]:
    """Return the names of the files of a folder's tokenizer, and the most bytes of each.

    Raises:
        CheckpointError: there are more than any tokenizer has.
    """
    names = dict.fromkeys(sorted(path.name for path in folder.glob("*token*.json")))
    if models := sorted(path.name for path in folder.glob("*.spm")):
        names |= dict.fromkeys([*models, PAIRS[0]])
    elif is_in_pairs(folder):
        names |= dict.fromkeys(PAIRS)
    if len(names) > MAX_TOKENIZER_FILES:
        raise CheckpointError(
            f"{folder}: {len(names)} files of a tokenizer, at most {MAX_TOKENIZER_FILES}"
        )
    return dict.fromkeys(names, MAX_BYTES[TOKENIZER])


def is_in_pairs(folder: Path) -> bool:
    """Return True if a folder has `PAIRS` in place of a tokenizer.json."""
    return not (folder / TOKENIZER).exists() and all((folder / name).exists() for name in PAIRS)


def sha256_of(folder: Path, name: str, max_bytes: int) -> bytes:
    """Return the hash of a file, in large pieces: between two it waits for Python's lock.

    Raises:
        CheckpointError: it is not a regular file of at most that size.
    """
    digest = hashlib.sha256()
    with open_file(folder, name, max_bytes) as file:
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.digest()


def read_config(folder: Path) -> dict[str, Any]:
    """Return the content of a folder's config.json, whose sizes are bounded.

    Raises:
        CheckpointError: it is missing or damaged, chooses code, or asks for too much.
    """
    path = folder / CONFIG
    config = read_json(folder, CONFIG)
    model_type = config.get("model_type")
    if not isinstance(model_type, str) or not _MODEL_TYPE.fullmatch(model_type):
        raise CheckpointError(f"{path}: model_type must be the name of an architecture")
    _require_plain(path, config)
    cleaned = _stripped(config)
    _require_sizes(path, cleaned)
    if not _is_listed(model_type):
        raise CheckpointError(
            f"{path}: Transformers {version('transformers')} has no model_type {model_type!r}, "
            "and code that comes with a folder is never run"
        )
    return cleaned


def _is_listed(model_type: str) -> bool:
    """Return False if no list of Transformers names a model type; they are read, not imported."""
    package = find_spec("transformers")
    if package is None or package.origin is None:
        return True  # the import says that it is missing
    lists = [*Path(package.origin).parent.glob("models/auto/*.py")]
    return not lists or any(f'"{model_type}"' in each.read_text("utf-8") for each in lists)


def _require_plain(path: Path, config: Mapping[str, Any]) -> None:
    """Reject a kernel, which would be fetched, and quantised weights, which cannot be read."""
    for key, value in config.items():
        if isinstance(value, dict):
            _require_plain(path, value)
        if key == "id2label" and not isinstance(value, dict | None):
            raise CheckpointError(f"{path}: id2label must be an object, a label for each number")
        is_choice = "implementation" in key
        if is_choice and any("/" in name for name in map(str, _leaves(value))):
            raise CheckpointError(
                f"{path}: {key} names the kernel {value!r}, which is code from elsewhere; remove it"
            )
        if key in ("quantization_config", "compression_config") and value:
            method = value.get("quant_method") if isinstance(value, dict) else None
            raise CheckpointError(
                f"{path}: {key}: the weights are quantised ({str(method)[:40]}), and nothing here "
                "reads them on a processor; add the model that they were made of, its GGUF file, "
                "or what `model.dequantize()` saves"
            )


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        for each in value.values():
            yield from _leaves(each)
    else:
        yield value


def _stripped(config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _stripped(value) if isinstance(value, dict) else value
        for key, value in config.items()
        if not _STRIPPED.fullmatch(key)
    }


def _require_sizes(path: Path, config: Mapping[str, Any]) -> None:
    """Bound every size of a config, before anything of these sizes is built."""
    n_layers = n_experts = 1
    for key, value in config.items():
        if isinstance(value, dict):
            _require_sizes(path, value)
        if isinstance(value, list) and len(value) > MAX_LIST:
            raise CheckpointError(f"{path}: {key} has {len(value):,} values, at most {MAX_LIST:,}")
        if isinstance(value, list) and _KINDS.fullmatch(key):
            most = max(_integers(value), default=0)
            if most > MAX_LAYERS:
                raise CheckpointError(f"{path}: {key} ({most:,}) must be at most {MAX_LAYERS:,}")
        if isinstance(value, bool) or not isinstance(value, int):
            continue
        limit = MAX_SIZE
        if _LABELS.fullmatch(key):
            limit = MAX_LABELS
        if _POSITIONS.fullmatch(key):
            limit = 2**62  # bounded by `_require_held`
        if _EXPERTS.fullmatch(key):
            limit, n_experts = MAX_EXPERTS, max(n_experts, value)
        elif _LAYERS.fullmatch(key):
            limit, n_layers = MAX_LAYERS, max(n_layers, value)
        elif _HEADS.fullmatch(key):
            limit = MAX_HEADS
        elif _IDS.fullmatch(key):
            limit = 2**62
        if value > limit:
            raise CheckpointError(f"{path}: {key} ({value:,}) must be at most {limit:,}")
    if n_layers * n_experts > MAX_EXPERTS_IN_TOTAL:
        raise CheckpointError(
            f"{path}: {n_layers * n_experts:,} experts in total exceed {MAX_EXPERTS_IN_TOTAL:,}"
        )


def _require_held(path: Path, config: Mapping[str, Any], n_numbers: int) -> None:
    """Bound every size of a config, in lists and objects too, by the numbers of the weight files.

    A table of positions may be computed, so it is bounded by what every model may ask for.
    """
    widest, longest, name = 1, 0, ""
    for key, value in config.items():
        if isinstance(value, dict):
            _require_held(path, value, n_numbers)
            continue
        if _IDS.fullmatch(key):
            continue
        most = max(_integers(value), default=0)
        is_length = _POSITIONS.fullmatch(key) is not None
        limit = max(n_numbers, LEAST_LENGTH if is_length else LEAST_SIZE)
        if most > limit:
            raise CheckpointError(
                f"{path}: {key} ({most:,}) must be at most {limit:,}: the weight files hold "
                f"{n_numbers:,} numbers"
            )
        if _WIDTHS.fullmatch(key):
            widest = max(widest, most)
        elif is_length and most > longest:
            longest, name = most, key
    limit = max(n_numbers, LEAST_TABLE)
    if widest * longest > limit:
        raise CheckpointError(
            f"{path}: {name} ({longest:,}) of width {widest:,} exceeds {limit:,} numbers: the "
            f"weight files hold {n_numbers:,}"
        )


def _integers(value: object) -> Iterator[int]:
    """Yield the whole numbers of a value and of the lists and objects in it."""
    if isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _integers(each)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield value


def _weight_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Return every tensor of the folder with its file."""
    if (folder / INDEX).exists() or (folder / INDEX).is_symlink():
        yield from _indexed_files(folder)
        return
    if not (folder / SINGLE).exists() and not (folder / SINGLE).is_symlink():
        pickles = sorted(path.name for path in folder.glob("*.bin"))
        way_out = (
            f"; {pickles[0]} is a pickle, which runs code when it is opened: save the model as "
            "safetensors"
            if pickles
            else ""
        )
        raise CheckpointError(f"{folder / SINGLE} is missing{way_out}")
    path = folder / SINGLE
    for name in _tensor_names(folder, SINGLE):
        yield name, path


def _indexed_files(folder: Path) -> Iterator[tuple[str, Path]]:
    index = read_json(folder, INDEX, MAX_INDEX_BYTES).get("weight_map")
    path = folder / INDEX
    if not isinstance(index, dict) or not index:
        raise CheckpointError(f"{path}: weight_map must name a file for every tensor")
    held: dict[str, set[str]] = {}
    for tensor, name in index.items():
        if not isinstance(name, str) or not _WEIGHT_FILE.fullmatch(name):
            raise CheckpointError(
                f"{path}: {tensor} lies in {str(name)[:100]!r}; a weight file is a "
                "safetensors file of this folder"
            )
        if name not in held:
            held[name] = _tensor_names(folder, name)
            _require_few(folder / name, sum(map(len, held.values())))
        if tensor not in held[name]:
            raise CheckpointError(f"{folder / name}: the tensor {tensor} is missing")
        yield tensor, folder / name


def _tensor_names(folder: Path, name: str) -> set[str]:
    path = folder / name
    with open_file(folder, name, MAX_WEIGHT_BYTES) as file:
        length = int.from_bytes(file.read(8), "little")
    if length > MAX_HEADER_BYTES:
        raise CheckpointError(
            f"{path}: the header has {length:,} bytes, at most {MAX_HEADER_BYTES:,}"
        )
    try:
        with open_tensors(folder, name, MAX_WEIGHT_BYTES) as file:
            names = set(file.keys())
            _require_few(path, len(names))
            for name in names:
                if (dtype := file.get_slice(name).get_dtype()) not in _DTYPES:
                    raise CheckpointError(
                        f"{path}: {name} holds {dtype}: quantised weights cannot be read"
                    )
            return names
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path} is damaged or cut short: {error}") from error


def _require_few(path: Path, n_tensors: int) -> None:
    if n_tensors > MAX_TENSORS:
        raise CheckpointError(f"{path}: {n_tensors:,} tensors, at most {MAX_TENSORS:,}")


def _object(pairs: list[tuple[str, object]]) -> object:
    """Return a JSON object, or the infinity that Transformers writes as one.

    Raises:
        ValueError: a key occurs twice, or the tag of a number is on something else.
    """
    members = unique_keys(pairs)
    if "__float__" not in members:
        return members
    value = members["__float__"]
    if len(members) > 1 or value not in ("Infinity", "-Infinity"):
        raise ValueError(f"__float__ ({str(value)[:100]!r}) must be Infinity or -Infinity")
    return math.inf if value == "Infinity" else -math.inf


def _no_constant(name: str) -> float:
    if name == "Infinity":  # the open end of a range, in the configs of state-space models
        return math.inf
    raise ValueError(f"{name} is not a JSON number")
