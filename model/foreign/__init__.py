"""Checkpoints of the library Hugging Face Transformers, read and traced as they are.

    served = load_foreign("./gpt2", device="cpu", dtype=torch.float32)   # a `Served`
    trace(served, "The cat sat")

`headlight.load("./gpt2")` calls it for a folder whose config.json has a ``model_type``
(`is_foreign`). The extra `hf` installs Transformers, which is imported when the first foreign model
is loaded and never before.

    folder               read and check the files of an untrusted folder; no Transformers
    readme               a card from its README
    loading              config and weights → a model, with nothing missing and nothing left over
    tokenizer            tokens with offsets and words
    chat                 messages → a text by the folder's template, and the roles in it
    chat_process         a template in Jinja, rendered in a process with bounds
    piece_names          names of tokens, one for each id
    tokenizer_parts      checks of a tokenizer before it is opened
    tokenizer_class      the class by which AutoTokenizer would open it
    sentencepiece        tokenizers that come without a tokenizer.json
    attention            Transformers' attention interface: the file's own code as a kernel
    operations           watch the operations of a model file without the interface
    points               the state of a pass, and the hook points of its attentions
    probe                record one pass: the calls of all modules and the attentions
    naming               name the sites of the layers by the numbers of the recorded pass
    residual_stream      the sites of the stream, the norms and the feed-forward network
    writes               what each part adds to the stream, behind a norm or times a factor
    routers              the choices of a mixture of experts
    outputs              the output: tokens, labels, a score, an answer, or hidden states
    segments             the types of the tokens of a pair
    sites                the sites, and the modules and calls behind them
    attention_facts      the scale, cap, window, bias and sink of each softmax
    matrices             W_Q, W_K, W_V and W_O by head, and the tables
    graph                the norms and matrices of the graph of writers and readers
    positions            the positional encoding
    rotations            rotations that depend on the length of the text
    installing           let the named tensors pass their hook points
    passes               read texts, and capture or edit what passes the sites
    deferred             tensors (query, key) that are computed one block at a time
    logit_lens           the logit lens, by stepping over the layers
    pooling              the pooling that makes the vector of a text
    decoding             the settings of decoding that a folder names
    generation           continue texts with the model's own cache
    checks               the self-check, which decides what a model offers
    blockwise_check      its part that proves the blocks
    model                `load_foreign` and `ForeignModel`, which is `Served`
    gguf_file            a GGUF file, converted to a folder
    live                 a model that is in memory, served through a copy with its parameters
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headlight.model.foreign.folder import is_foreign, read_folder

if TYPE_CHECKING:
    from headlight.model.foreign.model import ForeignModel

__all__ = ["is_foreign", "load_foreign", "load_live", "read_folder"]


def load_foreign(*args: Any, **kwargs: Any) -> ForeignModel:
    """As `model.load_foreign`, whose file is imported when it is first called."""
    from headlight.model.foreign.model import load_foreign as load

    return load(*args, **kwargs)


def load_live(*args: Any, **kwargs: Any) -> ForeignModel:
    """As `live.load_live`, whose file is imported when it is first called."""
    from headlight.model.foreign.live import load_live as load

    return load(*args, **kwargs)
