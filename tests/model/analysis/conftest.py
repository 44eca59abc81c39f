"""Traces written by hand, and traces of tiny models with the weights that made them."""

import numpy as np
import pytest
import torch

from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.description import Description
from headlight.model.trace import NamedArray, Token, Trace

AXES = {
    "weights": ("head", "query", "key"),
    "values": ("head", "key", "d_head"),
    "residual.before": ("query", "d_model"),
    "residual.middle": ("query", "d_model"),
    "context": ("head", "query", "d_head"),
    "after": ("query", "d_model"),
    "output": ("query", "d_model"),
    "router_probs": ("query", "expert"),
    "expert_indices": ("query", "top_k"),
    "logits": ("query", "vocab"),
    "output_projection.weight": ("head", "d_head", "d_model"),
    "vectors.weight": ("vocab", "d_model"),
    "scale": ("d_model",),
    "shift": ("d_model",),
}
BOUNDARIES = ("<s>", "</s>")


def named(arrays):
    """Arrays by site, each with the axes that the end of its site's name determines."""
    by_name = {}
    for site, values in arrays.items():
        data = np.asarray(values)
        data = data.astype(np.float32 if data.dtype.kind == "f" else np.int32)
        longest_first = sorted(AXES, key=len, reverse=True)
        by_name[site] = NamedArray(
            AXES[next(end for end in longest_first if site.endswith(end))], data
        )
    return by_name


@pytest.fixture(scope="session")
def make_tokens():
    """Tokens of a text cut at spaces: ``<s> un +believ +able story </s>`` has two words."""

    def make(text):
        pieces = text.split()
        ids = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
        tokens, word = [], -1
        for place, piece in enumerate(pieces):
            is_special = piece in BOUNDARIES
            word += not is_special and not piece.startswith("+")
            tokens.append(
                Token(
                    id=ids[piece],
                    text=piece,
                    start=place,
                    end=place if is_special else place + 1,
                    word=None if is_special else word,
                    is_special=is_special,
                )
            )
        return tuple(tokens)

    return make


@pytest.fixture(scope="session")
def make_trace(make_tokens):
    """Return a function for traces: ``make_trace({site: numbers}, "<s> a b")``."""

    def make(arrays, text="", *, target=None, heads=None):
        return Trace(
            model="any",
            revision="1",
            precision="float32",
            text=text,
            tokens=make_tokens(text),
            target_tokens=None if target is None else make_tokens(target),
            tensors=named(arrays),
            heads=heads,
        )

    return make


@pytest.fixture(scope="session")
def make_parameters():
    return named


@pytest.fixture(scope="session")
def random_weights():
    """Attention weights drawn at random: ``random_weights(n_heads, n_queries, n_keys)``."""

    def draw(n_heads, n_queries, n_keys, *, is_causal=False, seed=0):
        weights = np.random.default_rng(seed).exponential(size=(n_heads, n_queries, n_keys))
        weights = np.tril(weights) if is_causal else weights
        return weights / weights.sum(axis=-1, keepdims=True)

    return draw


@pytest.fixture(scope="session")
def read():
    """Return a model's trace of token ids, with every site that it has."""

    def trace(model, ids, *inputs, heads=None):
        axes = {site.name: site.axes for site in model.sites}
        with torch.inference_mode(), model.capture(["*"], heads=heads) as captured:
            model(*(torch.tensor([row]) for row in (ids, *inputs)))
        tensors = {}
        for site, tensor in captured.items():
            has_batch = axes[site][0] == "batch"
            data = (tensor[0] if has_batch else tensor).detach().numpy()
            tensors[site] = NamedArray(axes[site][has_batch:], data)
        return Trace(
            model="tiny",
            revision="1",
            precision="float32",
            text="",
            tokens=(),
            tensors=tensors,
            heads=heads,
        )

    return trace


@pytest.fixture(scope="session")
def parameters_of():
    """Return a model's weights as analyses take them; W_O is cut by heads."""

    def named_parameters(model):
        by_name = {}
        for name, parameter in model.named_parameters():
            if (end := next((end for end in AXES if name.endswith(end)), None)) is None:
                continue
            data = parameter.detach()
            if end.startswith("output_projection"):
                data = data.T.unflatten(0, (model.config.n_heads, -1))
            if len(AXES[end]) == data.ndim:
                by_name[name] = NamedArray(AXES[end], data.numpy())
        return by_name

    return named_parameters


@pytest.fixture(scope="session")
def checkpoint_of(tokenizer, card):
    """Return a model with its metadata: ``checkpoint_of(model, attentions)``."""

    def make(model, attentions=()):
        description = Description(
            id="tiny", config=model.config, card=card, revision="1", n_parameters=0,
            sites=tuple(model.sites), attentions=tuple(attentions),
        )  # fmt: skip
        return Checkpoint(model=model, tokenizer=tokenizer, description=description)

    return make
