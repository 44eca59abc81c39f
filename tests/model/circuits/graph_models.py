"""Small random models in float64, as they are served, for the tests of graphs."""

import torch

from headlight.model.checkpoint.card import ModelCard
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.checkpoint.loading import _attentions
from headlight.model.config import TransformerConfig
from headlight.model.description import Description
from headlight.model.transformer import Transformer

SIZES = {"n_layers": 2, "n_heads": 4, "d_model": 32, "d_ff": 48, "vocab_size": 50, "max_tokens": 16}


def served(model=None, **changes):
    """Return a model as it is served; None: a random one, whose sizes may be changed."""
    if model is None:
        torch.manual_seed(3)
        model = Transformer(TransformerConfig(**{**SIZES, **changes})).double().eval()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
    description = Description(
        id="tiny",
        config=model.config,
        card=ModelCard(title="Tiny", licence="MIT"),
        revision="1",
        n_parameters=0,
        sites=tuple(model.sites),
        attentions=tuple(_attentions(model.config)),
    )
    return Checkpoint(model=model, tokenizer=None, description=description)
