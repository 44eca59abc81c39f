"""Build a model of Transformers from a checked folder, with no tensor missing or left over."""

from __future__ import annotations

import gc
import inspect
import re
import sys
import threading
import types
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import nn

from headlight.model.checkpoint.files import CONFIG, CheckpointError, require_memory
from headlight.model.extras import missing, warn_if_newer
from headlight.model.foreign.folder import LEAST_TABLE, ForeignFolder
from headlight.model.foreign.outputs import LANGUAGE, takes_no_text, takes_targets
from headlight.model.hooks import SkipInitialisation

TASKS = {
    "seq2seq": "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
    "causal": "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
    "masked": "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
    "label": "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES",
    "token_label": "MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES",
    "answer": "MODEL_FOR_QUESTION_ANSWERING_MAPPING_NAMES",
    "choice": "MODEL_FOR_MULTIPLE_CHOICE_MAPPING_NAMES",
    "vector": "MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES MODEL_MAPPING_NAMES",
}
"""The lists of classes by task. The first three predict tokens."""
# Tensors of heads and tables that language models are saved with and do not read.
_UNREAD = re.compile(
    r"(.*\.)?(pooler\..*|seq_relationship\..*|position_ids|rotary_emb\.inv_freq|masked_bias|"
    r"attn\.bias|attention\.bias|embeddings\.token_type_ids|classifier\..*|mtp\..*)"
)

SIZES = frozenset(
    {
        *("n_head", "n_heads", "num_heads", "num_attention_heads", "num_key_value_heads"),
        *("n_embd", "d_model", "hidden_size", "head_dim", "vocab_size", "n_layer", "n_layers"),
        *("num_hidden_layers", "n_positions", "max_position_embeddings"),
    }
)
"""Numbers of a config that are at least 1: a model file divides by them, or they are shapes."""

OF_THE_CODE = re.compile(r"INTERNAL ASSERT|\.cpp:\d|^\W*\w+\W*$|(invalid|negative) .*dimension")
"""Messages that tell of a library's code, or are one word."""

MODELING = "transformers.modeling_utils"
_SHARED = (MODELING, "transformers.masking_utils", "transformers.modeling_layers")
_COMPILER = "torch._dynamo"
_UNUSED = ("accelerate", "scipy", "sklearn")

MAX_BUFFER_BYTES = 2**28

BUILD_SECONDS = 60.0
"""How long a model waits for another one that is being built."""

_importing, _building, _silencing = threading.Lock(), threading.Lock(), threading.Lock()
_put_back: list[Callable[[], object]] = []
"""Restores what the build that holds the lock began with."""


class MissingExtra(CheckpointError):
    """Transformers is not installed."""


def transformers_library() -> Any:
    """Return the package Transformers, imported when the first foreign model is loaded.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import transformers
    except ImportError as error:
        raise MissingExtra(missing("this model", "Transformers", "hf")) from error
    warn_if_newer("transformers")
    return transformers


def import_alone() -> None:
    """Import what every model of Transformers needs, and none of the libraries that none uses.

    They are PyTorch's compiler and distributed tensors and, if installed, Accelerate, SciPy and
    scikit-learn: 1.5 of the 2.4 s that a processor takes. Transformers remembers that they are
    absent, so this is for a process that only runs a server. If it fails, the first model imports
    everything.
    """
    with _importing:
        if MODELING not in sys.modules:
            _import_without_compiler()


def _import_without_compiler() -> None:
    compiler = types.ModuleType(_COMPILER)
    compiler.__path__ = [str(Path(torch.__file__).with_name("_dynamo"))]
    for name in ("allow_in_graph", "assume_constant_result", "disable"):
        setattr(compiler, name, _decorated)
    hidden: dict[str, Any] = dict.fromkeys(_UNUSED) | {_COMPILER: compiler}
    hidden = {name: module for name, module in hidden.items() if name not in sys.modules}
    is_available = torch.distributed.is_available
    sys.modules.update(hidden)
    torch.distributed.is_available = lambda: False
    try:
        with suppress(Exception):  # of another version, which asks more of the compiler
            transformers_library()
            for name in _SHARED:
                import_module(name)
    finally:
        torch.distributed.is_available = is_available
        for name in hidden:
            del sys.modules[name]


def _decorated(function: Any = None, *_: object, **__: object) -> Any:
    """Return a decorator for the compiler, which is not there: the function as it is."""
    return _decorated if function is None else function


@contextmanager
def without_collection() -> Iterator[None]:
    """Pause the garbage collector, which searches all that an import made again and again.

    It took a quarter of the time in which Transformers is imported.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Silence:
    """Silences Transformers from when the first thread enters until the last one leaves."""

    def __init__(self) -> None:
        self._n_inside = 0
        self._before = ExitStack()

    def enter(self, logging: Any) -> None:
        with _silencing:
            if not self._n_inside:
                self._before.enter_context(warnings.catch_warnings())
                warnings.simplefilter("ignore")
                self._before.callback(logging.set_verbosity, logging.get_verbosity())
                logging.set_verbosity(50)
                logging.disable_progress_bar()
            self._n_inside += 1

    def leave(self) -> None:
        with _silencing:
            self._n_inside -= 1
            if not self._n_inside:
                self._before.close()


