"""Numbers that add up what the parts of a foreign model wrote are exact, or left out."""

import pytest
import torch

from headlight.model.foreign.installing import _Passage
from headlight.model.foreign.loading import quiet
from headlight.model.foreign.passes import Points
from headlight.model.hooks import Capture, HookPoint
from headlight.tracing.analyses import available
from tests.tiny_checkpoints import ARCHITECTURES, UNUSUAL

IDS = [5, 9, 40, 77, 120, 8]
ADDING = {"logit_attribution", "strongest_path", "residual_stream"}
REASONS = {
    **dict.fromkeys(("olmo2", "olmo3", "exaone4", "gemma2"), "norm"),
    **dict.fromkeys(("granite", "granitemoe", "doge", "minimax"), "factor"),
}


@pytest.mark.parametrize("name", REASONS)
def test_a_stream_that_is_no_sum_of_outputs_has_no_analysis_that_adds_them(name, served):
    description = served(name).description
    assert not ADDING & set(available(description))
    assert REASONS[name] in description.omitted["sum"]
    assert description.checks["sum"] > 1e-2


@pytest.mark.parametrize("name", ["olmo2", "olmo3", "exaone4"])
def test_a_norm_behind_a_part_is_named_so(name, served):
    model = served(name)
    assert model.config.norm_place == "output"
    path = "decoder.layers.0"
    sites = [f"{path}.residual.before", f"{path}.residual.middle", f"{path}.attention_output_norm"]
    captured = model.read([IDS], None, sites=sites)
    before, middle, written = (captured[site] for site in sites)
    torch.testing.assert_close(before + written, middle)


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
    assert {"logit_attribution", "strongest_path"} <= set(available(model.description))
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
    passage = _Passage(0, None, point, columns, False)
    source = torch.arange(24.0).reshape(1, 6, 4)
    points = Points({"site": point})
    with points.capture_sites(["site"]) as captured:
        passed = passage.passed(source, 1)
        expected = captured["site"].clone()
        passed += 1
        source += 1
    assert torch.equal(captured["site"], expected)


def test_tiny_checkpoints_name_no_architecture_twice():
    assert not set(ARCHITECTURES) & set(UNUSUAL)
