"""An intervention equals the same pass with other weights."""

import math

import pytest
import torch

from headlight.model.interventions.expert_ablation import ExpertAblation, UnknownExpert
from headlight.model.interventions.head_ablation import HeadAblation
from headlight.model.interventions.intervene import intervene, site_edits
from headlight.model.interventions.intervention import ImpossibleIntervention
from headlight.model.interventions.no_scaling import NoScaling
from headlight.model.interventions.temperature import Temperature
from headlight.model.sites import UnknownHead, UnknownLayer

KINDS = {"decoder": 2, "encoder": 2, "encoder-decoder": 6}
PATHS = {
    "encoder": "encoder.layers.{}.self_attention",
    "decoder": "decoder.layers.{}.self_attention",
    "cross": "decoder.layers.{}.cross_attention",
}


def read(model, ids, *edits):
    """Every tensor of a pass with these edits."""
    both = (ids, ids[:, :5]) if model.config.kind == "encoder-decoder" else (ids,)
    with torch.inference_mode(), intervene(model, edits), model.capture(["*"]) as captured:
        model(*both)
    return dict(captured)


def without(model, path, head):
    """Let what a head writes be multiplied by zeros."""
    d_head = model.config.d_head
    with torch.no_grad():
        weight = model.get_submodule(f"{path}.output_projection").weight
        weight[:, head * d_head : (head + 1) * d_head] = 0


# --- heads ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", [None, "encoder", "decoder", "cross"])
def test_a_head_off_is_a_head_whose_output_projection_is_zero(make_model, ids, where):
    found = read(
        make_model(kind="encoder-decoder"), ids, HeadAblation(heads=(3, 1), layer=1, where=where)
    )
    reference = make_model(kind="encoder-decoder")
    for place in PATHS if where is None else (where,):
        for head in (3, 1):
            without(reference, PATHS[place].format(1), head)
    torch.testing.assert_close(found["logits"], read(reference, ids)["logits"])


def test_a_head_that_is_off_keeps_its_weights(model, ids):
    site = f"{PATHS['decoder'].format(0)}.weights"
    torch.testing.assert_close(
        read(model, ids, HeadAblation(heads=(2,)))[site], read(model, ids)[site]
    )


# --- experts --------------------------------------------------------------------------------------


def test_an_expert_that_is_off_is_never_chosen_and_the_others_share_its_probability(model, ids):
    path = "decoder.layers.1.experts"
    plain, found = read(model, ids), read(model, ids, ExpertAblation(experts=(2,)))
    assert (plain[f"{path}.expert_indices"] == 2).any()
    assert not (found[f"{path}.expert_indices"] == 2).any()
    probs = plain[f"{path}.router_probs"].clone()
    probs[..., 2] = 0
    expected = probs / probs.sum(dim=-1, keepdim=True)
    torch.testing.assert_close(found[f"{path}.router_probs"], expected)
    assert torch.isneginf(found[f"{path}.router_logits"][..., 2]).all()
    assert found["logits"].isfinite().all()


# --- the softmax ----------------------------------------------------------------------------------


@pytest.mark.parametrize("positional", ["sinusoidal", "rotary", "alibi"])
@pytest.mark.parametrize("layer", [None, 1])
def test_no_scaling_is_what_longer_queries_give(make_model, ids, positional, layer):
    choices = {"positional": positional, "n_kv_heads": 2}
    found = read(make_model(**choices), ids, NoScaling(layer=layer))
    reference = make_model(**choices)
    for number in (0, 1) if layer is None else (layer,):
        queries = f"{PATHS['decoder'].format(number)}.query_projection"
        for parameter in reference.get_submodule(queries).parameters():
            parameter.data *= math.sqrt(8)
    for site in ("logits", f"{PATHS['decoder'].format(1)}.scores"):
        torch.testing.assert_close(found[site], read(reference, ids)[site], atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("positional", ["sinusoidal", "alibi"])
def test_a_temperature_divides_the_scores_bias_included(make_model, ids, positional):
    model, site = make_model(positional=positional), PATHS["decoder"].format(0)
    plain = read(model, ids)[f"{site}.scores"]
    found = read(model, ids, Temperature(value=2.5, layer=0))
    torch.testing.assert_close(found[f"{site}.scores"], plain / 2.5)
    torch.testing.assert_close(found[f"{site}.weights"], (plain / 2.5).softmax(dim=-1))
    assert torch.isneginf(found[f"{site}.scores"][:, :, 0, 1:]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_every_attention_is_reached_where_no_place_is_named(make_model, ids, kind):
    model = make_model(kind=kind)
    assert len(site_edits(model.config, [Temperature(value=2.0)])) == KINDS[kind]
    plain, found = read(model, ids), read(model, ids, Temperature(value=1e4))
    for site in (site for site in found if site.endswith("attention.weights")):
        row = found[site][..., -1, :]
        torch.testing.assert_close(row, torch.full_like(row, 1 / row.shape[-1]), atol=1e-3, rtol=0)
        assert (plain[site] - found[site]).abs().max() > 0.01


def test_the_order_of_the_edits_does_not_matter(make_model, ids):
    model = make_model(positional="alibi")
    edits = [
        NoScaling(),
        Temperature(value=3.0),
        HeadAblation(heads=(1,)),
        ExpertAblation(experts=(0,)),
    ]
    found, reverse = read(model, ids, *edits), read(model, ids, *edits[::-1])
    assert torch.equal(found["logits"], reverse["logits"])


def test_nothing_is_left_of_an_edit_after_it(model, ids):
    before = read(model, ids)["logits"]
    assert not torch.equal(read(model, ids, Temperature(value=2.0))["logits"], before)
    assert torch.equal(read(model, ids)["logits"], before)


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "edit", "error"),
    [
        ({}, HeadAblation(heads=(4,)), UnknownHead),
        ({}, HeadAblation(heads=(-1,)), UnknownHead),
        ({}, NoScaling(layer=2), UnknownLayer),
        ({}, ExpertAblation(experts=(4,)), UnknownExpert),
        ({}, ExpertAblation(experts=(1,), layer=2), UnknownLayer),
        ({}, ExpertAblation(experts=(1,), layer=0), ImpossibleIntervention),
        ({}, ExpertAblation(experts=(0,), where="encoder"), ImpossibleIntervention),
        ({}, ExpertAblation(experts=(0, 1, 2)), ImpossibleIntervention),
        ({}, NoScaling(where="cross"), ImpossibleIntervention),
        ({"moe": None}, ExpertAblation(experts=(0,)), ImpossibleIntervention),
        ({"kind": "encoder"}, Temperature(value=2.0, where="decoder"), ImpossibleIntervention),
    ],
)
def test_an_intervention_that_the_model_does_not_allow_is_an_error(
    make_model, changes, edit, error
):
    with pytest.raises(error):
        site_edits(make_model(**changes).config, [edit])


def test_edits_together_must_leave_enough_experts(model):
    edits = [ExpertAblation(experts=(0, 1)), ExpertAblation(experts=(2,), layer=1)]
    with pytest.raises(ImpossibleIntervention, match="switch at most 2 off"):
        site_edits(model.config, edits)


def test_one_attention_has_one_temperature(model):
    with pytest.raises(ImpossibleIntervention, match=r"has two temperatures, 2 and 0\.5; keep one"):
        site_edits(model.config, [Temperature(value=2.0), Temperature(value=0.5, layer=1)])


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan])
def test_a_temperature_is_a_positive_number(value):
    with pytest.raises(ValueError, match="must be a positive number"):
        Temperature(value=value)