_silence = _Silence()


@contextmanager
def quiet() -> Iterator[None]:
    """Silence what Transformers logs and warns of; problems are found by the checks here.

    Filters and levels are those of the whole process. Several threads may be inside: none waits
    for another, as one may hang.
    """
    _silence.enter(transformers_library().logging)
    try:
        yield
    finally:
        _silence.leave()


@contextmanager
def building() -> Iterator[None]:
    """Build one model at a time, as Transformers replaces its own functions meanwhile.

    A build that hangs is waited for `BUILD_SECONDS` and no longer. The next one then begins with
    the functions that the other replaced, and puts the right ones back.
    """
    is_first = _building.acquire(timeout=BUILD_SECONDS)
    if is_first:
        kind = import_module(MODELING).PreTrainedModel
        _put_back[:] = [
            partial(setattr, kind, "tie_weights", kind.tie_weights),
            partial(setattr, torch, "linspace", torch.linspace),
            partial(torch.set_default_dtype, torch.get_default_dtype()),
        ]
    try:
        yield
    finally:
        if is_first:
            _building.release()
        else:
            for put_back in _put_back:
                put_back()


def config_of(folder: ForeignFolder) -> Any:
    """Return the config of a folder, made by its class without reading a file.

    Raises:
        CheckpointError: Transformers does not know the architecture, or rejects the config.
    """
    library = transformers_library()
    where = folder.path / CONFIG
    for name in SIZES.intersection(folder.config):
        size = folder.config[name]
        if isinstance(size, int) and size < 1:
            raise CheckpointError(f"{where}: {name} ({size}) must be at least 1")
    try:
        with quiet():
            return library.AutoConfig.for_model(folder.model_type, **folder.config)
    except Exception as error:
        raise CheckpointError(f"{where}: {reason(error)}") from error


def class_of(folder: ForeignFolder, config: Any) -> tuple[str, type[nn.Module]]:
    """Return the task of a folder's model, one of `TASKS`, and its class.

    A model that turns speech into text may be listed as an encoder–decoder and be none.

    Raises:
        CheckpointError: the model reads no text, or puts out nothing that is shown.
    """
    named = [folder.architecture] if folder.architecture else []
    is_pair = bool(getattr(config, "is_encoder_decoder", False))
    task, kind = task_of(folder.model_type, named, is_pair=is_pair)
    if task is None or kind is None:
        why = unknown_output(folder.model_type, folder.architecture)
        raise CheckpointError(f"{folder.path / CONFIG}: {why}")
    return task, getattr(transformers_library(), kind)


def task_of(
    model_type: str, names: Collection[str], *, is_pair: bool
) -> tuple[str | None, str | None]:
    """Return the task of a class, one of `TASKS`, and the class's name.

    Args:
        model_type: of its config.
        names: of the class and those it derives from; empty: the first that the library lists.
        is_pair: whether it is an encoder–decoder.

    Returns:
        None and None: the class reads no text, or puts out nothing that is shown.
    """
    for task, listed in _listed(model_type).items():
        name = next((each for each in listed if each in names or not names), None)
        if name is None:
            continue
        kind = getattr(transformers_library(), name)
        if takes_no_text(kind) or (task not in LANGUAGE and takes_targets(kind)):
            break
        return ("causal" if task == "seq2seq" and not is_pair else task), name
    return None, None


def _listed(model_type: str) -> dict[str, tuple[str, ...]]:
    auto = transformers_library().models.auto.modeling_auto
    listed: dict[str, tuple[str, ...]] = {}
    for task, mappings in TASKS.items():
        for mapping in mappings.split():
            names = getattr(auto, mapping).get(model_type) or ()
            each = (names,) if isinstance(names, str) else tuple(names)
            listed[task] = listed.get(task, ()) + each
    return listed


def unknown_output(model_type: str, name: str | None) -> str:
    """Return the sentence that refuses a class which reads no text or has another head."""
    kind = getattr(transformers_library(), name or "", None)
    if kind is not None and (given := takes_no_text(kind)):
        return f"{name} reads {given}, so it cannot be shown"
    if kind is not None and takes_targets(kind):
        return (
            f"{name} is an encoder–decoder whose decoder predicts no tokens; save the model with "
            "the head of a translator, or its encoder by itself"
        )
    listed = (names for task, names in _listed(model_type).items() if task != "choice")
    known = list(dict.fromkeys(name for names in listed for name in names))
    way_out = f"save the model as {' or '.join(known)}"
    if not known:
        way_out = f"no model of the type {model_type} has one, so this one cannot be read"
    return (
        f"{name or model_type} puts out neither tokens nor labels nor the vectors of a text; "
        f"{way_out}"
    )


