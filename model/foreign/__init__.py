"""Checkpoints of the library Hugging Face Transformers, read and traced as they are.

    served = load_foreign("./gpt2", device="cpu", dtype=torch.float32)   # a `Served`
    trace(served, "The cat sat")

`headlight.load("./gpt2")` calls it for a folder whose config.json has a ``model_type``
(`is_foreign`). The extra `hf` installs Transformers, which is imported when the first foreign model
is loaded and never before.

    folder       read and check the files of an untrusted folder; no Transformers
    loading      config and weights → a model, with nothing missing and nothing left over
    attention    watch each softmax while the model file's own code computes it
    probe        record one pass: the calls of all modules and the attentions
    layering     find the layers of each stack among the recorded calls
    naming       name the sites by comparing the recorded numbers
    terms        the scale, cap, window, bias and sink of each softmax
    streams      the residual stream, the norms and the feed-forward network
    matrices     W_Q, W_K, W_V and W_O by head, and the tables
    routers      the choices of a mixture of experts
    installing   let the named tensors pass their hook points
    checks       the self-check, which decides what a model offers
    exits        the logit lens, by stepping over the layers
    positions    the positional encoding
    tokenizer    tokens with offsets and words
    writing      generation with a cache
    model        `load_foreign` and `ForeignModel`, which is `Served`
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headlight.model.foreign.folder import ForeignFolderError, is_foreign, read_folder

if TYPE_CHECKING:
    from headlight.model.foreign.model import ForeignModel

__all__ = ["ForeignFolderError", "is_foreign", "load_foreign", "read_folder"]


def load_foreign(*args: Any, **kwargs: Any) -> ForeignModel:
    """As `model.load_foreign`, whose file is imported when it is first called."""
    from headlight.model.foreign.model import load_foreign as load

    return load(*args, **kwargs)
