"""Models that ship, as experiments read them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.checkpoint.loading import find_model, load_checkpoint
from headlight.model.interventions.intervention import Intervention
from headlight.model.trace import Token
from headlight.model.tracing import trace


@lru_cache(maxsize=4)
def shipped(name: str) -> Checkpoint:
    """Load a model once; nobody may change it. The errors are those of `find_model`."""
    return load_checkpoint(find_model(name))


def predictions(
    model: str, text: str, interventions: Sequence[Intervention] = ()
) -> tuple[tuple[Token, ...], Float[Tensor, "token vocab"]]:
    """Return the tokens of a text, start token first, and ln P of what follows each, in float64."""
    found = trace(shipped(model), text, capture=["logits"], interventions=interventions)
    logits = torch.from_numpy(found.tensors["logits"].data).double()
    return tuple(found.tokens), logits.log_softmax(-1)