def build(
    folder: ForeignFolder,
    kind: type[Any],
    config: Any,
    dtype: torch.dtype,
    read: Callable[[], Mapping[str, torch.Tensor]],
) -> nn.Module:
    """Return the model with its weights on the CPU, in eval mode; `read` returns the weights.

    Raises:
        CheckpointError: a tensor is missing, unknown or of another shape.
        CheckpointError: the model needs more memory than there is.
    """
    require_memory(folder.path / CONFIG, folder.n_numbers, dtype.itemsize)
    with quiet(), building(), SkipInitialisation(of_meta_alone=True):
        try:
            with torch.device("meta"):
                bare = kind(config, **parts_of(kind))
        except Exception as error:
            raise CheckpointError(f"{folder.path / CONFIG}: {reason(error)}") from error
    n_parameters = sum(parameter.numel() for parameter in bare.parameters())
    _require_held(folder, bare)
    require_memory(folder.path / CONFIG, n_parameters, dtype.itemsize)
    del bare
    weights = read()  # no other build waits for a stranger's files
    with quiet(), building(), SkipInitialisation(of_meta_alone=True):
        has_experts = kind._can_set_experts_implementation()  # which can run one by one
        try:
            model, info = kind.from_pretrained(
                None,
                config=config,
                state_dict=dict(weights),
                dtype=dtype,
                attn_implementation="eager",
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # `_require_complete` names them
                **({"experts_implementation": "eager"} if has_experts else {}),
                **parts_of(kind),
            )
        except Exception as error:
            raise CheckpointError(f"{folder.path}: {reason(error)}") from error
    _require_complete(folder, info)
    model.eval()
    built: nn.Module = model
    return built


def parts_of(kind: type[Any]) -> dict[str, bool]:
    """Return the argument that leaves the pooler out of a model without a head."""
    name = "add_pooling_layer"
    return {name: False} if name in inspect.signature(kind.__init__).parameters else {}


def set_attention(model: Any, name: str) -> None:
    """Let a model compute its attention by the function of that name."""
    with quiet():
        model.set_attn_implementation(name)


def _require_held(folder: ForeignFolder, bare: nn.Module) -> None:
    """Check that the files hold the parameters, and that the buffers are not much larger."""
    shapes = sorted(bare.named_parameters(), key=lambda named: -named[1].numel())
    if shapes and shapes[0][1].numel() > max(folder.n_numbers, LEAST_TABLE):
        name, largest = shapes[0]
        raise CheckpointError(
            f"{folder.path / CONFIG}: {name} would have {largest.numel():,} numbers, and the "
            f"weight files hold {folder.n_numbers:,}"
        )
    n_bytes = sum(buffer.nbytes for buffer in bare.buffers())
    limit = max(4 * folder.n_numbers, MAX_BUFFER_BYTES)
    if n_bytes > limit:
        raise CheckpointError(
            f"{folder.path / CONFIG}: the tables of its sizes take {n_bytes:,} bytes, at most "
            f"{limit:,}"
        )


def _require_complete(folder: ForeignFolder, info: Any) -> None:
    files = folder.weight_files
    place = files[0] if len(files) == 1 else folder.path
    for problem, verb in (("missing_keys", "is missing"), ("mismatched_keys", "has another shape")):
        names = (entry if isinstance(entry, str) else entry[0] for entry in info.get(problem) or ())
        faulty = sorted(names)
        if faulty:
            raise CheckpointError(f"{place}: the tensor {faulty[0]} {verb} ({len(faulty)} in all)")
    if errors := info.get("error_msgs"):
        raise CheckpointError(f"{folder.path}: {str(errors[0])[:200]}")
    unknown = sorted(name for name in info["unexpected_keys"] if not _UNREAD.fullmatch(name))
    if unknown:
        raise CheckpointError(
            f"{place}: the tensor {unknown[0]} is unknown ({len(unknown)} in all)"
        )


def reason(error: BaseException) -> str:
    """Return the first line of a library's error, or a sentence if it is about the library."""
    text = str(error).strip() or type(error).__name__
    if isinstance(error, KeyError):
        return f"Transformers does not know the value {text}"
    if isinstance(error, ArithmeticError | AttributeError | IndexError) or OF_THE_CODE.search(text):
        values = re.findall(r"'[^'\n]{1,80}'", text)
        named = f"its value {values[-1]}" if values else "one of its values"
        return f"Transformers cannot compute with {named}"
    if wrong := re.search(r"TypeError: Field '(\w+)'.*value:? (.{1,40})", text):
        return f"{wrong[1]} is of the wrong type: {wrong[2].rstrip(')')}"
    first, *rest = map(str.strip, text.splitlines())
    return " ".join([first, *rest[: first.endswith(":")]])[:300]
