"""Descriptions of foreign models without Transformers, which takes seconds to import.

A foreign model is described by its self-check, when it is loaded. `headlight add` writes that
description into the model's folder, as `headlight.json`. A folder without one, or with one that
belongs to other files, is described only by its config until the model is loaded.

A self-check takes seconds, so its result is kept in the models directory, in `.checks`: it runs
once for each content of a model's files and each version of the code (`load_checked`). The state of
the files, their times and inodes, names it too, so that they need not be read to find it.
"""

import hashlib
import logging
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from headlight.distribution import DISTRIBUTION
from headlight.model import foreign
from headlight.model.checkpoint.card import ModelCard, read_card
from headlight.model.checkpoint.files import CARD, MAX_BYTES, read_file, require_file
from headlight.model.checkpoint.loading import load, write_atomically
from headlight.model.checkpoint.profile import read_profile
from headlight.model.checkpoint.steps import id_of
from headlight.model.config import Predicts, RoutedExperts
from headlight.model.description import Description, Pooling
from headlight.model.extras import missing
from headlight.model.foreign.folder import (
    ForeignFolder,
    Progress,
    no_progress,
    read_folder,
    sha256_of,
    small_files,
)
from headlight.model.foreign.passes import Facts
from headlight.model.foreign.readme import readme_card
from headlight.model.sites import Site
from headlight.model.trace import AttentionFacts, Rotation

if TYPE_CHECKING:
    from headlight.model.foreign.checks import Checked
    from headlight.model.foreign.model import ForeignModel
    from headlight.model.served import Served

logger = logging.getLogger(__name__)

STORED = "headlight.json"
MAX_KEPT_CHECKS = 200
MAX_STORED_BYTES = 2**24
NEEDS_EXTRA = missing("it", "Transformers", "hf")

# Other names of a size in a config, in the order in which they count.
_NAMES = {
    "n_layers": ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "decoder_layers"),
    "n_heads": ("num_attention_heads", "n_head", "num_heads", "n_heads", "decoder_attention_heads"),
    "n_groups": ("num_key_value_heads", "n_head_kv", "num_kv_heads"),
    "d_model": ("hidden_size", "n_embd", "d_model", "dim", "hidden_dim"),
    "d_ff": ("intermediate_size", "n_inner", "d_ff", "ffn_dim", "decoder_ffn_dim"),
    "vocab_size": ("vocab_size",),
    "max_tokens": ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"),
}
_N_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts")
_TOP_K = ("num_experts_per_tok", "moe_top_k")
_ENCODER_DECODERS = ("ForConditionalGeneration", "Seq2SeqLM", "MTModel")

Line = Annotated[str, StringConstraints(max_length=500)]


