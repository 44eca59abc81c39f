"""Open a tokenizer.json by the class that `AutoTokenizer` of Transformers would take.

A class of Transformers may take the vocabulary from the file and build the other parts again, from
flags of tokenizer_config.json (``do_lower_case``, ``strip_accents``, ``tokenize_chinese_chars``,
``add_prefix_space``). The ids are those of that class. The rules of `AutoTokenizer` are followed
here without its reading: it opens any file of the folder that a class names, and asks a server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from headlight.model.checkpoint.files import (
    MAX_BYTES,
    TOKENIZER,
    CheckpointError,
    path_of_open_file,
    read_file,
)
from headlight.model.foreign.folder import PAIRS, is_in_pairs, read_json
from headlight.model.foreign.loading import quiet

TOKENIZER_CONFIG = "tokenizer_config.json"
_LEGACY = {
    "special_tokens_map_file": "special_tokens_map.json",
    "added_tokens_file": "added_tokens.json",
}
_GENERIC = ("TokenizersBackend", "PythonBackend", "PreTrainedTokenizerFast")
_MISTRAL, _TEKKEN = "MistralCommonBackend", "tekken.json"
_NAME = re.compile(r"[A-Za-z]\w{0,99}")
# Options that name files or code, or take the place of what is read from tokenizer.json.
_DROPPED = re.compile(
    r".*(_file|_dir|_path)|auto_map|tokenizer_class|backend|name_or_path|chat_template|vocab|merges|"
    r"tokenizer_object|post_processor|tokenizer_padding|tokenizer_truncation|_.*|is_local|"
    r"local_files_only|init_inputs|trust_remote_code|fast_tokenizer_files|.*template.*|files_loaded"
)
_COUNT = re.compile(r"extra_ids|offset|(num|n)_.*")
"""Numbers of tokens that a class makes."""

MAX_ADDED, MAX_EXTRA, MAX_MADE = 20_000, 2_000, 10_000
"""The most added tokens of the options, the most that have no name, and the most that are made."""

_MAX_BYTES = 2**22
"""Of an older file of special or added tokens."""


def tokenizer_class(folder: Path, config: Any, options: Mapping[str, Any], library: Any) -> Any:
    """Return the class that `AutoTokenizer.from_pretrained` takes for a folder.

    Args:
        folder: with a tokenizer.json.
        config: of the model; None: of no model of Transformers.
        options: the content of tokenizer_config.json.
        library: Transformers.

    Raises:
        CheckpointError: the name of the class is no name.
    """
    auto = library.models.auto.tokenization_auto
    generic = library.PreTrainedTokenizerFast
    named = options.get("tokenizer_class")
    hub = named or getattr(config, "tokenizer_class", None)
    for name in (named, hub):
        if name is not None and not (isinstance(name, str) and _NAME.fullmatch(name)):
            raise CheckpointError(
                f"{folder / TOKENIZER_CONFIG}: tokenizer_class ({str(name)[:100]!r}) must be the "
                "name of a class"
            )
    model_type = getattr(config, "model_type", None)
    registered = (auto.TOKENIZER_MAPPING_NAMES.get(model_type) or "").removesuffix("Fast")
    known_wrong = auto.MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS
    is_wrong = not known_wrong.isdisjoint({model_type, getattr(config, "model_name", None)})
    if hub and not options.get("auto_map"):
        bare = hub.removesuffix("Fast")
        if (
            bare == "LlamaTokenizer"
            and registered != _MISTRAL
            and not is_wrong
            and _has_byte_level(folder)
        ):
            return generic
        if registered and registered != bare:
            if registered not in (*_GENERIC, _MISTRAL):
                kind = auto.tokenizer_class_from_name(registered if is_wrong else hub)
                if kind is not None and kind.__name__ not in _GENERIC:
                    return kind
            return generic
    if hub:
        bare = hub.removesuffix("Fast")
        kind = auto.tokenizer_class_from_name(bare) or auto.tokenizer_class_from_name(hub)
        return generic if kind is None or kind.__name__ in _GENERIC else kind
    kind = auto.TOKENIZER_MAPPING.get(type(config), None)
    return generic if kind is None or kind.__name__ in (*_GENERIC, _MISTRAL) else kind


def open_tokenizer(folder: Path, config: Any, options: Mapping[str, Any], library: Any) -> Any:
    """Open the tokenizer of a folder, which was checked, by the class of `AutoTokenizer`.

    It is in a tokenizer.json, or in `PAIRS`.

    Raises:
        CheckpointError: the class does not read tokenizer.json, an option is out of range, or
            the class rejects the file.
    """
    names = ("vocab_file", "merges_file")
    in_pairs = dict(zip(names, PAIRS, strict=True)) if is_in_pairs(folder) else {}
    held = in_pairs or {"tokenizer_file": TOKENIZER}
    path = folder / next(iter(held.values()))
    with quiet():
        kind = tokenizer_class(folder, config, options, library)
    _require_read(folder, kind, options, library)
    if not {*in_pairs.values()} <= {*kind.vocab_files_names.values()}:
        raise CheckpointError(f"{path}: {kind.__name__} does not read it; save the tokenizer again")
    where = folder / TOKENIZER_CONFIG
    _require_sizes(where, options)
    kept = {key: value for key, value in options.items() if not _DROPPED.fullmatch(key)}
    older = {key: name for key, name in _LEGACY.items() if (folder / name).exists()}
    for name in older.values():
        _require_sizes(folder / name, read_json(folder, name, _MAX_BYTES))
    try:
        with quiet(), ExitStack() as stack:
            files = {
                key: str(stack.enter_context(path_of_open_file(folder, name, MAX_BYTES[TOKENIZER])))
                for key, name in {**held, **older}.items()
            }
            return kind._from_pretrained(
                files, str(folder), kept, local_files_only=True, _is_local=True
            )
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        first = str(error).strip().splitlines() or [type(error).__name__]
        raise CheckpointError(
            f"{path} is not a readable tokenizer: {kind.__name__}: {first[0][:300]}"
        ) from error


def _require_read(folder: Path, kind: Any, options: Mapping[str, Any], library: Any) -> None:
    """Check that a class reads tokenizer.json, and nothing else."""
    if not (isinstance(kind, type) and issubclass(kind, library.PreTrainedTokenizerFast)):
        raise CheckpointError(
            f"{folder / TOKENIZER}: Transformers reads this folder by {kind.__name__}, whose "
            "tokens may be others; if tokenizer.json is right, name TokenizersBackend as "
            f"tokenizer_class in {TOKENIZER_CONFIG}"
        )
    if (folder / _TEKKEN).exists() and find_spec("mistral_common") is not None:
        raise CheckpointError(
            f"{folder / _TEKKEN}: Transformers reads it and not tokenizer.json; remove one of them"
        )
    others = options.get("fast_tokenizer_files") or [TOKENIZER]
    if others != [TOKENIZER]:
        raise CheckpointError(
            f"{folder / TOKENIZER_CONFIG}: fast_tokenizer_files names other files than {TOKENIZER}"
        )
    if options.get("init_inputs"):
        raise CheckpointError(
            f"{folder / TOKENIZER_CONFIG}: init_inputs are arguments without a name; remove them"
        )


def _require_sizes(where: Path, options: Mapping[str, Any]) -> None:
    """Bound the lists and numbers of the options of which tokens are made.

    The library compares each token without a name with all that were added.
    """
    if len(options) > MAX_ADDED:
        raise CheckpointError(f"{where}: {len(options):,} entries, at most {MAX_ADDED:,}")
    for key, value in options.items():
        most = MAX_ADDED if key == "added_tokens_decoder" else MAX_EXTRA
        if isinstance(value, list | dict) and len(value) > most:
            raise CheckpointError(f"{where}: {key} has {len(value):,} entries, at most {most:,}")
        is_count = isinstance(value, int | float) and _COUNT.fullmatch(key)
        if is_count and value > MAX_MADE:
            raise CheckpointError(f"{where}: {key} ({value:,}) must be at most {MAX_MADE:,}")


def _has_byte_level(folder: Path) -> bool:
    return is_in_pairs(folder) or b'"ByteLevel"' in read_file(
        folder, TOKENIZER, MAX_BYTES[TOKENIZER]
    )
