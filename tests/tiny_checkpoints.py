"""Tiny random checkpoints of Transformers, for tests and for a try without a download.

    python -m tests.tiny_checkpoints mixtral ./mixtral
    headlight add ./mixtral

The weights are random: such a model shows its heads, its router and its next word, but it has
learned nothing.
"""

import argparse
from pathlib import Path

import tokenizers
import torch

from headlight.model.foreign.loading import quiet

TEXTS = ["The cat sat on the mat, and the dog sat by the door.", "Ein Hund läuft schnell."] * 4
COMMON = {"vocab_size": 320, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
SIZES = {
    **COMMON,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}
GROUPED = {**SIZES, "num_key_value_heads": 2}
WINDOW = {"sliding_window": 4, "head_dim": 8}
MOE = {"num_local_experts": 4, "num_experts_per_tok": 2}
ARCHITECTURES = {
    "gpt2": (
        "GPT2LMHeadModel",
        {**COMMON, "n_layer": 2, "n_head": 4, "n_embd": 32, "n_positions": 64},
    ),
    "llama": ("MistralForCausalLM", {**GROUPED, **WINDOW}),
    "mixtral": ("MixtralForCausalLM", {**GROUPED, **MOE}),
    "gemma2": ("Gemma2ForCausalLM", {**GROUPED, **WINDOW, "attn_logit_softcapping": 2.0}),
    "gpt_oss": ("GptOssForCausalLM", {**GROUPED, **WINDOW, **MOE}),
    "bert": ("BertForMaskedLM", SIZES),
    "t5": (
        "T5ForConditionalGeneration",
        {**COMMON, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
        | {"decoder_start_token_id": 0},
    ),
    "bloom": ("BloomForCausalLM", {**COMMON, "hidden_size": 32, "n_layer": 2, "n_head": 4}),
}
"""Those of the default tests."""

GPT = {**COMMON, "n_layer": 2, "n_head": 4, "n_embd": 32, "n_positions": 64}
STACKED = {
    **COMMON,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
    "decoder_start_token_id": 2,
}
EXPERTS = {
    **GROUPED,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 48,
    "head_dim": 8,
}
LATENT = {
    **SIZES,
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 8,
    "v_head_dim": 8,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 48,
    "n_group": 2,
    "topk_group": 1,
    "first_k_dense_replace": 1,
}
MORE = {
    **{
        kind.lower(): (f"{kind}ForCausalLM", GROUPED)
        for kind in ("Qwen2", "SmolLM3", "StableLm", "Starcoder2", "Phi3", "Arcee", "Apertus")
    },
    **{
        kind.lower(): (f"{kind}ForCausalLM", {**GROUPED, "head_dim": 8})
        for kind in ("Qwen3", "Cohere", "Helium", "Nemotron", "Glm", "Glm4", "SeedOss")
    },
    **{kind.lower(): (f"{kind}ForCausalLM", GROUPED) for kind in ("Olmo", "Olmo2")},
    **{
        kind.lower(): (f"{kind}ForCausalLM", {**GROUPED, "sliding_window": 4})
        for kind in ("Olmo3", "Exaone4")
    },
    "doge": ("DogeForCausalLM", {**GROUPED, "head_dim": 8, "num_experts": 4}),
    "diffllama": ("DiffLlamaForCausalLM", GROUPED),
    "zamba2": (
        "Zamba2ForCausalLM",
        {**SIZES, "num_hidden_layers": 6, "num_key_value_heads": 4}
        | {"layers_block_type": ["mamba", "hybrid"] * 3, "num_mem_blocks": 2}
        | {"mamba_headdim": 8, "n_mamba_heads": 8, "mamba_d_state": 16, "mamba_ngroups": 1}
        | {"adapter_rank": 8, "attention_hidden_size": 64, "attention_head_dim": 16},
    ),
    "longformer": ("LongformerForMaskedLM", {**SIZES, "attention_window": [4, 4]}),
    "ibert": ("IBertForMaskedLM", SIZES),
    "gemma3": ("Gemma3ForCausalLM", {**GROUPED, **WINDOW}),
    "granite": ("GraniteForCausalLM", {**GROUPED, "residual_multiplier": 0.22}),
    "granitemoe": ("GraniteMoeForCausalLM", {**GROUPED, **MOE, "residual_multiplier": 0.22}),
    "qwen3moe": ("Qwen3MoeForCausalLM", EXPERTS),
    "qwen2moe": ("Qwen2MoeForCausalLM", {**EXPERTS, "shared_expert_intermediate_size": 48}),
    "olmoe": ("OlmoeForCausalLM", EXPERTS),
    "minimax": (
        "MiniMaxForCausalLM",
        {**GROUPED, **MOE, "head_dim": 8, "layer_types": ["full_attention"] * 2}
        | {"full_attn_alpha_factor": 1.5, "full_attn_beta_factor": 0.5},
    ),
    "bamba": (
        "BambaForCausalLM",
        {**GROUPED, "attn_layer_indices": [1], "mamba_n_heads": 8, "mamba_d_head": 8}
        | {"mamba_d_state": 16, "mamba_n_groups": 1, "mamba_expand": 2},
    ),
    "deepseek_v3": ("DeepseekV3ForCausalLM", LATENT),
    "dbrx": (
        "DbrxForCausalLM",
        {**COMMON, "d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 64}
        | {"attn_config": {"clip_qkv": 1.0, "kv_n_heads": 2, "rope_theta": 10000.0}}
        | {
            "ffn_config": {
                "ffn_hidden_size": 48,
                "moe_num_experts": 4,
                "moe_top_k": 2,
                "hidden_size": 32,
            }
        },
    ),
    "jetmoe": ("JetMoeForCausalLM", {**GROUPED, **MOE, "kv_channels": 8}),
    "granitemoehybrid": (
        "GraniteMoeHybridForCausalLM",
        {**GROUPED, **MOE, "layer_types": ["mamba", "attention"], "residual_multiplier": 0.22}
        | {"shared_intermediate_size": 48, "mamba_n_heads": 8, "mamba_d_head": 8}
        | {"mamba_d_state": 16, "mamba_n_groups": 1, "mamba_expand": 2},
    ),
    "falcon": ("FalconForCausalLM", SIZES),
    "persimmon": ("PersimmonForCausalLM", SIZES),
    "phi": ("PhiForCausalLM", SIZES),
    "gpt_neox": ("GPTNeoXForCausalLM", SIZES),
    "gptj": ("GPTJForCausalLM", {**GPT, "rotary_dim": 4}),
    "gpt_neo": (
        "GPTNeoForCausalLM",
        {**COMMON, "hidden_size": 32, "num_layers": 2, "num_heads": 4, "window_size": 4}
        | {"max_position_embeddings": 64, "attention_types": [[["global", "local"], 1]]},
    ),
    "gpt_bigcode": ("GPTBigCodeForCausalLM", GPT),
    "opt": ("OPTForCausalLM", {**SIZES, "ffn_dim": 48, "word_embed_proj_dim": 32}),
    "biogpt": ("BioGptForCausalLM", SIZES),
    "mpt": (
        "MptForCausalLM",
        {**COMMON, "d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 64},
    ),
    "roberta": ("RobertaForMaskedLM", SIZES),
    "modernbert": (
        "ModernBertForMaskedLM",
        {**SIZES, "local_attention": 8, "cls_token_id": 1, "sep_token_id": 2},
    ),
    "electra": ("ElectraForMaskedLM", {**SIZES, "embedding_size": 32}),
    "distilbert": (
        "DistilBertForMaskedLM",
        {**COMMON, "dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4},
    ),
    "umt5": (
        "UMT5ForConditionalGeneration",
        {**COMMON, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
        | {"decoder_start_token_id": 0},
    ),
    "bart": ("BartForConditionalGeneration", STACKED),
    "marian": ("MarianMTModel", STACKED),
    "m2m100": ("M2M100ForConditionalGeneration", STACKED),
}
"""Those that only the slow tests build."""
MORE["doge"] = ("DogeForCausalLM", {**GROUPED, "head_dim": 8, "num_experts": 16})
UNUSUAL = {
    name: MORE[name]
    for name in (
        "olmo2",
        "olmo3",
        "exaone4",
        "granite",
        "granitemoe",
        "falcon",
        "gpt_neox",
        "doge",
        "minimax",
    )
}
"""Architectures whose stream is not the sum of their parts' outputs, or is written to in place."""


def make_model(name, **changes):
    """Return a random model, its weights large enough that every term of a softmax shows."""
    import transformers

    class_name, sizes = ARCHITECTURES[name] if name in ARCHITECTURES else MORE[name]
    kind = getattr(transformers, class_name)
    torch.manual_seed(1)
    with quiet():
        config = kind.config_class(**sizes, **changes)
        config._experts_implementation = "eager"
        model = kind(config).eval()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.25)
        elif parameter.numel() == 4:  # the sinks of the heads
            torch.nn.init.normal_(parameter)
        elif parameter.numel() == 32 and name == "doge":  # the factors of its stream
            torch.nn.init.uniform_(parameter, 0.5, 1.5)
    return model


def make_tokenizer():
    """Return a byte-level tokenizer of 320 tokens."""
    import transformers

    backend = tokenizers.Tokenizer(tokenizers.models.BPE())
    backend.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<pad>", "<s>", "</s>", "[MASK]"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(TEXTS, trainer)
    names = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "mask_token": "[MASK]"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **names)


def save_checkpoint(name, folder):
    """Write a checkpoint of an architecture to a folder, and return the folder."""
    with quiet():
        make_model(name).save_pretrained(folder)
        make_tokenizer().save_pretrained(folder)
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("architecture", choices=sorted({*ARCHITECTURES, *MORE}))
    parser.add_argument("folder", type=Path)
    chosen = parser.parse_args()
    save_checkpoint(chosen.architecture, chosen.folder)
