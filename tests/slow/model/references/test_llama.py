"""Llama and Mixtral: RMSNorm, rotary positions, shared keys and values, SwiGLU; then experts."""

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, MixtralConfig, MixtralForCausalLM

from headlight.model.config import ExpertsConfig, TransformerConfig
from headlight.model.transformer import Transformer

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
OURS = TransformerConfig(
    n_layers=2,
    n_heads=4,
    d_model=32,
    d_ff=D_FF,
    vocab_size=60,
    max_tokens=16,
    positional="rotary",
    norm="rms_norm",
    norm_epsilon=1e-3,
    scales_embedding=False,
    activation="swiglu",
    feed_forward_bias=False,
    n_kv_heads=2,
)

Reference = LlamaForCausalLM | MixtralForCausalLM


def neighbours(rows):
    """The rows of each head in another order: 0, 4, 1, 5, 2, 6, 3, 7.

    Theirs turn dimension i together with i + d_head/2, ours 2i together with 2i + 1, both at the
    i-th frequency. Queries and keys move alike, so no product of the two changes.
    """
    return rows.unflatten(0, (-1, 2, D_HEAD // 2)).transpose(1, 2).flatten(0, 2)


def copy_weights(reference, config, rename):
    weights = dict(reference.state_dict())
    del weights["lm_head.weight"]  # the embedding once more
    renamed = rename(weights, NAMES)
    for name in list(renamed):
        if name.endswith(("query_projection.weight", "key_projection.weight")):
            renamed[name] = neighbours(renamed[name])
        elif ".experts.experts." in name:
            renamed.update(split_experts(name, renamed.pop(name)))
    model = Transformer(config)
    model.load_weights(renamed)
    return model.eval()


def split_experts(name, stacked):
    """The matrices of every expert by itself; theirs lie in one tensor, the gate's above the up."""
    start, _, kind = name.rpartition(".")
    split = {}
    for expert, matrix in enumerate(stacked):
        parts = {"down": matrix}
        if kind == "gate_up_proj":
            parts = {"gate": matrix[:D_FF], "up": matrix[D_FF:]}
        for part, tensor in parts.items():
            split[f"{start}.{expert}.{part}_projection.weight"] = tensor
    return split


def agreement(reference, model, ids, is_token, by_layer, **asked):
    """The captured activations, and the reference's at the same sites."""
    mask = torch.ones_like(ids) if is_token is None else is_token.long()
    with torch.no_grad(), model.capture(["*"]) as captured:
        expected = reference(
            ids, attention_mask=mask, output_attentions=True, output_hidden_states=True, **asked
        )
        model(ids, is_token=is_token)
    *before, last = expected.hidden_states
    by_site = {
        **by_layer(before, "decoder", "residual.before"),
        **by_layer(expected.attentions, "decoder", "self_attention.weights"),
        "last": last,
        "logits": expected.logits,
    }
    if asked:
        routed = [logits.view(*ids.shape, -1) for logits in expected.router_logits]
        by_site |= by_layer(routed, "decoder", "experts.router_logits")
    last_norm = model.decoder.norm(captured["decoder.layers.1.residual.after"])
    return {**captured, "last": last_norm}, by_site


@pytest.mark.parametrize("n_kv_heads", [4, 2, 1])
@pytest.mark.parametrize("is_padded", [False, True])
def test_every_state_weight_and_logit_is_llamas(
    redraw, rename, by_layer, assert_agrees, ids, is_token, is_padded, n_kv_heads
):
    reference = LlamaForCausalLM(LlamaConfig(**THEIRS, num_key_value_heads=n_kv_heads))
    reference.set_attn_implementation("eager")
    redraw(reference)
    config = TransformerConfig.from_dict({**OURS.to_dict(), "n_kv_heads": n_kv_heads})
    model = copy_weights(reference, config, rename)
    assert_agrees(*agreement(reference, model, ids, is_token if is_padded else None, by_layer))


@pytest.mark.parametrize("top_k", [1, 2])
def test_every_state_weight_route_and_logit_is_mixtrals(
    redraw, rename, by_layer, assert_agrees, ids, top_k
):
    reference = MixtralForCausalLM(
        MixtralConfig(
            **THEIRS, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=top_k
        )
    )
    reference.set_attn_implementation("eager")
    reference.set_experts_implementation("eager")
    redraw(reference)
    moe = ExpertsConfig(n_experts=4, top_k=top_k, layers=(0, 1))
    config = TransformerConfig.from_dict({**OURS.to_dict(), "moe": vars(moe)})
    model = copy_weights(reference, config, rename)
    captured, expected = agreement(reference, model, ids, None, by_layer, output_router_logits=True)
    assert len(captured["decoder.layers.0.experts.expert_indices"].unique()) == 4
    assert_agrees(captured, expected)
