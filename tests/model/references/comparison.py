"""Comparisons with the models of Hugging Face.

A reference is built from its config, its weights are redrawn so that each of them matters, and they
are copied into a model of this package. Then both read the same ids.
"""

import re

import torch

from headlight.model.config import TransformerConfig
from headlight.model.transformer import Transformer

ATOL = 1e-5
SIZES = {
    "n_layers": 2,
    "n_heads": 4,
    "d_model": 32,
    "d_ff": 48,
    "vocab_size": 60,
    "max_tokens": 16,
    "norm_epsilon": 1e-3,
    "scales_embedding": False,
    "attention_bias": True,
}
IDS = torch.randint(1, 60, (3, 11), generator=torch.Generator().manual_seed(7))
"""Three rows of eleven tokens, without token 0, which is padding."""
IS_TOKEN = torch.arange(11) < torch.tensor([11, 7, 1])[:, None]
"""Rows of 11, 7 and 1 tokens; what follows is padding."""


def redrawn(reference):
    """Draw all weights large enough that attention is far from even, and switch dropout off."""
    reference.set_attn_implementation("eager")
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in reference.parameters():
            if parameter.ndim == 1:
                parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
            elif parameter.requires_grad:
                parameter.normal_(0.0, 0.25, generator=generator)
    return reference.eval()


def weights_of(reference):
    """Return the weights of a reference without its output layer, which is tied."""
    weights = reference.state_dict()
    return {name: tensor for name, tensor in weights.items() if name != "lm_head.weight"}


def renamed(weights, names):
    """Rename their weights to ours by a table of patterns, applied from top to bottom."""
    by_name = {}
    for name, tensor in weights.items():
        for theirs, ours in names.items():
            name = re.sub(theirs, ours, name)
        name = re.sub(r"norm\.weight$", "norm.scale", name)
        by_name[re.sub(r"norm\.bias$", "norm.shift", name)] = tensor.clone()
    return by_name


def model_of(weights, **choices):
    """Return our model with these weights."""
    model = Transformer(TransformerConfig(**{**SIZES, **choices}))
    model.load_weights(weights)
    return model.eval()


def by_layer(tensors, stack, site):
    """Return one tensor a layer, by site: ``by_layer(x, "decoder", "residual.before")``."""
    return {f"{stack}.layers.{layer}.{site}": tensor for layer, tensor in enumerate(tensors)}


def read_both(reference, model, *, is_padded=False, **asked):
    """Read the same ids by both: the output of the reference, and the activations of ours."""
    mask = IS_TOKEN if is_padded else torch.ones_like(IS_TOKEN)
    target = asked.get("decoder_input_ids")
    texts = (IDS,) if target is None else (IDS, target)
    wanted = {"output_attentions": True, "output_hidden_states": True, **asked}
    with torch.no_grad(), model.capture(["*"]) as captured:
        expected = reference(IDS, attention_mask=mask.long(), **wanted)
        model(*texts, is_token=IS_TOKEN if is_padded else None)
    return expected, captured


def assert_agrees(captured, expected):
    """Compare what was captured, site by site, with what the reference gives there."""
    for site, tensor in expected.items():
        torch.testing.assert_close(
            captured[site], tensor, rtol=0, atol=ATOL, msg=lambda text, at=site: f"{at}: {text}"
        )


def assert_decoder_agrees(reference, model, *, is_padded=False, **asked):
    """Compare every state, weight and logit of a decoder with its norms before its parts."""
    expected, captured = read_both(reference, model, is_padded=is_padded, **asked)
    *before, last = expected.hidden_states
    theirs = {
        **by_layer(before, "decoder", "residual.before"),
        **by_layer(expected.attentions, "decoder", "self_attention.weights"),
        "last": last,
        "logits": expected.logits,
    }
    if asked.get("output_router_logits"):
        routed = [logits.view(*IDS.shape, -1) for logits in expected.router_logits]
        theirs |= by_layer(routed, "decoder", "experts.router_logits")
    last_norm = model.decoder.norm(captured["decoder.layers.1.residual.after"])
    assert_agrees({**captured, "last": last_norm}, theirs)
    return captured
