"""Architectures that attend in an unusual way are served with what is true of them, or refused."""

import pytest
import torch

from headlight.analyses.analysis_registry import available
from headlight.model.checkpoint.files import CheckpointError
from headlight.model.foreign.model import load_foreign, serve_module
from headlight.model.interventions.head_ablation import HeadAblation
from headlight.model.interventions.intervention import ImpossibleIntervention
from headlight.problems import Problem
from headlight.tracing.results import sites_of
from tests.tiny_checkpoints import make_model, make_tokenizer

IDS = torch.tensor([[5, 9, 40, 77, 120, 8]])


def test_an_attention_that_is_computed_for_two_values_is_one_attention(served, reference):
    model = served("diffllama")
    assert model.config.n_layers == 2
    site = "decoder.layers.1.self_attention.weights"
    captured = model.read(IDS.tolist(), None, sites=[site, "logits"])
    out = reference("diffllama", {"input_ids": IDS})
    torch.testing.assert_close(captured["logits"], out.logits)
    torch.testing.assert_close(captured[site], out.attentions[1])
    for part in ("values", "context"):
        reason = model.description.omitted[f"decoder.layers.1.self_attention.{part}"]
        assert "several times with the same weights" in reason
    offered = set(available(model.description))
    assert {"residual_stream", "logit_lens", "patching"} <= offered
    assert not {"head_outputs", "logit_attribution"} & offered
    with pytest.raises(Problem, match="several times with the same weights"):
        sites_of(["value_weighted"], model.description)


def test_heads_that_experts_project_have_no_outputs(served):
    description = served("jetmoe").description
    assert "sum" not in description.omitted
    assert not {"value_weighted", "head_outputs", "logit_attribution"} & set(available(description))


def test_a_head_whose_context_is_not_known_cannot_be_switched_off(served):
    model = served("diffllama")
    with pytest.raises(ImpossibleIntervention, match="several times with the same weights"):
        model.read(IDS.tolist(), None, sites=["logits"], interventions=[HeadAblation(heads=(1,))])


def test_heads_whose_output_is_read_by_another_block_write_nothing_to_the_stream(served, reference):
    description = served("zamba2").description
    captured = served("zamba2").read(IDS.tolist(), None, sites=["logits"])
    out = reference("zamba2", {"input_ids": IDS})
    torch.testing.assert_close(captured["logits"], out.logits)
    reason = description.omitted["decoder.layers.1.self_attention.head_outputs"]
    assert "is not known to enter the residual stream" in reason
    assert not {"head_outputs", "logit_attribution", "residual_stream"} & set(
        available(description)
    )
    names = {site.name for site in description.sites}
    assert not any(name.startswith("decoder.layers.0.feed_forward") for name in names)


def test_the_heads_of_a_hybrid_write_behind_the_factor_of_its_layers(served):
    model = served("granitemoehybrid")
    path = "decoder.layers.1"
    sites = [
        f"{path}.residual.before",
        f"{path}.residual.middle",
        f"{path}.self_attention.context",
        f"{path}.self_attention.output",
    ]
    before, middle, context, output = (
        model.read(IDS.tolist(), None, sites=sites)[s] for s in sites
    )
    torch.testing.assert_close(before + output, middle)
    rows = torch.from_numpy(model.output_weights(f"{path}.self_attention").data)
    torch.testing.assert_close(torch.einsum("bhqd,hdm->bqm", context, rows), output)
    assert "has no attention" in model.description.omitted["sum"]
    assert "head_outputs" in available(model.description)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("longformer", "no softmax is over the tokens of the text"),
        ("ibert", "computed by a IntSoftmax, apart from the products"),
    ],
)
def test_an_attention_of_another_form_is_refused_by_name(name, reason, folder_of):
    with pytest.raises(CheckpointError, match=reason):
        load_foreign(folder_of(name))


def test_a_folder_with_an_infinite_number_in_its_configuration_is_loaded(folder_of, served):
    config = (folder_of("bamba") / "config.json").read_text(encoding="utf-8")
    assert '"__float__": "Infinity"' in config
    assert served("bamba").module.config.time_step_limit[1] == float("inf")


@pytest.mark.parametrize("by_layer", [False, True])
def test_a_reordered_attention_in_float32_is_that_of_the_library(by_layer, tmp_path):
    changes = {"reorder_and_upcast_attn": True, "scale_attn_by_inverse_layer_idx": by_layer}
    module = make_model("gpt2", **changes)
    module.save_pretrained(tmp_path)
    make_tokenizer().save_pretrained(tmp_path)
    model = load_foreign(tmp_path)
    assert not model.description.omitted
    sites = [f"decoder.layers.{layer}.self_attention.weights" for layer in (0, 1)]
    captured = model.read(IDS.tolist(), None, sites=[*sites, "logits"])
    module.set_attn_implementation("eager")
    with torch.inference_mode():
        out = module(IDS, output_attentions=True)
    torch.testing.assert_close(captured["logits"], out.logits)
    for site, expected in zip(sites, out.attentions, strict=True):
        torch.testing.assert_close(captured[site], expected)


def test_a_reordered_attention_in_a_lower_precision_is_checked():
    module = make_model("gpt2", reorder_and_upcast_attn=True).to(torch.bfloat16)
    checks = serve_module(module, "causal", "gpt2").description.checks
    assert 0 <= checks["weights"] < 4e-2
