"""The modules of the parts of a layer, in the model file of each architecture."""

from dataclasses import replace

from tests.model.foreign.independent_pass import Layout

LLAMA = Layout()
NORMED = replace(
    LLAMA,
    writes={
        "self_attention": "post_attention_layernorm",
        "feed_forward": "post_feedforward_layernorm",
    },
)
GRANITE = dict.fromkeys(("self_attention", "feed_forward"), "residual_multiplier")
GPT2 = Layout(
    layers="transformer.h",
    attention="attn.c_proj",
    values=("attn.c_attn", "heads"),
    norm="transformer.ln_f",
)
BLOOM = Layout(
    layers="transformer.h",
    attention="self_attention.dense",
    values=("self_attention.query_key_value", "nested"),
    feed_forward="mlp.dense_4h_to_h",
    norm="transformer.ln_f",
)
FALCON = replace(BLOOM, values=("self_attention.query_key_value", "single"), is_parallel=True)
NEOX = replace(
    BLOOM,
    layers="gpt_neox.layers",
    attention="attention.dense",
    values=("attention.query_key_value", "nested"),
    feed_forward="mlp",
    norm="gpt_neox.final_layer_norm",
    is_parallel=True,
)
PHI = replace(LLAMA, attention="self_attn.dense", norm="model.final_layernorm", is_parallel=True)
OPT = Layout(
    layers="model.decoder.layers",
    attention="self_attn.out_proj",
    feed_forward="fc2",
    norm="model.decoder.final_layer_norm",
)
BERT = Layout(
    layers="bert.encoder.layer",
    attention="attention.output.dense",
    values=("attention.self.value", "plain"),
    feed_forward="output.dense",
    middle="attention.output.LayerNorm",
    norm=None,
)
DISTILBERT = replace(
    BERT,
    layers="distilbert.transformer.layer",
    attention="attention.out_lin",
    values=("attention.v_lin", "plain"),
    feed_forward="ffn",
    middle="sa_layer_norm",
)
T5 = {
    "encoder": Layout(
        layers="encoder.block",
        attention="layer.0.SelfAttention.o",
        values=("layer.0.SelfAttention.v", "plain"),
        feed_forward="layer.1.DenseReluDense",
        norm="encoder.final_layer_norm",
    ),
    "decoder": Layout(
        layers="decoder.block",
        attention="layer.0.SelfAttention.o",
        values=("layer.0.SelfAttention.v", "plain"),
        cross_attention="layer.1.EncDecAttention.o",
        cross_values=("layer.1.EncDecAttention.v", "plain"),
        feed_forward="layer.2.DenseReluDense",
        norm="decoder.final_layer_norm",
    ),
}
M2M = {
    "encoder": replace(OPT, layers="model.encoder.layers", norm="model.encoder.layer_norm"),
    "decoder": replace(
        OPT,
        cross_attention="encoder_attn.out_proj",
        cross_values=("encoder_attn.v_proj", "plain"),
        norm="model.decoder.layer_norm",
    ),
}
BART = {
    "encoder": replace(M2M["encoder"], middle="self_attn_layer_norm", norm=None),
    "decoder": replace(
        M2M["decoder"], between="self_attn_layer_norm", middle="encoder_attn_layer_norm", norm=None
    ),
}


def decoder(layout):
    return {"decoder": layout}


LAYOUTS = {
    **dict.fromkeys(
        [
            "llama",
            "qwen2",
            "smollm3",
            "stablelm",
            "starcoder2",
            "arcee",
            "apertus",
            "qwen3",
            "helium",
            "nemotron",
            "glm",
            "seedoss",
            "olmo",
        ],
        decoder(LLAMA),
    ),
    **dict.fromkeys(["gemma2", "gemma3", "olmo2", "olmo3", "exaone4"], decoder(NORMED)),
    **dict.fromkeys(
        ["qwen3moe", "qwen2moe", "olmoe", "mixtral"], decoder(replace(LLAMA, router="mlp.gate"))
    ),
    "gpt_oss": decoder(replace(LLAMA, router="mlp.router")),
    "glm4": decoder(
        replace(
            LLAMA,
            writes={
                "self_attention": "post_self_attn_layernorm",
                "feed_forward": "post_mlp_layernorm",
            },
        )
    ),
    "granite": decoder(replace(LLAMA, factors=GRANITE)),
    "granitemoe": decoder(
        replace(
            LLAMA,
            factors=GRANITE,
            feed_forward="block_sparse_moe",
            router="block_sparse_moe.router",
        )
    ),
    "doge": decoder(
        replace(
            LLAMA,
            carries={"self_attention": "input_residual", "feed_forward": "post_attention_residual"},
        )
    ),
    "dbrx": decoder(
        Layout(
            layers="transformer.blocks",
            attention="norm_attn_norm.attn.out_proj",
            values=("norm_attn_norm.attn.Wqkv", "clipped"),
            feed_forward="ffn",
            norm="transformer.norm_f",
            router="ffn.router",
            chosen=2,
        )
    ),
    "jetmoe": decoder(
        replace(
            LLAMA,
            attention="self_attention",
            values=("self_attention.kv_proj", "groups"),
            router="mlp.router",
            chosen=2,
            logits_at=-1,
            is_split=False,
        )
    ),
    "diffllama": decoder(replace(LLAMA, is_split=False)),
    "minimax": decoder(
        replace(
            LLAMA,
            factors={"self_attention": "full_attn_beta_factor", "feed_forward": "mlp_beta_factor"},
            is_sum=False,
            router="mlp.gate",
        )
    ),
    "cohere": decoder(replace(LLAMA, is_parallel=True)),
    "phi3": decoder(replace(LLAMA, values=("self_attn.qkv_proj", "groups"))),
    "persimmon": decoder(
        replace(PHI, values=("self_attn.query_key_value", "nested"), is_parallel=False)
    ),
    "phi": decoder(PHI),
    "gpt2": decoder(GPT2),
    "gpt_bigcode": decoder(replace(GPT2, values=("attn.c_attn", "single"))),
    "gptj": decoder(
        replace(GPT2, attention="attn.out_proj", values=("attn.v_proj", "plain"), is_parallel=True)
    ),
    "gpt_neo": decoder(
        replace(
            GPT2, attention="attn.attention.out_proj", values=("attn.attention.v_proj", "plain")
        )
    ),
    "bloom": decoder(BLOOM),
    "falcon": decoder(FALCON),
    "gpt_neox": decoder(NEOX),
    "opt": decoder(OPT),
    "biogpt": decoder(replace(OPT, layers="biogpt.layers", norm="biogpt.layer_norm")),
    "mpt": decoder(
        Layout(
            layers="transformer.blocks",
            attention="attn.out_proj",
            values=("attn.Wqkv", "heads"),
            feed_forward="ffn.down_proj",
            norm="transformer.norm_f",
        )
    ),
    "bert": {"encoder": BERT},
    "roberta": {"encoder": replace(BERT, layers="roberta.encoder.layer")},
    "electra": {"encoder": replace(BERT, layers="electra.encoder.layer")},
    "distilbert": {"encoder": DISTILBERT},
    "modernbert": {
        "encoder": Layout(
            attention="attn.Wo", values=("attn.Wqkv", "heads"), norm="model.final_norm"
        )
    },
    "t5": T5,
    "umt5": T5,
    "bart": BART,
    "marian": BART,
    "m2m100": M2M,
}
