"""The pooling that a folder of sentence-transformers names: how the vector of a text is made.

A folder without modules.json is pooled as that library does it: by the mean over its tokens.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headlight.model.checkpoint.files import CheckpointError
from headlight.model.description import MODES, Pooling
from headlight.model.foreign.folder import MODULES, POOLING, SENTENCES, read_any_json, read_json

_NAMES = {"mean_tokens": "mean", "cls_token": "cls", "max_tokens": "max", "lasttoken": "last"}
_PREFIX = "pooling_mode_"


def read_pooling(folder: Path, config: Any) -> tuple[Pooling | None, str]:
    """Return the pooling of a folder, or None and the reason why its vectors are not offered.

    Args:
        folder: checked.
        config: of the model.

    Raises:
        CheckpointError: a file is damaged, or names another width.
    """
    if not (folder / MODULES).exists():
        return Pooling(), ""
    modules = read_any_json(folder, MODULES)
    if not isinstance(modules, list) or not all(isinstance(each, dict) for each in modules):
        raise CheckpointError(f"{folder / MODULES}: must be a list of modules")
    kinds = [str(each.get("type", "")).rpartition(".")[2] for each in modules]
    if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
        return None, f"{MODULES} lists {', '.join(kinds)[:100]}, and not all of it is read"
    if str(where := modules[1].get("path")) != Path(POOLING).parent.name:
        return None, f"{MODULES} says that its pooling lies in {str(where)[:100]!r}: it is not read"
    options = read_json(folder, POOLING)
    width = getattr(config.get_text_config(), "hidden_size", None)
    said = options.get("word_embedding_dimension", options.get("embedding_dimension", width))
    if said != width:
        raise CheckpointError(
            f"{folder / POOLING}: word_embedding_dimension ({said!r}) must be the width of the "
            f"model, {width}"
        )
    chosen = [name for name, value in options.items() if name.startswith(_PREFIX) and value is True]
    named = options.get("pooling_mode")
    modes = [named] if named else [_NAMES.get(name.removeprefix(_PREFIX)) for name in chosen]
    (mode,) = modes if len(modes) == 1 else (None,)
    if mode not in MODES or options.get("include_prompt") is False:
        names = str(named or ", ".join(chosen))[:100]
        return None, f"{POOLING} names no pooling that is read: {names or 'none at all'}"
    limits = read_json(folder, SENTENCES) if (folder / SENTENCES).exists() else {}
    if limits.get("do_lower_case"):
        return None, f"{SENTENCES} has each text written in small letters first"
    longest: Any = limits.get("max_seq_length")
    is_limit = type(longest) is int and longest > 0
    return Pooling(mode, kinds[2:] == ["Normalize"], longest if is_limit else None), ""
