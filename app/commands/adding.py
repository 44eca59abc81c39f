"""The work of `headlight add` and `headlight remove`, which needs PyTorch.

A model is fetched or copied into a hidden folder, checked there, and renamed at the end. An
interrupted one is therefore never listed, and a download continues where it stopped.
"""

from __future__ import annotations

import glob
import hashlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout
from rich.text import Text

from headlight.commands.output import note, progress, show
from headlight.commands.parsing import UsageError
from headlight.model.checkpoint.card import ModelCard, write_card
from headlight.model.checkpoint.files import CARD, CONFIG, TOKENIZER, WEIGHTS, memory_bytes
from headlight.model.checkpoint.loading import ZOO, load_checkpoint, tokenizer_file
from headlight.model.checkpoint.profile import HEADS
from headlight.model.description import Description
from headlight.model.extras import missing
from headlight.model.foreign.folder import INDEX, OPTIONAL, SINGLE, is_foreign, read_folder
from headlight.model.foreign.gguf_file import convert_gguf, find_gguf
from headlight.model.foreign.readme import README, readme_card
from headlight.model.profiles.examples import shown_examples
from headlight.model.profiles.folder import measure_folder
from headlight.model.served import Served
from headlight.models.foreign import STORED, load_checked, require_transformers, write_description
from headlight.models.memory import in_gb
from headlight.models.model_registry import CHECKS, MODEL_NAME
from headlight.models.staging import STAGED, staging
from headlight.schemas.traces import MAX_MODEL_ID_CHARACTERS
from headlight.serving.profile_runs import MODULE
from headlight.settings import Settings

if TYPE_CHECKING:
    from huggingface_hub.hf_api import ModelInfo, RepoSibling

SMALL_FILES = (
    CONFIG,
    README,
    TOKENIZER,
    "added_tokens.json",
    *OPTIONAL,
    "merges.txt",
    "source.spm",
    "special_tokens_map.json",
    "target.spm",
    "tokenizer_config.json",
    "vocab.json",
)
N_SAMPLE, N_REFINED = 50, 200
"""The sentences that the heads of a new model are measured on: at once, and in the background."""
EXAMPLE = "The quick brown fox jumps over the lazy dog."
MAX_SMALL_BYTES = 2**26
SPARE_BYTES = 2**28
"""Disk space that is left free when a model is added."""

TERMINATED = 128 + signal.SIGTERM
"""The status of a command that a signal ended."""

_REPOSITORY = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}(@[\w./-]{1,200})?", re.ASCII)


def add_model(
    source: str,
    settings: Settings,
    *,
    name: str | None = None,
    text: Sequence[Path] = (),
    measures_heads: bool = True,
) -> str:
    """Add a model to the models directory, and return its id.

    Args:
        source: a folder, a GGUF file, or a repository of the hub as ``org/name`` or
            ``org/name@revision``.
        settings: with the models directory.
        name: the id; None: the name of the folder or of the repository.
        text: files of sentences to measure the heads on; none: the project's own.
        measures_heads: whether heads are measured, and the card gets examples that it shows.

    Raises:
        UsageError: the source is neither, or the id is taken or not allowed.
        ValueError: a file is missing, damaged or not allowed, or the model cannot be served.
        OSError: the directory cannot be written to, or the hub cannot be reached.
    """
    folder = Path(source).expanduser()
    gguf = find_gguf(folder)
    is_local = folder.is_dir() or gguf is not None
    if not is_local and not _is_repository(source):
        raise UsageError(
            f"{source!r} is no folder, no .gguf file and no repository of the hub; name a folder "
            "as ./folder, or a repository as org/name or org/name@revision"
        )
    source_name = (
        (gguf.stem if gguf else folder.resolve().name)
        if is_local
        else source.partition("@")[0].rpartition("/")[2]
    )
    for path in text:
        if not path.is_file():
            raise UsageError(f"--text {path}: there is no such file")
    target = _target(source_name if name is None else name, settings)
    target.parent.mkdir(parents=True, exist_ok=True)
    if is_local:
        with _staging(target.parent) as staged:
            origin = _convert(gguf, staged) if gguf else folder.resolve()
            if gguf is None:
                _copy(folder.resolve(), staged)
            model, description = _check(staged, target.name, origin, measures_heads)
            _publish(staged, target)
    else:
        with _locked(target.parent, source):
            staged, origin = _download(source, target.parent)
            with _discarded_if_refused(staged):
                model, description = _check(staged, target.name, origin, measures_heads)
            shutil.rmtree(staged / ".cache", ignore_errors=True)
            _publish(staged, target)
    _report(description, target)
    if measures_heads:
        _measure(model, target, text, settings.device)
    return target.name


