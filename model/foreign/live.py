"""Serve a model of Transformers that is in memory, and leave it as it was.

The hooks are installed in a copy that shares the parameters: the caller's module keeps its flags,
its hooks, its attention and its gradients, and no number is in memory twice. A step of training
changes both, because the numbers are the same.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from headlight.model.checkpoint.files import CheckpointError
from headlight.model.foreign.checks import Checked
from headlight.model.foreign.decoding import decoding_of
from headlight.model.foreign.folder import ForeignFolder
from headlight.model.foreign.loading import reason, task_of, unknown_output
from headlight.model.foreign.model import ForeignModel, serve_module
from headlight.model.foreign.tokenizer import ForeignTokenizer, read_tokenizer
from headlight.model.trace import Token

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_checked: WeakKeyDictionary[nn.Module, tuple[Hashable, Checked]] = WeakKeyDictionary()
"""The result of the self-check of a caller's module, and the state in which it was checked."""


def load_live(model: Any, tokenizer: Any = None, name: str | None = None) -> ForeignModel:
    """Serve a model of Transformers that is in memory; the model itself is not changed.

    A compiled or parallel model is unwrapped. The adapters of a PEFT model are merged in the copy,
    which then has the adapted matrices of its own. Hooks of the caller do not run in the copy. The
    self-check runs once for each state of the parameters; ``repr`` says its seconds.

    Args:
        model: on any device, in float32 or bfloat16, in training or not.
        tokenizer: of Transformers, or one with the methods of `TextTokenizer`; None: the model is
            asked by token ids.
        name: its id; None: the name that its config gives, or that of its class.

    Raises:
        TypeError: `model` is no model of Transformers, or `tokenizer` no tokenizer.
        CheckpointError: the model is no language model, cannot be copied, or has no attention that
            could be named and checked.
    """
    given, model = model, _unwrapped(model)
    config = getattr(model, "config", None)
    if not isinstance(model, nn.Module) or not hasattr(config, "get_text_config"):
        raise TypeError(
            f"load() takes the name of a model, a folder, or a model of Transformers, not a "
            f"{type(given).__name__}"
        )
    began = perf_counter()
    made = _copied(model)
    kinds = [kind.__name__ for kind in type(made).__mro__]
    is_pair = bool(getattr(made.config, "is_encoder_decoder", False))
    task, _ = task_of(made.config.model_type, kinds, is_pair=is_pair)
    name = name or str(made.config.name_or_path).rstrip("/").split("/")[-1] or kinds[0]
    if task is None:
        raise CheckpointError(f"{name}: {unknown_output(made.config.model_type, kinds[0])}")
    settings = getattr(made, "generation_config", None)
    decoding = decoding_of(settings.to_dict() if settings else {}, made.config, task, name)
    state = _state(model)
    known, checked = _checked.get(model, (None, None))
    served = serve_module(
        made,
        task,
        name,
        _read(tokenizer, made.config, decoding.start_ids),
        checked=checked if known == state else None,
        decoding=decoding,
    )
    _checked[model] = (state, served.checked)
    served.seconds = perf_counter() - began
    return served


def _unwrapped(model: Any) -> Any:
    while True:
        inner = getattr(model, "_orig_mod", None)  # of torch.compile
        if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
            inner = model.module
        if not isinstance(inner, nn.Module):
            return model
        model = inner


def _copied(model: Any) -> Any:
    """Return the model in eval mode with the same parameters, its own buffers and no hooks."""
    adapted = [each for each in model.modules() if hasattr(each, "base_layer")]
    own = {id(tensor) for each in adapted for tensor in each.base_layer.parameters()}
    memo: dict[int, Any] = {}
    for tensor in model.parameters():
        if tensor.is_meta:
            raise CheckpointError("the parameters of the model are not in memory, but on 'meta'")
        alias = tensor.detach()
        if id(tensor) in own:  # the adapters are merged into it
            alias = alias.clone()
        memo[id(tensor)] = nn.Parameter(alias, requires_grad=False)
    for module in model.modules():
        memo |= {id(getattr(module, hooks)): OrderedDict() for hooks in _HOOKS}
    try:
        with torch.no_grad():
            made = copy.deepcopy(model, memo)
            if hasattr(made, "merge_and_unload"):
                made = made.merge_and_unload()
            if made._can_set_experts_implementation():
                made.set_experts_implementation("eager")
    except Exception as error:  # whatever the modules hold
        kind = type(model).__name__
        raise CheckpointError(f"a {kind} cannot be copied: {reason(error)}") from error
    return made.requires_grad_(requires_grad=False).eval()


def _state(model: nn.Module) -> Hashable:
    """Return what a self-check depends on: the config, and the versions of the parameters."""
    config: Any = model.config
    versions = (
        (name, tensor.data_ptr(), tensor._version) for name, tensor in model.named_parameters()
    )
    return type(model), config.to_json_string(), tuple(versions)


def _read(tokenizer: Any, config: Any, start_ids: tuple[int, ...]) -> Any:
    """Return a caller's tokenizer as one of this project; its own settings do not change."""
    if tokenizer is None:
        return IdTokenizer()
    if all(hasattr(tokenizer, name) for name in ("encode_target", "text_of", "is_special")):
        return tokenizer
    if getattr(tokenizer, "backend_tokenizer", None) is not None:
        return ForeignTokenizer(copy.deepcopy(tokenizer), start_ids)
    if not hasattr(tokenizer, "save_pretrained"):
        raise TypeError(
            f"a {type(tokenizer).__name__} is no tokenizer of Transformers; leave it out, and ask "
            "the model by token ids"
        )
    with TemporaryDirectory() as folder:  # of SentencePiece, or of bytes
        tokenizer.save_pretrained(folder)
        members = {"config": config.to_dict(), "model_type": config.model_type}
        files = ForeignFolder(path=Path(folder), architecture=None, files={}, **members)
        return read_tokenizer(files, config, start_ids)


class IdTokenizer:
    """Names the tokens of a model without a tokenizer by their ids: ``<17>``."""

    mask_id = end_id = None
    special_ids: frozenset[int] = frozenset()
    vocab_size = 0

    def encode(self, text: str) -> list[Token]:
        """Refuse a text.

        Raises:
            ValueError: always.
        """
        raise ValueError("the model was loaded without a tokenizer; ask it by ids=[…]")

    encode_target = encode

    def decode(self, ids: Iterable[int]) -> str:
        """Return the names of the tokens, with spaces between them."""
        return " ".join(map(self.text_of, ids))

    def text_of(self, token: int) -> str:
        """Return the name of one token."""
        return f"<{token}>"

    def is_special(self, token: int) -> bool:
        """Return False: no token is known to be special."""
        return False
