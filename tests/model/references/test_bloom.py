"""BLOOM: a decoder whose heads know distances by ALiBi, with a norm on its embedding."""

from torch import nn
from transformers import BloomConfig, BloomForCausalLM

from tests.model.references.comparison import (
    assert_decoder_agrees,
    model_of,
    redrawn,
    renamed,
    weights_of,
)

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
THEIRS = BloomConfig(
    vocab_size=60, hidden_size=48, n_layer=2, n_head=N_HEADS, layer_norm_epsilon=1e-3
)


def copy(reference):
    """Return our model with the weights of the reference."""
    weights = weights_of(reference)
    for name in [name for name in weights if "query_key_value" in name]:
        # Theirs lie head by head: the query's rows, the key's, the value's, then the next head's.
        parts = weights.pop(name).unflatten(0, (N_HEADS, 3, -1)).unbind(1)
        for part, tensor in zip(("query", "key", "value"), parts, strict=True):
            weights[name.replace("query_key_value", f"{part}_projection")] = tensor.flatten(0, 1)
    choices = {"positional": "alibi", "has_embedding_norm": True}
    return model_of(renamed(weights, NAMES), n_heads=N_HEADS, d_model=48, d_ff=192, **choices)


def test_every_state_weight_and_logit_is_blooms():
    """Theirs adds slope · key, ours −slope · (query − key): a row's scores differ by a constant."""
    reference = BloomForCausalLM(THEIRS)
    for block in reference.transformer.h:
        block.mlp.gelu_impl = nn.GELU()  # theirs is an approximation by tanh, and fixed
    redrawn(reference)
    assert_decoder_agrees(reference, copy(reference))