def remove_model(model: str, settings: Settings) -> None:
    """Remove a model that `add_model` added.

    Raises:
        UsageError: there is no such model, or it was not added by `headlight add`.
        OSError: its folder cannot be removed.
    """
    directory = settings.own_models_dir
    listed = sorted(path.parent.name for path in directory.glob(f"[!._]*/{CONFIG}"))
    if model not in listed:
        where = "ships with Headlight" if (settings.zoo_dir / model).is_dir() else "is not there"
        where = where if MODEL_NAME.fullmatch(model) else "is not there"
        raise UsageError(
            f"the model {model!r} {where}; {directory} holds {', '.join(listed) or 'none'}"
        )
    if not (directory / model / STORED).is_file():
        raise UsageError(
            f"{directory / model} was not added by `headlight add`, so it is not removed; "
            "delete the folder yourself"
        )
    if model == settings.default_model:
        raise UsageError(
            f"the model {model!r} is the server's default; change HEADLIGHT_DEFAULT_MODEL first"
        )
    with staging(directory) as going:
        (directory / model).replace(going / model)  # gone from the list at once, and whole
    note(f"removed {model} from {directory}")


def _is_repository(source: str) -> bool:
    is_path = source.startswith((".", "~")) or ".." in source
    return _REPOSITORY.fullmatch(source) is not None and not is_path


def _target(name: str, settings: Settings) -> Path:
    """Return the folder that a new model will have.

    Raises:
        UsageError: the name is not an id, or there is a model of that name.
    """
    if len(name) > MAX_MODEL_ID_CHARACTERS or not MODEL_NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be a model's name: it has letters, digits, dots, dashes and spaces, "
            f"at most {MAX_MODEL_ID_CHARACTERS}; choose one with --name"
        )
    if (settings.zoo_dir / name).exists() or (ZOO / name).exists():
        raise UsageError(f"a model {name!r} ships with Headlight; choose another name with --name")
    target = settings.own_models_dir / name
    if target.exists() or target.is_symlink():
        raise UsageError(
            f"there is a model {name!r} in {target.parent}; remove it with "
            f"`headlight remove {name}`, or choose another name with --name"
        )
    return target


# --- from a folder --------------------------------------------------------------------------------