class Stored(BaseModel):
    """The file `headlight.json`: the result of a model's self-check, and a hash of its files."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    files: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    config: Facts
    revision: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
    n_parameters: Annotated[int, Field(ge=0, lt=2**50)]
    sites: Annotated[tuple[Site, ...], Field(max_length=100_000)]
    attentions: Annotated[tuple[AttentionFacts, ...], Field(max_length=10_000)]
    rotation: Rotation | None = None
    architecture: Line
    features: frozenset[Line]
    omitted: dict[Line, Line]
    checks: dict[Line, float]
    matrices: Annotated[tuple[Line, ...], Field(max_length=100_000)] = ()
    predicts: Predicts = "token"
    labels: Annotated[tuple[Line, ...], Field(max_length=100_000)] = ()
    pooling: Pooling | None = None


_OF_DESCRIPTION = tuple(Stored.model_fields.keys() - {"format", "files"})
"""The members that a description has too."""


def load_checked(
    folder: Path,
    checks: Path | None,
    *,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
    on_progress: Progress = no_progress,
    is_alone: bool = False,
) -> "ForeignModel":
    """Load a foreign model; its numbers are checked if they were not before.

    Args:
        folder: of the model.
        checks: the directory that keeps the results, if it can be written to; None: not kept.
        device: of the weights.
        dtype: of the weights.
        on_progress: called with the share that is done.
        is_alone: as of `load_foreign`.

    Raises:
        CheckpointError: as `load_foreign`.
    """
    require_transformers()
    paths, kept = [], None
    around = [str(device), str(dtype)]
    files = read_folder(folder)

    def by_content(revision: str) -> Path:
        return (
            checks or Path()
        ) / f"{_hash([revision, _digest(files), *_versions(), *around])}.json"

    def recall(revision: str) -> "Checked | None":
        found = _read_kept(by_content(revision)) if checks is not None else None
        return found and found[1]

    if checks is not None:
        paths = [checks / f"{_state_of(files, around)}.json"]
        kept = _read_kept(paths[0])
    model = foreign.load_foreign(
        folder,
        device=device,
        dtype=dtype,
        on_progress=on_progress,
        kept=kept,
        recall=recall,
        is_alone=is_alone,
    )
    if checks is not None and kept is None:
        paths.append(by_content(model.description.revision))
        try:
            for path in paths:
                _keep(path, model)
        except OSError as error:  # the directory is read-only, or its disk full
            logger.warning("the check of %s is not kept: %s", folder.name, error.strerror)
    return model


def load_folder(folder: Path, checks: Path | None, *, device: torch.device | str) -> "Served":
    """Load a model of either kind; a foreign one as `load_checked`, and kept where others are.

    Args:
        folder: of the model.
        checks: as of `load_checked`; a directory that is not there is not made.
        device: of the weights.

    Raises:
        CheckpointError: as `load_checked`.
    """
    if not foreign.is_foreign(folder):
        return load(folder, device=device)
    return load_checked(folder, checks if checks and checks.is_dir() else None, device=device)


def require_transformers() -> None:
    """Raise ValueError if Transformers is not installed; it is not imported."""
    if find_spec("transformers") is None:
        raise ValueError(NEEDS_EXTRA)


def write_description(folder: Path, description: Description) -> None:
    """Write the result of a model's self-check into its folder."""
    fields = {name: getattr(description, name) for name in _OF_DESCRIPTION}
    fields["omitted"] = {name: reason[:500] for name, reason in description.omitted.items()}
    text = Stored(files=_digest(read_folder(folder)), **fields).model_dump_json()
    write_atomically(folder / STORED, lambda path: path.write_text(text, encoding="utf-8"))


def read_description(folder: Path) -> tuple[Description, bool]:
    """Describe a foreign model that is not loaded, and say if a self-check did.

    Raises:
        ValueError: Transformers is not installed, or a file of the folder is missing, damaged or
            not allowed.
    """
    require_transformers()
    foreign_folder = read_folder(folder)
    card = card_of(folder)
    stored = _stored(foreign_folder)
    if stored is None:
        return _guess(foreign_folder, card), False
    fields = {name: getattr(stored, name) for name in _OF_DESCRIPTION}
    heads = read_profile(folder, stored.revision)
    return Description(id=id_of(folder), card=card, heads=heads, **fields), True


def card_of(folder: Path) -> ModelCard:
    """Return the card that was made for a foreign model, or one made from its README."""
    if (folder / CARD).exists():
        return read_card(require_file(folder, CARD, MAX_BYTES[CARD]))
    return readme_card(folder)


def _stored(folder: ForeignFolder) -> Stored | None:
    if not (folder.path / STORED).exists():
        return None
    try:
        stored = Stored.model_validate_json(read_file(folder.path, STORED, MAX_STORED_BYTES))
    except (ValidationError, ValueError, OSError):
        return None
    return stored if stored.files == _digest(folder) else None


