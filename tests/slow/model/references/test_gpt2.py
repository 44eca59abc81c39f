"""GPT-2: a decoder with learned positions, norms before the parts, and biases everywhere."""

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from headlight.model.config import TransformerConfig
from headlight.model.transformer import Transformer

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


@pytest.fixture
def reference(redraw):
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=60,
            n_positions=16,
            n_embd=32,
            n_layer=2,
            n_head=4,
            n_inner=48,
            activation_function="gelu",
            layer_norm_epsilon=1e-3,
        )
    )
    model.set_attn_implementation("eager")
    redraw(model)
    return model


@pytest.fixture
def model(reference, rename):
    """Ours, with the weights of the reference."""
    weights = dict(reference.state_dict())
    del weights["lm_head.weight"]  # the embedding once more
    for name in [name for name in weights if ".c_" in name and name.endswith(".weight")]:
        weights[name] = weights[name].T  # theirs multiply from the right
    for name in [name for name in weights if ".c_attn." in name]:
        parts = weights.pop(name).chunk(3)
        for part, tensor in zip(("query", "key", "value"), parts, strict=True):
            weights[name.replace("attn.c_attn", f"self_attention.{part}_projection")] = tensor
    model = Transformer(
        TransformerConfig(
            n_layers=2,
            n_heads=4,
            d_model=32,
            d_ff=48,
            vocab_size=60,
            max_tokens=16,
            positional="learned",
            norm_epsilon=1e-3,
            scales_embedding=False,
            attention_bias=True,
        )
    )
    model.load_weights(rename(weights, NAMES))
    return model.eval()


@pytest.mark.parametrize("is_padded", [False, True])
def test_every_state_weight_and_logit_is_gpt2s(
    reference, model, ids, is_token, is_padded, by_layer, assert_agrees
):
    mask = is_token if is_padded else torch.ones_like(is_token)
    with torch.no_grad(), model.capture(["*"]) as captured:
        expected = reference(
            ids, attention_mask=mask.long(), output_attentions=True, output_hidden_states=True
        )
        logits = model(ids, is_token=is_token if is_padded else None).logits
    *before, last = expected.hidden_states
    assert_agrees(
        {**captured, "last": model.decoder.norm(captured["decoder.layers.1.residual.after"])},
        {
            **by_layer(before, "decoder", "residual.before"),
            **by_layer(expected.attentions, "decoder", "self_attention.weights"),
            "last": last,
            "logits": expected.logits,
        },
    )
    assert logits is captured["logits"]