@contextmanager
def _staging(directory: Path) -> Iterator[Path]:
    """Yield a hidden folder as `staging` does; a signal to terminate is an end, too."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    try:
        with staging(directory) as staged:
            yield staged
    finally:
        signal.signal(signal.SIGTERM, before)


def _copy(folder: Path, staged: Path) -> None:
    """Copy the files that a model is read from, and no others."""
    if is_foreign(folder):
        foreign = read_folder(folder)
        _require_room(staged, sum(path.stat().st_size for path in foreign.weight_files))
        _require_memory(4 * foreign.n_numbers)
        names = [*SMALL_FILES, INDEX, *(path.name for path in foreign.weight_files)]
    else:
        names = [CONFIG, CARD, WEIGHTS]
        if (folder / TOKENIZER).is_file():  # else the folder is a difference
            tokenizer = tokenizer_file(folder)
            if tokenizer.resolve().is_relative_to(tokenizer.parent.resolve()):
                shutil.copyfile(tokenizer, staged / TOKENIZER)
    for name in names:
        path = folder / name
        if path.is_file() and path.resolve().is_relative_to(folder):
            (staged / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(path, staged / name)


def _convert(gguf: Path, staged: Path) -> str:
    """Write the folder of a GGUF file, and return the origin for the card."""
    require_transformers()
    note(f"converting {gguf.name} to float32")
    _require_room(staged, 8 * gguf.stat().st_size)
    return f"{gguf.name}, whose tensors are stored as {convert_gguf(gguf, staged)}"


# --- from the hub ---------------------------------------------------------------------------------


@contextmanager
def _locked(directory: Path, source: str) -> Iterator[None]:
    """Keep other processes from fetching the same repository into the same hidden folder.

    Raises:
        UsageError: another process does.
    """
    repository = source.partition("@")[0]
    path = directory / f"{STAGED}{hashlib.sha256(repository.encode()).hexdigest()[:16]}.lock"
    try:
        with FileLock(path, timeout=0):
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
    except Timeout as error:
        raise UsageError(
            f"another `headlight add` fetches {repository} at this moment; wait until it ends"
        ) from error


def _download(source: str, directory: Path) -> tuple[Path, str]:
    """Fetch a repository's model into a hidden folder; returns it and the commit's full name.

    The folder stays if the download is interrupted: the same command continues it.
    """
    require_transformers()
    try:
        from huggingface_hub import HfApi, snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled
    except ImportError as error:
        raise ValueError(missing("a download", "the Hub's client", "hf")) from error
    repository, _, revision = source.partition("@")
    try:
        info = HfApi().model_info(repository, revision=revision or None, files_metadata=True)
        files = _wanted_files(repository, info)
        origin = f"{repository}@{info.sha}"
        staged = directory / f"{STAGED}{hashlib.sha256(origin.encode()).hexdigest()[:16]}"
        n_bytes = sum(file.size or 0 for file in files)
        staged.mkdir(exist_ok=True)
        _require_room(staged, n_bytes)
        if info.safetensors is not None:
            _require_memory(4 * info.safetensors.total)
        note(f"{origin}: {len(files)} files, {in_gb(n_bytes)}")
        snapshot_download(
            repository,
            revision=info.sha,
            local_dir=staged,
            allow_patterns=[glob.escape(file.rfilename) for file in files],
        )
    except OfflineModeIsEnabled as error:
        raise ValueError("HF_HUB_OFFLINE is set, so nothing is downloaded") from error
    except KeyboardInterrupt:
        note("interrupted; the same command continues it")
        raise
    except HfHubHTTPError as error:
        raise ValueError(f"{source}: {_first_line(error)}") from error
    except ValueError:
        raise
    except Exception as error:  # of the HTTP library beneath, which is not part of its interface
        raise ValueError(
            f"{source} could not be fetched: {_first_line(error)}; the same command tries again"
        ) from error
    return staged, origin


def _wanted_files(repository: str, info: ModelInfo) -> list[RepoSibling]:
    """Return the files that a model is read from: its weights once, and no code.

    Raises:
        ValueError: the repository has no config or no safetensors files.
    """
    files = {file.rfilename: file for file in info.siblings or ()}
    if CONFIG not in files:
        raise ValueError(f"{repository} holds no model ({CONFIG} is missing)")
    shards = [name for name in files if re.fullmatch(r"model-\d+-of-\d+\.safetensors", name)]
    weights = [SINGLE] if SINGLE in files else [INDEX, *shards] if INDEX in files else []
    if not weights:
        pickles = [name for name in files if name.endswith((".bin", ".pt", ".ckpt", ".h5"))]
        why = f"; {pickles[0]} may run code when it is opened" if pickles else ""
        raise ValueError(f"{repository} has no {SINGLE} and no {INDEX}{why}")
    small = [name for name in SMALL_FILES if name in files]
    for name in small:
        if (files[name].size or 0) > MAX_SMALL_BYTES:
            raise ValueError(f"{repository}: {name} exceeds {MAX_SMALL_BYTES:,} bytes")
    return [files[name] for name in [*small, *weights]]


@contextmanager
def _discarded_if_refused(staged: Path) -> Iterator[None]:
    """Remove a download that is complete and cannot be served; keep it if the check was stopped."""
    try:
        yield
    except Exception:
        shutil.rmtree(staged, ignore_errors=True)
        raise


# --- the check ------------------------------------------------------------------------------------


def _check(
    staged: Path, name: str, origin: Path | str, has_examples: bool
) -> tuple[Served, Description]:
    """Load a model, and write its card and the result of its self-check into its folder.

    The card names the repository or the folder, but not where the folder is on this machine.

    Raises:
        ValueError: it cannot be served; the message names the folder that it came from.
    """
    try:
        if not is_foreign(staged):
            return _check_own(staged, name)
        require_transformers()
        note("checking its files, and its attention against Hugging Face's own")
        model = load_checked(staged, staged.parent / CHECKS)
    except ValueError as error:
        told = str(error).replace(str(staged), str(origin))
        raise ValueError(told.replace(staged.name, str(origin))) from error
    shown = origin.name if isinstance(origin, Path) else origin
    description = model.description
    examples = shown_examples(model) if has_examples else {}
    card = made_card(staged, description, name, shown, examples)
    write_card(staged / CARD, card)
    write_description(staged, description)
    return model, replace(description, id=name, card=card)


def _check_own(staged: Path, name: str) -> tuple[Served, Description]:
    """Check a model of this project as `_check` does; it has its card."""
    model = load_checkpoint(staged)
    (staged / STORED).write_text("{}\n", encoding="utf-8")  # `headlight remove` may remove it
    return model, replace(model.description, id=name)


def _measure(model: Served, target: Path, text: Sequence[Path], device: str) -> None:
    """Measure the heads on a few sentences, and on many in a process that goes on.

    A model that has a profile keeps it, and one that cannot be measured is added all the same.
    """
    if (target / HEADS).exists():
        return
    try:
        with progress("measuring its heads") as on_progress:
            measure_folder(target, model, text, N_SAMPLE, on_progress, is_sample=True)
    except (ValueError, OSError, RuntimeError) as error:
        note(f"its heads are not measured: {_first_line(error)}")
        return
    note(f"measured its heads on a few sentences; more goes on in the background, in {HEADS}")
    refine(target, text, device)


def refine(target: Path, text: Sequence[Path], device: str) -> None:
    """Start a process that measures the heads of a model on many sentences, and return."""
    words = ["--sentences", str(N_REFINED), "--device", device]
    words += ["--text", *(str(path.resolve()) for path in text)] if text else []
    subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", MODULE, str(target), *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


MEASURED = {
    "logits_watched": "the output of a pass whose sites are captured, from that of a plain pass",
    "logits_unwatched": "the output of a pass without captures, from that of a plain pass",
    "weights": "the attention weights, from `output_attentions`",
    "softmax": "the softmax of the scores, from the weights",
    "context": "weights times values, from the context",
    "rotation": "the rotary positions applied to the queries, from the rotated queries",
    "rotation_switch": "the rotary positions on both sides of a length where they change",
    "sum": "a layer's stream from the sum of what its parts write, beyond rounding",
    "fused": "the logits with PyTorch's fused attention",
    "projections": "the contexts times W_O, from the output of the attention",
    "lens": "the logits of the last layer's stream in the logit lens",
    "cached": "a row that is read with the cache of keys and values",
    "padded": "the logits of a text that is padded to the length of a longer one",
    "streamed": "the maps and rows that are computed block by block",
}
"""The differences that the self-check measures, by their names on the card."""


def made_card(
    folder: Path,
    description: Description,
    name: str,
    origin: str,
    examples: Mapping[str, str] | None = None,
) -> ModelCard:
    """Make the card of a foreign model from its sizes, its self-check and its README."""
    readme = readme_card(folder)
    config, prose = description.config, [f"A {description.architecture} from `{origin}`."]
    checks = {name: float(f"{far:.3g}") for name, far in description.checks.items()}
    experts = f", {config.moe.top_k} of {config.moe.n_experts} experts" if config.moe else ""
    prose.append(
        f"{description.n_parameters:,} parameters: {config.n_layers} layers with "
        f"{config.n_heads} heads each, d_model {config.d_model}{experts}, a vocabulary of "
        f"{config.vocab_size:,} tokens, {config.positional} positions."
    )
    prose.append(
        "Every number that Headlight shows of it is computed by the code of Hugging Face "
        "Transformers; the figures below are the largest differences that the self-check measured."
    )
    prose.append("\n".join(f"- `{name}`: {MEASURED[name]}" for name in checks))
    if description.omitted:
        lines = [f"- `{site}`: {reason}" for site, reason in sorted(description.omitted.items())]
        prose.append("\n".join(["## Left out\n", *lines[:200]]))
    if readme.prose:
        prose.append(f"## Its README\n\n{readme.prose}")
    return replace(
        readme,
        title=name,
        examples=examples or {"A sentence": EXAMPLE},
        training={"source": origin, "architecture": description.architecture},
        metrics={"self_check": checks},
        prose="\n\n".join(prose),
    )


def _publish(staged: Path, target: Path) -> None:
    staged.chmod(0o755)
    try:
        staged.rename(target)
    except OSError as error:
        raise UsageError(
            f"a model {target.name!r} was added to {target.parent} meanwhile; nothing was changed"
        ) from error


def _require_room(directory: Path, n_bytes: int) -> None:
    free = shutil.disk_usage(directory).free
    if n_bytes + SPARE_BYTES > free:
        raise ValueError(
            f"the model takes {in_gb(n_bytes)} of disk space; {directory.parent} has {in_gb(free)}"
        )


def _require_memory(n_bytes: int) -> None:
    there = memory_bytes()
    if there is not None and n_bytes > there:
        raise ValueError(
            f"the model needs {in_gb(n_bytes)} of memory to be checked; this machine has "
            f"{in_gb(there)}"
        )


def _report(description: Description, target: Path) -> None:
    checks = description.checks
    show(Text(f"added {description.id} to {target.parent}", style="bold"))
    if "weights" in checks:
        show(f"largest difference from Hugging Face's own attention: {checks['weights']:.1g}")
    for name, reason in sorted(description.omitted.items()):
        show(Text(f"left out {name}: {reason}", style="yellow"))
    command = shlex.join(["headlight", "serve", "--model", description.id])
    show(f"`headlight serve` lists it; `{command}` opens with it")


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
