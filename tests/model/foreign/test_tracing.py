"""A foreign model is traced, analysed and continued by what serves every model."""

from contextlib import nullcontext
from dataclasses import replace
from functools import partialmethod

import numpy as np
import pytest
import torch

from headlight.analyses.analysis_registry import available
from headlight.model.analysis import (
    attention_by_distance,
    head_labels,
    head_outputs,
    logit_attribution,
    logit_lens,
    next_token,
    residual_stream,
    rollout,
    routing,
)
from headlight.model.analysis.head_outputs import output_weights
from headlight.model.attention.observer import Watch
from headlight.model.checkpoint.loading import load
from headlight.model.foreign import installing, points
from headlight.model.foreign.blockwise_check import WholeMatrices
from headlight.model.foreign.model import serve_module
from headlight.model.tracing import count_elements, pass_spec, run_batch, tokenize, trace
from headlight.problems import Problem
from headlight.tracing.results import sites_of
from tests import tiny_checkpoints
from tests.model.foreign.conftest import ARCHITECTURES
from tests.tiny_checkpoints import SIZES, make_model, save_checkpoint

TEXT = "The cat sat by the dog."
BLOCKS = 1e-5
"""Blocks run other kernels than whole matrices: the weights of t5's scores of 20 differ by 2e-6."""


@pytest.fixture(scope="module")
def traced(served):
    """Return the trace of a text with every site, made once."""
    made = {}

    def make(name):
        if name not in made:
            target = "The dog sat." if name == "t5" else None
            made[name] = trace(served(name), TEXT, target, capture=["*"])
        return made[name]

    return make


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_site_of_the_card_is_traced_with_its_axes(name, served, traced):
    model, result = served(name), traced(name)
    assert set(result.tensors) == {site.name for site in model.description.sites}
    spec = pass_spec(model.description, capture=["*"])
    tokenized = tokenize(model, TEXT, result.target)
    assert count_elements(model.description, spec, tokenized) == sum(
        array.data.size for array in result.tensors.values()
    )


@pytest.mark.parametrize("name", sorted(set(ARCHITECTURES) - {"bert", "gemma2"}))
def test_a_logit_difference_is_the_sum_of_the_parts(name, served, traced):
    model, result = served(name), traced(name)
    difference = logit_attribution.choose_difference(result)
    parts = logit_attribution.logit_attribution(
        result, model.linear_exit, output_weights(result, model), difference
    )
    by_name = dict(zip(parts.parts, parts.arrays["parts"].data, strict=True))
    scale = float(np.abs(result["logits"]).max())
    assert abs(by_name["remainder"]) < 1e-3 * scale
    heads, keys = (parts.arrays[f"self_attention.{each}"].data for each in ("heads", "keys"))
    np.testing.assert_allclose(keys.sum(axis=-1), heads, atol=1e-4 * scale)
    tokens = [difference.token, difference.against]
    logits = result["logits"][difference.position, tokens]
    assert parts.arrays["parts"].data.sum() == pytest.approx(logits[0] - logits[1], abs=1e-4)


def test_an_exit_that_is_no_norm_and_matrix_is_refused(served, traced):
    model, result = served("bert"), traced("bert")
    stream = result["encoder.layers.1.residual.after"][0]
    with pytest.raises(ValueError, match="more than a norm and a matrix"):
        model.linear_exit("encoder", stream, [3, 4])


@pytest.mark.parametrize(
    ("name", "reason"), [(name, "more than a norm and a matrix") for name in ("bert", "gemma2")]
)
def test_a_model_whose_logits_are_no_sum_of_its_writes_has_no_attribution(name, reason, served):
    assert "logit_attribution" not in available(served(name).description)
    with pytest.raises(Problem, match=reason):
        sites_of(["logit_attribution"], served(name).description)


def test_a_narrow_feed_forward_is_found_by_what_enters_the_stream(monkeypatch, tmp_path):
    narrow = ("LlamaForCausalLM", {**SIZES, "intermediate_size": 16})
    monkeypatch.setitem(tiny_checkpoints.ARCHITECTURES, "llama", narrow)
    description = load(save_checkpoint("llama", tmp_path)).description
    assert "decoder.layers.0.feed_forward.hidden" in description.omitted
    assert {"residual_stream", "logit_attribution"} <= set(available(description))


def test_a_feed_forward_that_cannot_be_read_leaves_no_updates_to_measure(served):
    description = served("llama").description
    kept = [site for site in description.sites if ".feed_forward." not in site.name]
    description = replace(description, sites=tuple(kept))
    with pytest.raises(Problem, match="cannot be read"):
        sites_of(["residual_stream"], description)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_analyses_read_the_trace(name, served, traced):
    model, result = served(name), traced(name)
    predicted = next_token.next_token(result)["ids"].data
    lens = logit_lens.logit_lens(result, model.exits)["ids"].data
    assert (lens[-1] == predicted).mean() > 0.99
    weights = output_weights(result, model)
    written = head_outputs.head_outputs(result, weights)
    path = model.description.attentions[-1].path
    assert written[path].data.shape[0] == model.config.n_heads
    assert head_outputs.value_weighted(result, weights)[path].data.min() >= 0
    labels = head_labels.head_labels(result)
    assert all(np.isfinite(array.data).all() for array in labels.values())
    rows = rollout.rollout(result)
    assert all(np.isfinite(array.data).all() for array in rows.values())
    assert attention_by_distance.attention_by_distance(result)
    if model.config.moe:
        assert routing.routing(result)["decoder.load"].data.shape == (2, 4)
    norms = residual_stream.residual_stream(
        result, norm=model.config.norm, norm_place=model.config.norm_place
    )
    assert all(np.isfinite(array.data).all() for array in norms.values())


