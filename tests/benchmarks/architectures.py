"""Serve a tiny random model of every text architecture of Transformers, and print a table.

    python -m tests.benchmarks.architectures [model_type ...]

Each architecture has its own process, which saves the model and a tokenizer to a folder and
loads the folder. A type is *served* if the self-check proved its numbers, *refused* if loading
gave a reason, and *not built* if its config cannot be made small by name.
"""

import json
import multiprocessing
import sys
import warnings
from collections import Counter
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.tiny_checkpoints import make_tokenizer

SECONDS = 120
PAGE = Path(__file__).parents[2] / "model" / "foreign" / "ARCHITECTURES.md"
LAYERS = 2
SMALL = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "dim", "emb_dim", "embed_dim"), 32),
    **dict.fromkeys(("embedding_size", "hidden_dim", "d_embed", "word_embed_proj_dim"), 32),
    **dict.fromkeys(("decoder_hidden_size", "encoder_hidden_size"), 32),
    **dict.fromkeys(
        ("intermediate_size", "d_ff", "d_inner", "n_inner", "ffn_dim", "ffn_hidden_size"), 48
    ),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim", "moe_intermediate_size"), 48),
    **dict.fromkeys(("shared_expert_intermediate_size", "dim_ff", "ff_dim"), 48),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers"), LAYERS),
    **dict.fromkeys(("encoder_layers", "decoder_layers", "num_decoder_layers"), LAYERS),
    **dict.fromkeys(("num_encoder_layers", "num_hidden_groups_"), LAYERS),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads"), 4),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4),
    **dict.fromkeys(("num_encoder_attention_heads", "num_decoder_attention_heads"), 4),
    **dict.fromkeys(("num_key_value_heads", "multi_query_group_num", "num_kv_heads"), 2),
    **dict.fromkeys(("head_dim", "d_kv", "d_head", "attention_head_size", "kv_channels"), 8),
    **dict.fromkeys(("qk_nope_head_dim", "qk_rope_head_dim"), 8),
    **dict.fromkeys(("v_head_dim",), 16),
    **dict.fromkeys(("q_lora_rank", "kv_lora_rank"), 16),
    **dict.fromkeys(("vocab_size", "bigram_vocab_size", "vocab_size_per_layer_input"), 320),
    **dict.fromkeys(
        ("max_position_embeddings", "n_positions", "max_seq_len", "max_seq_length"), 64
    ),
    **dict.fromkeys(("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "moe_k", "num_selected_experts", "moe_top_k"), 2),
    **dict.fromkeys(("n_group", "topk_group", "n_shared_experts"), 1),
    **dict.fromkeys(("sliding_window", "attention_chunk_size", "local_attention"), 4),
    **dict.fromkeys(("image_size",), 32),
    **dict.fromkeys(("patch_size",), 16),
    **dict.fromkeys(("linear_num_key_heads", "linear_num_value_heads"), 2),
    **dict.fromkeys(("linear_key_head_dim", "linear_value_head_dim"), 8),
    **dict.fromkeys(("mamba_n_heads", "mamba_num_heads", "num_mamba_heads"), 8),
    **dict.fromkeys(("mamba_d_head", "mamba_head_dim"), 8),
    **dict.fromkeys(("first_k_dense_replace",), 1),
    **dict.fromkeys(("rotary_dim",), 4),
    **dict.fromkeys(("d_inner", "ffn_intermediate_size"), 48),
    **dict.fromkeys(("n_mamba_heads", "mamba_n_groups_"), 2),
    **dict.fromkeys(("expert_ffn_hidden_size", "zero_expert_num"), 16),
    **dict.fromkeys(("hidden_size_per_layer_input",), 8),
}
# Every second layer of a hybrid attends.
FIXED = {
    "attn_layer_period": 2,
    "attn_layer_offset": 1,
    "attn_layer_indices": [1],
    "mamba_d_ssm": 64,
    "mamba_expand": 2,
}
OF_PARTS = ("value_weighted", "head_outputs", "residual_stream", "logit_attribution")
LISTED = ("layer_types", "mlp_layer_types", "layers_block_type", "block_types", "no_rope_layers")


def shrunken(values):
    """Return a config's values with small sizes, ids in the vocabulary, and lists as short."""
    small = {}
    for name, value in values.items():
        if isinstance(value, dict):
            is_part = name.endswith("config") or name in ("encoder", "decoder")
            small[name] = shrunken(value) if is_part else value
        elif name in FIXED:
            small[name] = FIXED[name]
        elif name == "pad_token_id" and value is None:
            small[name] = 1
        elif name == "attention_layers":
            small[name] = ["global", "local"]
        elif name == "attention_types":
            small[name] = [[["global", "local"], 1]]
        elif name in SMALL and type(value) in (int, type(None)):
            small[name] = SMALL[name]
        elif name in LISTED and isinstance(value, list):
            kinds = list(dict.fromkeys(value))
            small[name] = (kinds + kinds)[:LAYERS] if len(kinds) <= LAYERS else kinds[:LAYERS]
        elif name.endswith("token_id") and isinstance(value, int):
            small[name] = value % 300
        else:
            small[name] = value
    if "kv_lora_rank" in values and "num_key_value_heads" in values:
        small["num_key_value_heads"] = small["num_attention_heads"]
    return small


def make(model_type, task, changes=None):
    """Return a tiny random model of a type, in eval mode, or None and the reason."""
    import torch
    import transformers
    from transformers.models.auto import configuration_auto, modeling_auto

    from headlight.model.foreign.loading import TASKS
    from headlight.model.foreign.outputs import inputs_for

    name = getattr(modeling_auto, TASKS[task].split()[-1])[model_type]
    kind = getattr(transformers, name if isinstance(name, str) else name[0])
    config_class = configuration_auto.CONFIG_MAPPING[model_type]
    reasons = []
    for change in (
        shrunken,
        lambda values: {k: v for k, v in shrunken(values).items() if k in SMALL or "token_id" in k},
    ):
        try:
            values = _clean(change(config_class().to_dict())) | (changes or {})
            config = config_class(**values)
            text = config.get_text_config()
            for settings in (config, text):
                for part in ("pad_token_id", "eos_token_id", "bos_token_id"):
                    if isinstance(value := getattr(settings, part, None), list):
                        setattr(settings, part, value[0] % 300)
            if task == "seq2seq" and getattr(config, "decoder_start_token_id", None) is None:
                config.decoder_start_token_id = 0
            config._attn_implementation = "eager"
            if kind._can_set_experts_implementation():
                config._experts_implementation = "eager"
            n_numbers = _count(kind, config)
            if n_numbers > 150e6:
                reasons.append(f"{n_numbers / 1e6:.0f} M parameters")
                continue
            torch.manual_seed(0)
            model = kind(config).eval()
            generator = torch.Generator().manual_seed(1)
            for parameter in model.parameters():
                if parameter.ndim > 1:
                    parameter.data.normal_(0, 0.2, generator=generator)
            ids = torch.randint(5, 300, (1, 5), generator=generator)
            inputs = {"input_ids": ids} | ({"decoder_input_ids": ids} if task == "seq2seq" else {})
            with torch.inference_mode():
                model(**inputs_for(task, inputs))
            return model, ""
        except Exception as error:
            reasons.append((str(error).strip() or type(error).__name__).splitlines()[0][:150])
    return None, reasons[0]


def _clean(values):
    return {
        k: v
        for k, v in values.items()
        if k not in ("model_type", "transformers_version", "architectures")
    }


def _count(kind, config):
    import copy

    import torch

    with torch.device("meta"):
        return sum(parameter.numel() for parameter in kind(copy.deepcopy(config)).parameters())


def serve(model_type, task):
    """Return the row of a type: its state, and the result or the reason."""
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    from headlight.analyses.analysis_registry import ANALYSES, available
    from headlight.model.checkpoint.files import CheckpointError
    from headlight.model.foreign.loading import quiet
    from headlight.model.foreign.model import load_foreign

    with quiet():
        module, reason = make(model_type, task)
    if module is None:
        return {"state": "not built", "reason": reason}
    with TemporaryDirectory() as parent:
        folder = Path(parent) / model_type
        try:
            with quiet():
                module.save_pretrained(folder)
                make_tokenizer().save_pretrained(folder)
        except Exception as error:
            return {"state": "not built", "reason": f"it cannot be saved: {error}"[:300]}
        try:
            served = load_foreign(folder)
        except CheckpointError as error:
            return {"state": "refused", "reason": str(error).split(": ", 1)[1]}
    description = served.description
    wanted = [name for name in OF_PARTS if name in ANALYSES]
    return {
        "state": "served",
        "kind": description.config.kind,
        "positional": description.config.positional,
        "norm_place": description.config.norm_place,
        "moe": bool(description.config.moe),
        "exact": all(facts.is_exact for facts in description.attentions),
        "features": sorted(description.features),
        "parts": sorted({site.name.split(".", 3)[-1] for site in description.sites}),
        "omitted": {
            ".".join(name.split(".")[3:]) or name: text
            for name, text in description.omitted.items()
        },
        "analyses": [name for name in wanted if name in available(description)],
        "checks": dict(description.checks),
    }


def _work(model_type, task, pipe):
    try:
        pipe.send(serve(model_type, task))
    except BaseException as error:
        pipe.send({"state": "failed", "reason": f"{type(error).__name__}: {error}"[:300]})


def every_type():
    """Return every model type with a language model, and its task."""
    from transformers.models.auto import modeling_auto

    from headlight.model.foreign.loading import TASKS

    tasks = {}
    for task in ("seq2seq", "masked", "causal"):
        for model_type in getattr(modeling_auto, TASKS[task]):
            tasks.setdefault(model_type, task)
    return tasks


def page(rows):
    """Return the page of documentation: what is served of each type, and why a type is refused."""
    counts = Counter(row["state"] for row in rows.values())
    lines = [
        "# Architectures of Transformers",
        "",
        "Made by `python -m tests.benchmarks.architectures` from folders that Transformers saved,",
        "each of a tiny random model and a tokenizer. A type is served if the self-check found its",
        "logits and weights to be those of Transformers' own eager attention, up to rounding. A",
        "type that is not listed could not be built small; it is checked when it is loaded.",
        "",
        "The last column has the sites and derived numbers that a model does not offer; `sum`: its",
        "stream is not known as the sum of what its parts wrote, so a logit is not split.",
        "",
        f"{counts['served']} types are served and {counts['refused']} refused.",
        "",
        "| model_type | kind | positions | experts | left out |",
        "|---|---|---|---|---|",
    ]
    for model_type, row in rows.items():
        if row["state"] == "served":
            left_out = sorted({name.partition(".")[2] or name for name in row["omitted"]})
            experts = "yes" if row["moe"] else ""
            lines.append(
                f"| {model_type} | {row['kind']} | {row['positional']} | {experts} | "
                f"{', '.join(left_out)} |"
            )
    lines += ["", "| refused | reason |", "|---|---|"]
    lines += [
        f"| {model_type} | {row['reason']} |"
        for model_type, row in rows.items()
        if row["state"] in ("refused", "failed")
    ]
    return "\n".join(lines) + "\n"


def main():
    """Go through the types, print a line for each and the counts."""
    import torch

    import_module("headlight.model.foreign.model")  # once: the other processes are copies of this
    import_module("headlight.tracing.results")
    import_module("transformers.generation")

    torch.set_num_threads(1)
    wanted, counts, rows = sys.argv[1:], Counter(), {}
    for model_type, task in sorted(every_type().items()):
        if wanted and model_type not in wanted:
            continue
        here, there = multiprocessing.get_context("fork").Pipe()
        process = multiprocessing.get_context("fork").Process(
            target=_work, args=(model_type, task, there)
        )
        process.start()
        there.close()
        row = {"state": "failed", "reason": f"no answer in {SECONDS} s"}
        try:
            if here.poll(SECONDS):
                row = here.recv()
        except EOFError:
            row = {"state": "failed", "reason": "its process died"}
        process.kill()
        process.join()
        rows[model_type] = {"task": task, **row}
        counts[row["state"]] += 1
        told = row.get("reason") or ", ".join(f"{k}: {v}" for k, v in row["omitted"].items())
        sys.stdout.write(f"{row['state']:9} {task:8} {model_type:28} {told[:240]}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{dict(counts)}\n")
    if not wanted:
        Path("architectures.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
        PAGE.write_text(page(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
