"""The invariants of foreign models on tiny random models of many architectures of Transformers."""

from functools import lru_cache
from threading import Thread

import numpy as np
import pytest
import torch

pytest.importorskip("transformers", reason="the extra hf is not installed")

from headlight.model.analysis.layers import Attention
from headlight.model.foreign.loading import quiet
from headlight.model.foreign.model import serve_module
from headlight.model.interventions.expert_ablation import ExpertAblation
from headlight.model.interventions.head_ablation import HeadAblation
from headlight.model.served import RowCapture
from tests.benchmarks.architectures import make

CAUSAL = [
    "gpt2",
    "gpt_neox",
    "llama",
    "mistral",
    "qwen2",
    "qwen3",
    "gemma2",
    "gemma3_text",
    "phi3",
    "olmo2",
    "olmoe",
    "mixtral",
    "qwen2_moe",
    "qwen3_moe",
    "deepseek_v2",
    "deepseek_v3",
    "gpt_oss",
    "granite",
    "cohere",
    "opt",
    "llama4_text",
    "qwen3_next",
    "bloom",
    "mpt",
    "falcon",
    "falcon-alibi",
    "gptj",
    "gpt_neo",
    "xglm",
]
MASKED = ["bert", "roberta", "distilbert", "modernbert", "electra", "albert", "deberta-v2", "mpnet"]
SEQ2SEQ = ["t5", "mt5", "bart", "mbart", "marian"]
TASKS = {
    **dict.fromkeys(CAUSAL, "causal"),
    **dict.fromkeys(MASKED, "masked"),
    **dict.fromkeys(SEQ2SEQ, "seq2seq"),
}
CHANGES = {
    "falcon-alibi": {"alibi": True, "num_kv_heads": 4, "multi_query": False, "parallel_attn": False}
}
TEXT = [7, 40, 17, 90, 41, 8, 230, 66, 12, 99]
TARGET = [33, 71, 250, 14, 9, 60]


def build(name):
    """Return a model of an architecture; the same weights at every call."""
    with quiet():
        module, reason = make(name.partition("-alibi")[0], TASKS[name], CHANGES.get(name, {}))
    assert module is not None, reason
    return module


# The parts of an architecture are kept by its name: pytest keeps fixtures by the index of a
# parameter, which the test of threads counts in another list.
@pytest.fixture(scope="module", params=TASKS)
def name(request):
    return request.param


@pytest.fixture
def model(name):
    return served(name)


@pytest.fixture
def eager(name):
    return untouched(name)


@pytest.fixture
def whole(name):
    return read_whole(name)


@lru_cache(maxsize=1)
def served(name):
    return serve_module(build(name), TASKS[name], name)


@lru_cache(maxsize=1)
def untouched(name):
    """Return Transformers' eager attention on an untouched copy."""
    module = build(name)
    with quiet():
        if module._can_set_attn_implementation():
            module.set_attn_implementation("eager")
    return module


def read(model, *sites, text=TEXT, target=TARGET, **options):
    targets = [target] if model.config.kind == "encoder-decoder" else None
    tensors = model.read([text], targets, sites=sites, **options)
    return {site: tensor[0] for site, tensor in tensors.items()}


def run(module, model, **options):
    inputs = {"input_ids": torch.tensor([TEXT]), "use_cache": False, **options}
    if model.config.kind == "encoder-decoder":
        inputs["decoder_input_ids"] = torch.tensor([TARGET])
    with torch.inference_mode(), quiet():
        return module(**inputs)


@lru_cache(maxsize=1)
def read_whole(name):
    model = served(name)
    return read(model, *(site.name for site in model.description.sites))


def paths(model):
    return [facts.path for facts in model.description.attentions]


def scale_of(tensor):
    return float(tensor.abs().max())


def test_logits_are_exactly_those_of_eager_attention(model, eager, whole):
    assert torch.equal(whole["logits"], run(eager, model).logits[0])


def test_weights_are_exactly_those_that_transformers_returns(model, eager, whole):
    out = run(eager, model, output_attentions=True)
    for stack, kind, given in (
        (model.config.kind, "self", getattr(out, "attentions", None)),
        ("encoder", "self", getattr(out, "encoder_attentions", None)),
        ("decoder", "self", getattr(out, "decoder_attentions", None)),
        ("decoder", "cross", getattr(out, "cross_attentions", None)),
    ):
        sites = [
            f"{path}.weights"
            for path in paths(model)
            if path.startswith(f"{stack}.") and path.endswith(f"{kind}_attention")
        ]
        tensors = [tensor for tensor in given or () if isinstance(tensor, torch.Tensor)]
        assert not tensors or len(tensors) == len(sites)
        for site, weights in zip(sites, tensors, strict=False):
            assert torch.equal(whole[site], weights[0]), site


def test_softmax_and_average_follow(model, whole):
    for path in paths(model):
        weights = whole[f"{path}.weights"].double()
        made = whole[f"{path}.scores"].double().softmax(dim=-1)
        if f"{path}.sink" in whole:
            made = made * (1 - whole[f"{path}.sink"].double())[..., None]
        torch.testing.assert_close(made, weights, rtol=0, atol=1e-6)
        context = whole[f"{path}.context"].double()
        if f"{path}.values" in whole:
            average = weights @ whole[f"{path}.values"].double()
            limit = 1e-6 * scale_of(context)
            torch.testing.assert_close(average, context, rtol=0, atol=limit)


