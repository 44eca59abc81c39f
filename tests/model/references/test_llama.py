"""Llama and Mixtral: RMSNorm, rotary positions, shared keys and values, SwiGLU; then experts."""

import pytest
from transformers import LlamaConfig, LlamaForCausalLM, MixtralConfig, MixtralForCausalLM

from headlight.model.config import ExpertsConfig
from tests.model.references.comparison import (
    assert_decoder_agrees,
    model_of,
    redrawn,
    renamed,
    weights_of,
)

NAMES = {
    r"^model\.embed_tokens": "decoder.embedding.vectors",
    r"^model\.norm": "decoder.norm",
    r"^model\.layers": "decoder.layers",
    r"input_layernorm": "attention_norm",
    r"post_attention_layernorm": "feed_forward_norm",
    r"self_attn\.q_proj": "self_attention.query_projection",
    r"self_attn\.k_proj": "self_attention.key_projection",
    r"self_attn\.v_proj": "self_attention.value_projection",
    r"self_attn\.o_proj": "self_attention.output_projection",
    r"mlp\.(gate|up|down)_proj": r"feed_forward.\1_projection",
    r"mlp\.gate\.": "experts.router.",
    r"mlp\.experts": "experts.experts",
}
D_HEAD, D_FF = 8, 48
THEIRS = {
    "vocab_size": 60,
    "hidden_size": 32,
    "intermediate_size": D_FF,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 16,
    "rms_norm_eps": 1e-3,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0},
    "tie_word_embeddings": True,
}
OURS = {
    "positional": "rotary",
    "norm": "rms_norm",
    "attention_bias": False,
    "activation": "swiglu",
    "feed_forward_bias": False,
    "n_kv_heads": 2,
}


def neighbours(rows):
    """Return the rows of each head in another order: 0, 4, 1, 5, 2, 6, 3, 7.

    Theirs turn dimension i together with i + d_head/2, ours 2i together with 2i + 1, both at the
    i-th frequency. Queries and keys move alike, so no product of the two changes.
    """
    return rows.unflatten(0, (-1, 2, D_HEAD // 2)).transpose(1, 2).flatten(0, 2)


def copy(reference, **choices):
    weights = renamed(weights_of(reference), NAMES)
    for name in list(weights):
        if name.endswith(("query_projection.weight", "key_projection.weight")):
            weights[name] = neighbours(weights[name])
        elif ".experts.experts." in name:
            weights.update(split_experts(name, weights.pop(name)))
    return model_of(weights, **{**OURS, **choices})


def split_experts(name, stacked):
    """Return the matrices of every expert; theirs lie in one tensor, gate above up."""
    start, _, kind = name.rpartition(".")
    split = {}
    for expert, matrix in enumerate(stacked):
        parts = {"down": matrix}
        if kind == "gate_up_proj":
            parts = {"gate": matrix[:D_FF], "up": matrix[D_FF:]}
        for part, tensor in parts.items():
            split[f"{start}.{expert}.{part}_projection.weight"] = tensor
    return split


@pytest.mark.parametrize("n_kv_heads", [4, 2, 1])
@pytest.mark.parametrize("is_padded", [False, True])
def test_every_state_weight_and_logit_is_llamas(is_padded, n_kv_heads):
    reference = redrawn(LlamaForCausalLM(LlamaConfig(**THEIRS, num_key_value_heads=n_kv_heads)))
    model = copy(reference, n_kv_heads=n_kv_heads)
    assert_decoder_agrees(reference, model, is_padded=is_padded)


@pytest.mark.parametrize("top_k", [1, 2])
def test_every_state_weight_route_and_logit_is_mixtrals(top_k):
    sizes = {"num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": top_k}
    reference = redrawn(MixtralForCausalLM(MixtralConfig(**THEIRS, **sizes)))
    reference.set_experts_implementation("eager")
    model = copy(reference, moe=ExpertsConfig(n_experts=4, top_k=top_k, layers=(0, 1)))
    captured = assert_decoder_agrees(reference, model, output_router_logits=True)
    assert len(captured["decoder.layers.0.experts.expert_indices"].unique()) == 4
