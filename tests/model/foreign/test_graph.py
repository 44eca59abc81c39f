"""Circuits of foreign models equal an independent computation with Transformers' own modules."""

import random

import pytest
import torch

from headlight.model.circuits.graph import NoGraph
from headlight.model.circuits.parts import parts_of
from headlight.model.circuits.path_patching import MixedPasses
from headlight.model.foreign.model import serve_module
from tests.model.circuits.slow_circuit import Attention, Network, SlowRun, Stack
from tests.model.circuits.test_path_patching import cut_all
from tests.tiny_checkpoints import make_model

CLEAN, CORRUPTED, TARGET = [5, 9, 200, 31, 7], [5, 9, 201, 31, 8], [4, 10, 11]


def gpt2(module):
    parts = []
    for number, block in enumerate(module.transformer.h):
        attention = block.attn
        projection = attention.c_attn
        parts.append(
            Attention(
                f"{number}", block.ln_1, projection, projection, projection,
                attention.c_proj, 4, 4, 8,
            )
        )  # fmt: skip
        parts.append(Network(f"{number}.ff", block.ln_2, block.mlp))
    return [Stack("decoder", module.transformer.drop, parts, module.transformer.ln_f)]


def llama(module):
    parts = []
    for number, layer in enumerate(module.model.layers):
        a = layer.self_attn
        parts.append(
            Attention(
                f"{number}", layer.input_layernorm, a.q_proj, a.k_proj, a.v_proj, a.o_proj, 4, 2,
                a.q_proj.out_features // 4,
            )
        )  # fmt: skip
        parts.append(Network(f"{number}.ff", layer.post_attention_layernorm, layer.mlp))
    return [Stack("decoder", module.model.embed_tokens, parts, module.model.norm)]


def t5(module):
    stacks = []
    for name, stack in (("encoder", module.encoder), ("decoder", module.decoder)):
        prefix, parts = "encoder." if name == "encoder" else "", []
        for number, block in enumerate(stack.block):
            *attentions, network = block.layer
            kinds = (f"{prefix}{number}", f"cross.{number}")
            for label, each, reads in zip(kinds, attentions, (name, "encoder"), strict=False):
                a = each.SelfAttention if hasattr(each, "SelfAttention") else each.EncDecAttention
                parts.append(Attention(label, each.layer_norm, a.q, a.k, a.v, a.o, 4, 4, 8, reads))
            body = network.DenseReluDense
            parts.append(Network(f"{prefix}{number}.ff", network.layer_norm, body))
        # The embedding is one module for both stacks; its dropout is not.
        stacks.append(Stack(name, stack.dropout, parts, stack.final_layer_norm, f"{prefix}tokens"))
    return stacks


LAYOUTS = {"gpt2": gpt2, "llama": llama, "mixtral": llama, "t5": t5}


@pytest.mark.parametrize("name", LAYOUTS)
def test_random_circuits_equal_transformers_own_modules(name):
    target = [TARGET] if name == "t5" else None
    model = serve_module(make_model(name), "seq2seq" if target else "causal", name)
    slow_model = make_model(name)
    slow_model.set_attn_implementation("eager")
    stacks = LAYOUTS[name](slow_model)
    passes = MixedPasses(model, parts_of(model))
    graph, draw = passes.parts.graph, random.Random(2)

    def slow(ids, **run):
        inputs = {"input_ids": torch.tensor([ids])}
        if target:
            inputs["decoder_input_ids"] = torch.tensor(target)
        with torch.no_grad(), SlowRun(stacks, **run).hooked() as made:
            return slow_model(**inputs, use_cache=False).logits, made.writes

    corrupted, writes = slow(CORRUPTED)
    other, logits = passes.writes([CORRUPTED], target)
    torch.testing.assert_close(logits, corrupted, atol=2e-5, rtol=0)
    changed = 0.0
    for share in (0.2, 0.6, 0.9):
        kept = {n for n in range(len(graph.edges)) if draw.random() < share}
        cut = cut_all(graph)
        for number in kept:
            writer, reader = graph.edges[number]
            cut[0, writer, reader] = False
        fast = passes.logits([CLEAN], target, cut, other)[0]
        names = {graph.names[number] for number in kept}
        expected, _ = slow(CLEAN, kept=names, corrupted=writes)
        torch.testing.assert_close(fast, expected, atol=5e-5, rtol=0)
        changed = max(changed, float((fast - corrupted).abs().max()))
    assert changed > 0.02


@pytest.mark.parametrize(
    ("name", "reason"), [("olmo2", "attention_norm"), ("bert", "norms after each sum")]
)
def test_a_model_without_an_exact_graph_is_refused_with_the_reason(name, reason):
    model = serve_module(make_model(name), "masked" if name == "bert" else "causal", name)
    with pytest.raises(NoGraph, match=reason):
        parts_of(model)


@pytest.mark.parametrize(
    ("name", "reason"), [("gemma2", "norm follows the heads"), ("granite", None), ("qwen3", "norm")]
)
def test_norms_and_factors_between_part_and_stream_keep_the_graph_exact(name, reason):
    model = serve_module(make_model(name), "causal", name)
    passes = MixedPasses(model, parts_of(model))
    reasons = passes.parts.graph.reasons
    assert (reason in reasons[0]) if reason else not reasons
    clean, first = passes.writes([CLEAN], None)
    corrupted, last = passes.writes([CORRUPTED], None)
    cut = cut_all(passes.parts.graph)
    assert float((first - last).abs().max()) > 0.5
    nothing = passes.logits([CLEAN], None, cut, corrupted)[0]
    torch.testing.assert_close(nothing, last, atol=2e-5, rtol=0)
    torch.testing.assert_close(
        passes.logits([CLEAN], None, cut, clean)[0], first, atol=2e-5, rtol=0
    )
