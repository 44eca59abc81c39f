"""Numbers that add up what the parts of a foreign model wrote are exact, or left out."""

import pytest
import torch

from headlight.analyses.analysis_registry import available
from headlight.model.foreign.installing import _passed
from headlight.model.foreign.loading import quiet
from headlight.model.foreign.passes import Points
from headlight.model.foreign.probe import Call
from headlight.model.foreign.sites import Hook
from headlight.model.foreign.writes import fit_step
from headlight.model.hooks import Capture, HookPoint
from headlight.model.interventions.site_edit import SiteEdit
from headlight.model.tracing import trace
from headlight.tracing.results import analyse
from tests.tiny_checkpoints import ARCHITECTURES, UNUSUAL

IDS = [5, 9, 40, 77, 120, 8]
ADDING = {"logit_attribution", "residual_stream"}
NORMED = ("olmo2", "olmo3", "exaone4", "gemma2")
SCALED = ("granite", "granitemoe", "doge")
CAPPED = ("gemma2",)
"""Their logits are no linear function of the last stream."""


@pytest.mark.parametrize("name", [*NORMED, *SCALED])
def test_a_part_is_measured_where_it_enters_the_stream(name, served):
    description = served(name).description
    offered = ADDING - {"logit_attribution"} if name in CAPPED else ADDING
    assert ADDING & set(available(description)) == offered
    assert "sum" not in description.omitted
    assert description.checks["sum"] < 1e-5


def test_logits_with_a_cap_are_not_split(served):
    description = served("gemma2").description
    assert "more than a norm and a matrix" in description.omitted["linear_exit"]


def test_a_stream_that_is_normalised_itself_has_no_analysis_that_adds_to_it(served):
    description = served("minimax").description
    assert not ADDING & set(available(description))
    assert "to a norm of the stream" in description.omitted["sum"]
    assert "head_outputs" in available(description)


@pytest.mark.parametrize("name", ["olmo2", "olmo3", "exaone4"])
def test_a_norm_behind_a_part_is_named_so(name, served):
    model = served(name)
    assert model.config.norm_place == "output"
    path = "decoder.layers.0"
    sites = [f"{path}.self_attention.output", f"{path}.attention_output_norm"]
    captured = model.read([IDS], None, sites=sites)
    torch.testing.assert_close(captured[sites[0]], captured[sites[1]])


def test_a_norm_that_is_not_given_the_stream_has_no_statistics_of_it(served):
    model = served("olmo2")
    result = analyse("residual_stream", trace(model, "The cat sat.", capture=["*"]), model)
    statistics = {name for name in result.arrays if "root_mean_square" in name}
    assert statistics == {"decoder.root_mean_square.norm"}


def test_a_layer_without_a_norm_of_its_own_at_attention_has_norms_of_the_stream(served):
    model = served("modernbert")
    assert model.config.norm_place == "pre"
    assert "residual_stream" in available(model.description)


@pytest.mark.parametrize("name", [*NORMED, *SCALED])
@pytest.mark.parametrize("part", ["self_attention", "feed_forward"])
def test_a_part_that_is_set_to_zero_adds_nothing_to_the_stream(name, part, served):
    model = served(name)
    path = "decoder.layers.1"
    experts = "experts" if f"{path}.experts.output" in model.points.hook_points else part
    output = f"{path}.{part if part == 'self_attention' else experts}.output"
    places = ("before", "middle") if part == "self_attention" else ("middle", "after")
    sites = [f"{path}.residual.{place}" for place in places]
    edit = SiteEdit(kind="set", site=output, value=0.0)
    captured = model.read([IDS], None, sites=sites, interventions=[edit])
    carries = {each: step.carry for step in model.named.steps for each in step.paths}
    carry = carries[output.removesuffix(".output")]
    before = captured[sites[0]] if carry is None else captured[sites[0]] * carry.float()
    torch.testing.assert_close(captured[sites[1]], before)


def test_an_output_that_is_set_to_itself_changes_no_logit(served):
    for name in ("granite", "olmo2"):
        model = served(name)
        sites = [
            site.name
            for site in model.description.sites
            if site.name.endswith((".output", ".gain")) and ".layers." in site.name
        ]
        captured = model.read([IDS], None, sites=["logits", *sites])
        for site in sites:
            edit = SiteEdit(kind="set", site=site, value=captured[site][0].numpy())
            changed = model.read([IDS], None, sites=["logits"], interventions=[edit])
            torch.testing.assert_close(changed["logits"], captured["logits"])