def _state_of(folder: ForeignFolder, around: list[str]) -> str:
    """Return a hash of all that a self-check depends on: files, code, versions, device and dtype.

    A file of weights counts by its inode, size and times. No program can set the time of the last
    change of an inode, so the file of another model is never taken for it.
    """
    parts: list[object] = [_digest(folder), *_versions(), *around]
    for path in sorted({*folder.weight_files, *folder.path.glob("*token*")}):
        status = path.stat()
        parts += [path.name, status.st_dev, status.st_ino, status.st_size]
        parts += [status.st_mtime_ns, status.st_ctime_ns]
    return _hash(parts)


def _hash(parts: list[Any]) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _versions() -> list[str]:
    """Return what made a check, but for the files."""
    versions = [version(name) for name in (DISTRIBUTION, "transformers", "torch")]
    # Other kernels round differently.
    return [*versions, _state_of_code(), torch.backends.cpu.get_cpu_capability()]


@cache
def _state_of_code() -> str:
    files = sorted(Path(foreign.__file__).parent.glob("*.py"))
    return repr([(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files])


def _kept_type() -> TypeAdapter[Any]:
    from headlight.model.foreign.checks import Checked

    return TypeAdapter(tuple[str, Checked], config=ConfigDict(ser_json_inf_nan="strings"))


def _read_kept(path: Path) -> "tuple[str, Checked] | None":
    """Return the revision and the result of a kept check; None: there is none."""
    try:
        revision, checked = _kept_type().validate_json(path.read_bytes())
    except (OSError, ValueError):
        return None
    return (revision, checked) if checked.sites else None


def _keep(path: Path, model: "ForeignModel") -> None:
    """Write the result of a check, and remove the oldest of many."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = _kept_type().dump_json((model.description.revision, model.checked))
    write_atomically(path, lambda temporary: temporary.write_bytes(content))
    checks = sorted(path.parent.glob("*.json"), key=lambda check: check.stat().st_mtime)
    for old in checks[:-MAX_KEPT_CHECKS]:
        old.unlink(missing_ok=True)


def _digest(folder: ForeignFolder) -> str:
    """Return a hash of the small files, and of the names and sizes of the weights.

    Hashing the weights takes seconds a gigabyte; loading does it, and replaces the description.
    """
    digest = hashlib.sha256()
    for name, max_bytes in small_files(folder.path).items():
        is_there = (folder.path / name).exists()
        digest.update(
            sha256_of(folder.path, name, max_bytes) if is_there else hashlib.sha256().digest()
        )
    for path in sorted(folder.weight_files):
        digest.update(f"{path.name} {path.stat().st_size}\n".encode())
    return digest.hexdigest()


def _guess(folder: ForeignFolder, card: ModelCard) -> Description:
    """Return the description that config.json and the headers of the weights allow: no sites."""
    config = folder.config.get("text_config", folder.config)
    config = config if isinstance(config, Mapping) else folder.config
    sizes = {size: _first(config, names) for size, names in _NAMES.items()}
    sizes["n_groups"] = sizes["n_groups"] or sizes["n_heads"]
    architecture = folder.architecture or folder.model_type
    n_experts = _first(config, _N_EXPERTS)
    return Description(
        id=id_of(folder.path),
        config=Facts(
            kind=_kind(architecture),
            d_head=sizes["d_model"] // max(sizes["n_heads"], 1),
            positional="none",
            norm="",
            norm_place="pre",
            activation="",
            moe=RoutedExperts(n_experts=n_experts, top_k=_first(config, _TOP_K), layers=())
            if n_experts
            else None,
            **sizes,
        ),
        card=card,
        revision="",
        n_parameters=folder.n_numbers,
        sites=(),
        architecture=architecture,
    )


def _first(config: Mapping[str, Any], names: tuple[str, ...]) -> int:
    return next((config[name] for name in names if type(config.get(name)) is int), 0)


def _kind(architecture: str) -> str:
    if architecture.endswith("MaskedLM"):
        return "encoder"
    return "encoder-decoder" if architecture.endswith(_ENCODER_DECODERS) else "decoder"
