"""GPT-2: a decoder with learned positions, norms before the parts, and biases everywhere."""

import pytest
from transformers import GPT2Config, GPT2LMHeadModel

from tests.model.references.comparison import (
    assert_decoder_agrees,
    model_of,
    redrawn,
    renamed,
    weights_of,
)

NAMES = {
    r"^transformer\.wte": "decoder.embedding.vectors",
    r"^transformer\.wpe": "decoder.embedding.positions",
    r"^transformer\.ln_f": "decoder.norm",
    r"^transformer\.h": "decoder.layers",
    r"ln_1": "attention_norm",
    r"ln_2": "feed_forward_norm",
    r"attn\.c_proj": "self_attention.output_projection",
    r"mlp\.c_fc": "feed_forward.up_projection",
    r"mlp\.c_proj": "feed_forward.down_projection",
}
THEIRS = GPT2Config(
    vocab_size=60,
    n_positions=16,
    n_embd=32,
    n_layer=2,
    n_head=4,
    n_inner=48,
    activation_function="gelu",
    layer_norm_epsilon=1e-3,
)


def copy(reference, **sizes):
    """Return our model with the weights of the reference."""
    weights = weights_of(reference)
    for name in [name for name in weights if ".c_" in name and name.endswith(".weight")]:
        weights[name] = weights[name].T  # theirs multiply from the right
    for name in [name for name in weights if ".c_attn." in name]:
        parts = weights.pop(name).chunk(3)
        for part, tensor in zip(("query", "key", "value"), parts, strict=True):
            weights[name.replace("attn.c_attn", f"self_attention.{part}_projection")] = tensor
    return model_of(renamed(weights, NAMES), positional="learned", **sizes)


@pytest.mark.parametrize("is_padded", [False, True])
def test_every_state_weight_and_logit_is_gpt2s(is_padded):
    reference = redrawn(GPT2LMHeadModel(THEIRS))
    assert_decoder_agrees(reference, copy(reference), is_padded=is_padded)