def test_a_gain_of_zero_lets_no_head_write(served):
    model = served("olmo2")
    path = "decoder.layers.0"
    edit = SiteEdit(kind="set", site=f"{path}.self_attention.gain", value=0.0)
    sites = [f"{path}.residual.before", f"{path}.residual.middle"]
    captured = model.read([IDS], None, sites=sites, interventions=[edit])
    torch.testing.assert_close(captured[sites[1]], captured[sites[0]])


def tensors(count):
    return torch.randn(count, 2, 9, 6, generator=torch.Generator().manual_seed(0))


VECTOR = torch.tensor([0.5, 2.0, -1.0, 0.25, 1.0, 3.0])


@pytest.mark.parametrize(
    ("carry", "factor"), [(1, 1), (1, 0.22), (1.5, 1), (1.5, 0.5), (1, VECTOR), (VECTOR, 1)]
)
def test_the_factors_of_a_step_are_those_that_made_it(carry, factor):
    before, output = tensors(2)
    fit = fit_step(before, [output], carry * before + factor * output)
    for expected, made in ((carry, fit.carry), (factor, fit.factors[0])):
        if isinstance(expected, int):
            assert made is None
        else:
            expected = torch.as_tensor(expected, dtype=torch.float64).expand(6)
            torch.testing.assert_close(made, expected, atol=1e-6, rtol=0)


def test_a_step_of_which_a_part_is_missing_has_no_factors():
    before, output, other = tensors(3)
    assert fit_step(before, [output], before + output + 1e-3 * other) is None
    assert fit_step(before, [output, other], before + output + 0.5 * other) is not None


def test_a_factor_that_holds_for_one_text_only_is_none():
    before, output = tensors(2)
    after = before + torch.tensor([0.5, 0.6])[:, None, None] * output
    assert fit_step(before, [output], after) is None


@pytest.mark.parametrize("name", ["bamba"])
def test_a_layer_that_does_not_attend_is_read_and_its_stream_not_added_up(name, served):
    description = served(name).description
    assert "has no attention" in description.omitted["sum"]
    assert not ADDING & set(available(description))
    assert {"next_token", "logit_lens", "head_outputs", "patching"} <= set(available(description))


@pytest.mark.parametrize("name", ["falcon", "gpt_neox"])
def test_the_parts_of_a_parallel_layer_are_what_each_wrote(name, served):
    model = served(name)
    path = "decoder.layers.1"
    sites = [f"{path}.self_attention.output", f"{path}.feed_forward.output"]
    captured = model.read([IDS], None, sites=sites)
    block = next(layer.call.module for layer in model.named.layers if layer.number == 1)
    attend = getattr(block, "self_attention", None) or block.attention
    seen = {}
    handles = [
        module.register_forward_hook(
            lambda _, __, out, part=part: seen.update(
                {part: (out[0] if isinstance(out, tuple) else out).clone()}
            )
        )
        for part, module in (("attention", attend), ("mlp", block.mlp))
    ]
    with torch.inference_mode(), quiet():
        model.read([IDS], None, sites=["logits"])
    for handle in handles:
        handle.remove()
    torch.testing.assert_close(captured[sites[0]], seen["attention"])
    torch.testing.assert_close(captured[sites[1]], seen["mlp"])
    assert {"logit_attribution"} <= set(available(model.description))
    assert "residual_stream" not in available(model.description)


@pytest.mark.parametrize("name", [*ARCHITECTURES, "falcon"])
def test_nothing_writes_to_a_captured_tensor(name, served, monkeypatch):
    model, kept = served(name), {}
    record = Capture.record

    def recorded(self, point, tensor, present):
        record(self, point, tensor, present)
        kept[self.names[point]] = self[self.names[point]].clone()

    monkeypatch.setattr(Capture, "record", recorded)
    targets = [[0, 7, 9]] if name == "t5" else None
    captured = model.read([IDS], targets, sites=[site.name for site in model.description.sites])
    assert kept
    for site, tensor in kept.items():
        torch.testing.assert_close(captured[site], tensor, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("axes", ["batch query d_model", "position d_model"])
@pytest.mark.parametrize("columns", [None, torch.arange(4)[:, None]])
def test_a_tensor_that_changes_after_its_point_leaves_the_capture_as_it_was(axes, columns):
    if columns is not None:
        axes = "batch head query d_head"
    point = HookPoint(axes)
    hook = Hook(Call("", torch.nn.Identity(), 0, 0), None, True, point, columns)
    source = torch.arange(24.0).reshape(1, 6, 4)
    points = Points({"site": point})
    with points.capture_sites(["site"]) as captured:
        passed = _passed(hook, source, 1)
        expected = captured["site"].clone()
        passed += 1
        source += 1
    assert torch.equal(captured["site"], expected)


def test_tiny_checkpoints_name_no_architecture_twice():
    assert not set(ARCHITECTURES) & set(UNUSUAL)
