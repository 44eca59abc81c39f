"""Marian: an encoder–decoder with fixed positions and norms after the parts, as in the paper."""

import pytest
import torch
from transformers import MarianConfig, MarianMTModel

from tests.model.references.comparison import (
    IDS,
    assert_agrees,
    by_layer,
    model_of,
    read_both,
    redrawn,
    renamed,
    weights_of,
)

D_MODEL = 32
NAMES = {
    r"^model\.shared": "encoder.embedding.vectors",
    r"^model\.": "",
    r"self_attn_layer_norm": "attention_norm",
    r"encoder_attn_layer_norm": "cross_attention_norm",
    r"final_layer_norm": "feed_forward_norm",
    r"self_attn\.": "self_attention.",
    r"encoder_attn\.": "cross_attention.",
    r"q_proj": "query_projection",
    r"k_proj": "key_projection",
    r"v_proj": "value_projection",
    r"out_proj": "output_projection",
    r"fc1": "feed_forward.up_projection",
    r"fc2": "feed_forward.down_projection",
}
# Theirs puts all sines before all cosines, ours each sine next to its cosine. Every weight that
# reads or writes the residual stream is put into our order, so the streams differ in nothing else.
ORDER = torch.arange(D_MODEL).view(2, -1).T.flatten()
WRITERS = ("output_projection", "down_projection")


THEIRS = MarianConfig(
    vocab_size=60,
    d_model=D_MODEL,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=48,
    decoder_ffn_dim=48,
    max_position_embeddings=16,
    activation_function="relu",
    scale_embedding=True,
    pad_token_id=0,
    eos_token_id=1,
    forced_eos_token_id=1,
    decoder_start_token_id=2,
)


def reorder(name, tensor):
    part, kind = name.split(".")[-2:]
    if part in WRITERS or part.endswith("norm"):
        return tensor[ORDER]
    return tensor[:, ORDER] if kind == "weight" else tensor


def copy(reference):
    """Return our model with the weights of the reference."""
    weights = {
        name: tensor
        for name, tensor in weights_of(reference).items()
        if not any(part in name for part in ("embed_", "final_logits_bias"))
    }
    tensors = {name: reorder(name, tensor) for name, tensor in renamed(weights, NAMES).items()}
    ours = {"norm_place": "post", "norm_epsilon": 1e-5, "activation": "relu"}
    return model_of(tensors, kind="encoder-decoder", scales_embedding=True, **ours)


@pytest.mark.parametrize("is_padded", [False, True])
def test_every_state_weight_and_logit_is_marians(is_padded):
    reference = redrawn(MarianMTModel(THEIRS))
    target = IDS.flip(0)[:, :8]
    expected, captured = read_both(
        reference, copy(reference), is_padded=is_padded, decoder_input_ids=target
    )
    embedded, *encoded = [state[..., ORDER] for state in expected.encoder_hidden_states]
    begun, *decoded = [state[..., ORDER] for state in expected.decoder_hidden_states]
    assert_agrees(
        captured,
        {
            "encoder.embedding.output": embedded,
            **by_layer(encoded, "encoder", "residual.after"),
            **by_layer(expected.encoder_attentions, "encoder", "self_attention.weights"),
            "decoder.embedding.output": begun,
            **by_layer(decoded, "decoder", "residual.after"),
            **by_layer(expected.decoder_attentions, "decoder", "self_attention.weights"),
            **by_layer(expected.cross_attentions, "decoder", "cross_attention.weights"),
            "logits": expected.logits,
        },
    )
