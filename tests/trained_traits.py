"""Give a random model of Transformers what trained ones have, and tiny random ones never do.

- A massive activation: one feature of a few tokens is thousands of times larger than all else (Sun
  et al. 2024, https://arxiv.org/abs/2402.17762), with small norm scales where it is read.
- Sinks: the even heads rest on such a token, as trained ones do on the first (Xiao et al. 2023,
  https://arxiv.org/abs/2309.17453).
- Heads that copy: head 1 of each layer attends to tokens like its own, and writes what it reads.
- Norms whose scales differ from feature to feature by more than a factor of ten. Those of a
  post-norm stream make the massive activation themselves (Kovaleva et al. 2021,
  https://arxiv.org/abs/2105.06990).
"""

import copy

import torch

from headlight.model.foreign.graph import norm_parts
from headlight.model.foreign.matrices import _matrix_of
from headlight.model.foreign.model import serve_module
from tests.tiny_checkpoints import make_model

MASSIVE, CONSTANT, SIZE = 3, 4, 2.5e4
"""The feature of massive activations, the one that all other tokens share, and how large."""
OUTLIER = 30.0
"""The scale of that feature in the norms of a post-norm stream."""
EVERY = 5
"""A massive activation is that of each fifth token of the vocabulary."""


def trained_like(name, task="causal", model=None, **changes):
    """Return a random model, or a given one, with the traits of trained ones."""
    model = model or make_model(name, **changes)
    seen = serve_module(copy.deepcopy(model), task, name)
    names = {id(module): path for path, module in seen.module.named_modules()}
    modules = dict(model.named_modules())
    torch.manual_seed(2)
    with torch.no_grad():
        for module in modules.values():
            if "norm" in type(module).__name__.lower() and hasattr(module, "weight"):
                _scale(module, OUTLIER if seen.config.norm_place == "post" else 0.01)
        for path, matrix in seen.named.matrices.items():
            _attend(_matrix_of(modules[names[id(matrix.module)]]), path, matrix.columns)
        for module in seen.named.projections.values():
            rows = _matrix_of(modules[names[id(module)]])
            rows.unflatten(0, (4, -1))[1] = 2 * torch.eye(rows.shape[0] // 4, rows.shape[1])
        table = model.get_input_embeddings().weight
        table[:, CONSTANT] = 3
        table[::EVERY, MASSIVE] = SIZE
    return model


def _scale(norm, massive):
    weight = norm.weight
    formula = norm_parts(norm, len(weight))
    start = 0 if formula is None else weight - formula.scale  # 1 less, in the files of Gemma
    weight.copy_(torch.randn_like(weight).exp() + start)
    if len(weight) == 32:
        weight[MASSIVE] = (massive + start)[MASSIVE] if torch.is_tensor(start) else massive
    if massive == OUTLIER and getattr(norm, "bias", None) is not None:
        torch.nn.init.normal_(norm.bias, std=0.5)


def _attend(weight, path, columns):
    by_head = weight[:, columns]  # d_model head d_head
    slow = torch.zeros(columns.shape[1])
    slow[3] = 1  # a direction that rotation hardly turns
    if path.endswith(".W_K"):
        by_head[MASSIVE] = 100 * slow
    if path.endswith(".W_Q"):
        by_head[CONSTANT] = 0
        by_head[CONSTANT, ::2] = slow
    if path.endswith(".W_V"):
        by_head[:, 1] = torch.eye(len(weight), columns.shape[1])
    weight[:, columns] = by_head