def test_an_encoder_decoder_writes_its_own_target(served):
    result = trace(served("t5"), TEXT)
    assert result.target is not None
    assert result.target_tokens[0].id == 0
    weights = result["decoder.layers.0.cross_attention.weights"]
    assert weights.shape[1:] == (len(result.target_tokens), len(result.tokens))


def test_positions_are_those_of_the_model(served):
    assert {name: served(name).config.positional for name in ARCHITECTURES} == {
        "gpt2": "learned",
        "llama": "rotary",
        "mixtral": "rotary",
        "gemma2": "rotary",
        "gpt_oss": "rotary",
        "bert": "learned",
        "t5": "relative",
        "bloom": "alibi",
    }
    table = served("gpt2").positions(5)["encoding"].data
    assert np.array_equal(table, served("gpt2").module.transformer.wpe.weight[:5].numpy())
    slopes = served("bloom").positions(8)["slopes"].data
    np.testing.assert_allclose(slopes, [2**-2, 2**-4, 2**-6, 2**-8], rtol=1e-4)
    bias = served("t5").positions(8)["bias"].data
    np.testing.assert_allclose(bias[:, 3, 5], bias[:, 4, 6], rtol=1e-3, atol=1e-4)


SCALINGS = {
    "default": {"rope_theta": 1e6},
    "linear": {"rope_theta": 1e4, "factor": 4.0},
    "dynamic": {"rope_theta": 1e4, "factor": 4.0},
    "yarn": {"rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 16},
    "llama3": {
        "rope_theta": 5e5,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16,
    },
}


@pytest.mark.parametrize("kind", SCALINGS)
def test_queries_are_rotated_by_the_speeds_of_the_card(kind):
    scaling = {"rope_type": kind, **SCALINGS[kind]}
    served = serve_module(make_model("llama", rope_parameters=scaling), "causal", "llama")
    rotation = served.description.rotation
    assert rotation.base == SCALINGS[kind]["rope_theta"]
    assert rotation.scaling.get("rope_type", "default") == kind
    path, text = "decoder.layers.0.self_attention", list(range(10, 30))
    sites = [f"{path}.queries", f"{path}.rotated_queries"]
    before, after = served.read([text], None, sites=sites).values()
    encoding = served.positions(len(text))
    cos, sin = (torch.from_numpy(encoding[name].data) for name in ("cos", "sin"))
    first, second = before[..., rotation.first], before[..., rotation.second]
    torch.testing.assert_close(after[..., rotation.first], first * cos - second * sin)
    torch.testing.assert_close(after[..., rotation.second], second * cos + first * sin)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_rows_and_maps_are_those_of_the_weights(name, served, traced, monkeypatch):
    model, whole = served(name), traced(name)
    monkeypatch.setattr(Watch, "__init__", partialmethod(Watch.__init__, block_rows=5))
    result = trace(model, TEXT, whole.target, resolution=3, queries=[2], capture=["*.entropy"])
    paths = model.description.observed
    assert paths
    assert model.description.is_streamed
    assert set(result.kept) == (set() if name == "bloom" else set(paths))
    for path in result.kept:
        tile = result.tile(path, 1, (1, 4), (0, 3))["mean_map"].data
        np.testing.assert_allclose(tile, whole[f"{path}.weights"][1, 1:4, :3], atol=BLOCKS)
    for path in paths:
        weights = whole[f"{path}.weights"]
        width, columns = (-(-size // 3) for size in weights.shape[1:])
        np.testing.assert_allclose(result[f"{path}.rows"][:, 0], weights[:, 2], atol=BLOCKS)
        first = weights[:, :width, :columns]
        np.testing.assert_allclose(
            result[f"{path}.mean_map"][:, 0, 0], first.mean((1, 2)), atol=BLOCKS
        )
        maxima = result[f"{path}.max_map"][:, 0, 0]
        np.testing.assert_allclose(maxima, first.max((1, 2)), atol=BLOCKS)
        entropy = -(weights * np.log(np.where(weights > 0, weights, 1))).sum(-1)
        if f"{path}.sink" not in whole:
            np.testing.assert_allclose(result[f"{path}.entropy"], entropy, atol=10 * BLOCKS)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_padded_row_is_observed_as_it_is_alone(name, served):
    model = served(name)
    texts = [TEXT, "The dog."]
    targets = ["A cat.", "A"] if name == "t5" else [None, None]
    spec = pass_spec(model.description, capture=["*.entropy", "*.first_token"])
    inputs = [tokenize(model, *pair) for pair in zip(texts, targets, strict=True)]
    together = run_batch(model, spec, inputs)[1]
    (alone,) = run_batch(model, spec, inputs[1:])
    assert alone.tensors
    for site, array in alone.tensors.items():
        np.testing.assert_allclose(together[site], array.data, atol=1e-5)


def test_nothing_as_large_as_the_whole_matrix_is_made_of_a_long_text(served):
    model = served("bloom")
    ids = list(range(3, 303)) * 2
    with WholeMatrices({(600, 600)}) as made:
        result = trace(model, ids=ids, resolution=8)
    assert made.found == []
    assert result["decoder.layers.1.self_attention.mean_map"].shape == (4, 8, 8)


def test_a_file_that_makes_whole_matrices_is_not_streamed(monkeypatch):
    monkeypatch.setattr(points, "Deferral", nullcontext)
    monkeypatch.setattr(installing, "deferred", lambda like, compute: compute(0, like.shape[-2]))
    model = serve_module(make_model("gpt2"), "causal", "tiny")
    assert not model.description.is_streamed
    assert "its file makes a matrix of every query" in model.description.omitted["streaming"]
