"""A model with the traits of trained ones offers what a random one of its architecture does."""

import pytest
import torch
import transformers

from headlight.model.circuits.parts import parts_of
from headlight.model.foreign.loading import quiet
from headlight.model.foreign.model import serve_module
from tests.tiny_checkpoints import COMMON, GROUPED, SIZES, make_model
from tests.trained_traits import EVERY, SIZE, trained_like

TEXT = [5, 6, 7, 8, 9, 11]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["gpt2", "llama", "mixtral", "gpt_neox", "opt"])
def test_massive_activations_and_sinks_leave_nothing_out(name, dtype):
    random = serve_module(make_model(name).to(dtype), "causal", name)
    trained = serve_module(trained_like(name).to(dtype), "causal", name)
    assert trained.description.site_names == random.description.site_names
    assert trained.description.features == random.description.features
    assert dict(trained.description.omitted) == dict(random.description.omitted)
    graph = parts_of(trained).graph
    assert graph == parts_of(random).graph


@pytest.mark.parametrize("name", ["gpt2", "opt"])
def test_the_model_with_these_traits_has_them(name):
    assert TEXT[0] % EVERY == 0
    model = serve_module(trained_like(name), "causal", name)
    sites = ["decoder.layers.1.residual.after", "decoder.layers.1.self_attention.weights"]
    captured = model.read([TEXT], None, sites=sites)
    stream, weights = (captured[site] for site in sites)
    assert stream[0, 0].abs().max() > 0.9 * SIZE
    assert stream[0, 1:].abs().max() < 0.01 * SIZE
    assert weights[0, ::2, 1:4, 0].mean() > 0.3


FRESH = {
    "GPT2LMHeadModel": {**COMMON, "n_embd": 32, "n_layer": 2, "n_head": 4},
    "LlamaForCausalLM": {**GROUPED, "rms_norm_eps": 1e-5},
    "GPTNeoXForCausalLM": SIZES,
    "OPTForCausalLM": {**SIZES, "ffn_dim": 48, "word_embed_proj_dim": 32},
}


@pytest.mark.parametrize("kind", FRESH)
def test_small_streams_leave_a_model_the_parts_of_its_logits(kind):
    torch.manual_seed(0)
    with quiet():
        config = getattr(transformers, kind).config_class(**FRESH[kind], initializer_range=0.002)
        model = serve_module(getattr(transformers, kind)(config).eval(), "causal", kind)
    assert "linear_exit" not in model.description.omitted
