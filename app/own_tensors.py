"""The page of attention weights that somebody else computed, for a notebook.

    headlight.show(tokens, model(**inputs, output_attentions=True).attentions)

Weights are taken as Transformers, TransformerLens and NumPy hold them. The page has the views that
need nothing but weights.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from tokenizers.decoders import ByteLevel

from headlight.model.trace import NamedArray, Token, Trace
from headlight.saved_page import SavedPage, shown

TOLERANCE = 2e-2
"""How far the sum of a row may be from 1: bfloat16 holds three digits of a weight."""

_PATTERN = re.compile(r"(?:.*\D)?(\d+)\D*\Z")
_SPECIAL = re.compile(r"\[[A-Z]+\d*\]|<[^\s<>]+>")
_BYTES = frozenset("ĠĊĉ")
Weights = Any
"""One array or one for each layer: of NumPy, PyTorch, JAX, or lists."""


def show(
    tokens: Sequence[str],
    attention: Weights = None,
    *,
    target_tokens: Sequence[str] | None = None,
    target_attention: Weights = None,
    cross_attention: Weights = None,
    name: str = "attention",
    height: int = 800,
) -> SavedPage:
    """Show attention weights as the page, in an output cell of a notebook.

    Args:
        tokens: their texts, as a tokenizer names them: ``Ġthe``, ``▁the`` and ``##s`` are read.
        attention: of the tokens to themselves: (layer, head, query, key), (head, query, key) or
            (query, key), with or without a batch of one; a list of layers; a cache of
            TransformerLens; or the path of a safetensors file. None: there is only a target's.
        target_tokens: of the decoder of an encoder–decoder.
        target_attention: of the target to itself.
        cross_attention: of the target to the tokens.
        name: of the model, as the page calls it.
        height: of the cell, in pixels.

    Raises:
        ValueError: lengths differ, a number is not finite, or a row does not sum to 1; the message
            names the layer, the head and the row.
        TypeError: `attention` is none of these.
    """
    source, tokens_read = _spelled(tokens)
    target, target_read = (None, None) if target_tokens is None else _spelled(target_tokens)
    n, m = len(tokens_read), len(target_read or ())
    given = {
        "encoder.self_attention": (attention, (n, n)),
        "decoder.self_attention": (target_attention, (m, m)),
        "decoder.cross_attention": (cross_attention, (m, n)),
    }
    if target_read is None:
        if target_attention is not None or cross_attention is not None:
            raise ValueError("weights of a target need target_tokens")
        del given["decoder.self_attention"], given["decoder.cross_attention"]
    tensors: dict[str, NamedArray] = {}
    for path, (weights, lengths) in given.items():
        if weights is None:
            continue
        stack, kind = path.split(".")
        layers = [_checked(each, layer, lengths) for layer, each in enumerate(_layers(weights))]
        if target_read is None and all(np.triu(each, 1).max(initial=0) == 0 for each in layers):
            stack = "decoder"
        for layer, array in enumerate(layers):
            axes = ("head", "query", "key")
            tensors[f"{stack}.layers.{layer}.{kind}.weights"] = NamedArray(axes, array)
    if not tensors:
        raise ValueError("there are no weights; give attention")
    trace = Trace(
        model=name,
        revision="",
        precision="float32",
        text=source,
        tokens=tokens_read,
        target=target,
        target_tokens=target_read,
        tensors=tensors,
    )
    return shown(trace, height)


def _layers(weights: Weights) -> list[np.ndarray]:
    """Return the weights (head, query, key) of each layer."""
    if isinstance(weights, str | Path):
        weights = _of_file(Path(weights))
    weights = getattr(weights, "cache_dict", weights)  # of TransformerLens
    if isinstance(weights, Mapping):
        named = {key: each for key, each in weights.items() if "pattern" in str(key)} or weights
        weights = [named[key] for key in sorted(named, key=_number)]
    is_list = isinstance(weights, list | tuple)
    if is_list and all(layer is None for layer in weights):
        raise ValueError("there are no weights; load the model with attn_implementation='eager'")
    is_list = is_list and _array(weights[0]).ndim > 2
    arrays = [_array(each) for each in (weights if is_list else [weights])]
    if is_list:
        return [_by_head(each) for each in arrays]
    (array,) = arrays
    if array.ndim == 5 and 1 in array.shape[:2]:  # a batch of one
        array = array[:, 0] if array.shape[1] == 1 else array[0]
    return [_by_head(each) for each in (array if array.ndim == 4 else [array])]


def _of_file(path: Path) -> dict[str, np.ndarray]:
    try:
        with safe_open(path, "numpy") as file:
            return {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise ValueError(f"{path} is no safetensors file: {error}") from error


def _number(key: Any) -> tuple[int, str]:
    match = _PATTERN.match(str(key))
    return (int(match[1]) if match else 0), str(key)


def _array(weights: Any) -> np.ndarray:
    weights = getattr(weights, "value", weights)  # of nnsight
    if hasattr(weights, "detach"):
        weights = weights.detach().float().cpu()
    try:
        return np.asarray(weights, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"attention is an array or a list of arrays of one length, not {type(weights).__name__}"
        ) from error


def _by_head(array: np.ndarray) -> np.ndarray:
    if array.ndim == 4 and len(array) == 1:
        array = array[0]
    if array.ndim not in (2, 3):
        raise ValueError(
            f"a layer of one text is (head, query, key); these weights have the shape {array.shape}"
        )
    return array if array.ndim == 3 else array[None]


def _checked(array: np.ndarray, layer: int, lengths: tuple[int, int]) -> np.ndarray:
    """Return the weights of a layer, whose rows are distributions over the keys.

    Raises:
        ValueError: they are not.
    """
    if array.shape[1:] != lengths:
        raise ValueError(
            f"layer {layer} has weights of {array.shape[1]} queries and {array.shape[2]} keys, but "
            f"there are {lengths[0]} and {lengths[1]} tokens"
        )
    with np.errstate(invalid="ignore"):
        sums = array.sum(-1)
        is_wrong = ~(abs(sums - 1) <= TOLERANCE) | (array.min(-1) < 0)
    if not is_wrong.any():
        return array
    head, row = map(int, np.argwhere(is_wrong)[0])
    where = f"layer {layer}, head {head}, row {row}"
    values = array[head, row]
    if np.isnan(values).any():
        raise ValueError(f"{where} holds NaN")
    if np.isinf(values).any() or values.min() < 0:
        least = f"{values.min():.3g}"
        raise ValueError(f"{where} holds {least}: these are scores; give them after the softmax")
    raise ValueError(f"{where} sums to {sums[head, row]:.4g}; the weights of a row sum to 1")


def _spelled(tokens: Iterable[str]) -> tuple[str, tuple[Token, ...]]:
    """Return the text that the tokens spell, and the tokens with their places in it."""
    names = [str(token) for token in tokens]
    if not names:
        raise ValueError("there are no tokens")
    is_special = [bool(_SPECIAL.fullmatch(name)) for name in names]
    typed = [name for name, special in zip(names, is_special, strict=True) if not special]
    if any(_BYTES.intersection(name) for name in typed):
        pieces = [ByteLevel().decode([name]) for name in names]
    elif any(name.startswith("▁") for name in typed):
        pieces = [name.replace("▁", " ") for name in names]
    elif any(name != name.strip() for name in typed):
        pieces = names
    else:
        pieces = [name[2:] if name.startswith("##") else f" {name}" for name in names]
    words, text, word, read = count(), "", None, []
    for number, (name, piece, special) in enumerate(zip(names, pieces, is_special, strict=True)):
        shown_name = name if special else (piece if text else piece.lstrip())
        start = len(text)
        if not special:
            begins = word is None or piece[:1].isspace() or not shown_name[:1].isalnum()
            word = next(words) if begins else word
            text += shown_name
        blanks = len(shown_name) - len(shown_name.lstrip()) if not special else 0
        read.append(
            Token(
                id=number,
                text=shown_name,
                start=start + blanks,
                end=len(text),
                word=None if special else word,
                is_special=special,
            )
        )
        word = None if special else word
    return text, tuple(read)