def test_a_query_sees_what_the_description_says(model, whole):
    for facts in model.description.attentions:
        stack, _, layer, kind = facts.path.split(".")
        weights = whole[f"{facts.path}.weights"].numpy()
        expected = Attention(stack, int(layer), kind, weights, facts).visible
        np.testing.assert_array_equal((weights > 0).any(axis=0), expected, err_msg=facts.path)


def test_a_head_that_is_off_equals_a_zeroed_slice(model, eager):
    if "head_outputs" not in model.description.features:
        pytest.skip(model.description.omitted["head_outputs"])
    path = paths(model)[0]
    stack, _, layer, _ = path.split(".")
    off = HeadAblation(heads=(1,), layer=int(layer), where=stack)
    actual = read(model, "logits", interventions=[off])["logits"]
    width = model.points.hook_points[f"{path}.context"].sizes["d_head"]
    names = {id(module): name for name, module in model.module.named_modules()}
    projection = eager.get_submodule(names[id(model.named.projections[path])])

    def silence(_, args):
        read_by = args[0].clone()
        read_by[..., width : 2 * width] = 0
        return (read_by, *args[1:])

    handle = projection.register_forward_pre_hook(silence)
    expected = run(eager, model).logits[0]
    handle.remove()
    if name_is_shared(model):  # one module is called for every layer
        pytest.skip("the layers share one projection")
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-6 * scale_of(expected))


def name_is_shared(model):
    modules = [id(module) for module in model.named.projections.values()]
    return len(set(modules)) < len(modules)


def test_an_expert_that_is_off_is_never_chosen(model, whole):
    if model.config.moe is None:
        pytest.skip("a dense model")
    layer = model.config.moe.layers[-1]
    site = f"decoder.layers.{layer}.experts.expert_indices"
    favourite = int(whole[site].flatten().bincount().argmax())
    off = ExpertAblation(experts=(favourite,), layer=layer)
    chosen = read(model, site, interventions=[off])[site]
    assert (whole[site] == favourite).any()
    assert not (chosen == favourite).any()


def test_the_lens_of_the_last_layer_is_the_prediction(model, whole):
    if "logit_lens" not in model.description.features:
        pytest.skip(model.description.omitted["logit_lens"])
    stack = "encoder" if model.config.kind == "encoder" else "decoder"
    last = f"{stack}.layers.{model.config.n_layers - 1}.residual.after"
    (logits,) = model.exits(stack, [whole[last].numpy()])
    limit = 1e-5 * scale_of(whole["logits"])
    np.testing.assert_allclose(logits, whole["logits"].numpy(), rtol=0, atol=limit)


def test_a_row_with_the_cache_is_the_row_of_the_whole(model, whole):
    if model.config.kind != "decoder" or "cache" in model.description.omitted:
        pytest.skip("it continues no text with a cache")
    writer = model.writer()
    cache = writer.new_cache()
    writer.extend(cache, TEXT[:-1])
    sites = [f"{path}.weights" for path in paths(model)]
    logits, (row,) = writer.step([cache], TEXT[-1:], [RowCapture(sites)])
    limit = 5e-6 * scale_of(whole["logits"])
    torch.testing.assert_close(logits[0], whole["logits"][-1], rtol=0, atol=limit)
    for site in sites:
        torch.testing.assert_close(row[site], whole[site][:, -1], rtol=0, atol=5e-6)


def test_padded_rows_are_what_they_are_alone(model):
    pairs = [TARGET, TARGET[:3]] if model.config.kind == "encoder-decoder" else None
    sites = ["logits", *(f"{path}.weights" for path in paths(model))]
    together = model.read([TEXT, TEXT[:6]], pairs, sites=sites)
    alone = read(model, *sites, text=TEXT[:6], target=TARGET[:3])
    for site, expected in alone.items():
        actual = together[site][1][tuple(slice(size) for size in expected.shape)]
        limit = 1e-5 * scale_of(expected)
        torch.testing.assert_close(actual, expected, rtol=0, atol=limit)


def test_rows_sum_to_one_in_bfloat16(name):
    module = build(name).to(torch.bfloat16)
    model = serve_module(module, TASKS[name], name)
    sites = [f"{path}.{part}" for path in paths(model) for part in ("weights", "sink")]
    captured = read(model, *(site for site in sites if site in model.points.hook_points))
    for path in paths(model):
        rows = captured[f"{path}.weights"].double().sum(dim=-1)
        rows += captured.get(f"{path}.sink", torch.zeros(())).double()
        torch.testing.assert_close(rows, torch.ones_like(rows), rtol=0, atol=1e-5)


# Models with the attention interface: grouped heads, routers, a sink, a cap, two stacks, no causal
# mask, one module for all layers. Then three older files, which write their attention differently.
THREADED = ["llama", "mixtral", "gpt_oss", "gemma2", "t5", "bert", "albert"]
THREADED += ["bloom", "gpt_neo", "deberta-v2"]


@pytest.mark.parametrize("name", THREADED, scope="module")
def test_four_threads_never_mix_in_four_hundred_passes(name, model):
    sites = [*(f"{path}.weights" for path in paths(model)), "logits"]
    cases = [(text, off) for text in (TEXT, TEXT[::-1]) for off in ([], [HeadAblation(heads=(0,))])]
    expected = [read(model, *sites, text=text, interventions=off) for text, off in cases]
    wrong = []

    def work(number):
        text, off = cases[number]
        for turn in range(100):
            wanted = sites if turn % 2 else ["logits"]
            captured = read(model, *wanted, text=text, interventions=off)
            for site, tensor in captured.items():
                limit = 1e-5 * scale_of(expected[number][site])
                if float((tensor - expected[number][site]).abs().max()) > limit:
                    wrong.append(site)

    threads = [Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
