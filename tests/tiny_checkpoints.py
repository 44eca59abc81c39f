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
UNUSUAL = {
    "olmo2": ("Olmo2ForCausalLM", GROUPED),
    "olmo3": ("Olmo3ForCausalLM", {**GROUPED, "sliding_window": 4}),
    "exaone4": ("Exaone4ForCausalLM", {**GROUPED, **WINDOW}),
    "granite": ("GraniteForCausalLM", {**GROUPED, "residual_multiplier": 0.3}),
    "granitemoe": ("GraniteMoeForCausalLM", {**GROUPED, **MOE, "residual_multiplier": 0.3}),
    "falcon": (
        "FalconForCausalLM",
        {**COMMON, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4},
    ),
    "gpt_neox": ("GPTNeoXForCausalLM", SIZES),
    "doge": ("DogeForCausalLM", {**GROUPED, "num_experts": 16}),
    "minimax": (
        "MiniMaxForCausalLM",
        {**GROUPED, **MOE, "layer_types": ["full_attention"] * 2, "head_dim": 8}
        | {"full_attn_alpha_factor": 0.7, "full_attn_beta_factor": 1.3},
    ),
}
"""Architectures whose stream is not the sum of their parts' outputs, or is written to in place."""


def make_model(name, **changes):
    """A random model, its weights large enough that every term of a softmax shows."""
    import transformers

    class_name, sizes = {**ARCHITECTURES, **UNUSUAL}[name]
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
    """A byte-level tokenizer of 320 tokens."""
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
    parser.add_argument("architecture", choices=sorted({**ARCHITECTURES, **UNUSUAL}))
    parser.add_argument("folder", type=Path)
    chosen = parser.parse_args()
    save_checkpoint(chosen.architecture, chosen.folder)
