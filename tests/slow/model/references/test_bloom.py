"""BLOOM: a decoder whose heads know distances by ALiBi, with a norm on its embedding."""

import pytest
import torch
from torch import nn
from transformers import BloomConfig, BloomForCausalLM

from headlight.model.config import TransformerConfig
from headlight.model.transformer import Transformer

N_HEADS = 6  # no power of two, so the slopes come from two series
NAMES = {
    r"^transformer\.word_embeddings_layernorm": "decoder.embedding.norm",
    r"^transformer\.word_embeddings": "decoder.embedding.vectors",
    r"^transformer\.ln_f": "decoder.norm",
    r"^transformer\.h": "decoder.layers",
    r"input_layernorm": "attention_norm",
    r"post_attention_layernorm": "feed_forward_norm",
    r"self_attention\.dense": "self_attention.output_projection",
    r"mlp\.dense_h_to_4h": "feed_forward.up_projection",
    r"mlp\.dense_4h_to_h": "feed_forward.down_projection",
}


@pytest.fixture
def reference(redraw):
    model = BloomForCausalLM(
        BloomConfig(
            vocab_size=60, hidden_size=48, n_layer=2, n_head=N_HEADS, layer_norm_epsilon=1e-3
        )
    )
    model.set_attn_implementation("eager")
    for block in model.transformer.h:
        block.mlp.gelu_impl = nn.GELU()  # theirs is an approximation by tanh, and fixed
    redraw(model)
    return model


@pytest.fixture
def model(reference, rename):
    """Ours, with the weights of the reference."""
    weights = dict(reference.state_dict())
    del weights["lm_head.weight"]  # the embedding once more
    for name in [name for name in weights if "query_key_value" in name]:
        # Theirs lie head by head: the query's rows, the key's, the value's, then the next head's.
        parts = weights.pop(name).unflatten(0, (N_HEADS, 3, -1)).unbind(1)
        for part, tensor in zip(("query", "key", "value"), parts, strict=True):
            weights[name.replace("query_key_value", f"{part}_projection")] = tensor.flatten(0, 1)
    model = Transformer(
        TransformerConfig(
            n_layers=2,
            n_heads=N_HEADS,
            d_model=48,
            d_ff=192,
            vocab_size=60,
            max_tokens=16,
            positional="alibi",
            norm_epsilon=1e-3,
            has_embedding_norm=True,
            scales_embedding=False,
            attention_bias=True,
        )
    )
    model.load_weights(rename(weights, NAMES))
    return model.eval()


def test_every_state_weight_and_logit_is_blooms(reference, model, ids, by_layer, assert_agrees):
    """Theirs adds slope · key, ours −slope · (query − key): a row's scores differ by a constant."""
    with torch.no_grad(), model.capture(["*"]) as captured:
        expected = reference(ids, output_attentions=True, output_hidden_states=True)
        model(ids)
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
