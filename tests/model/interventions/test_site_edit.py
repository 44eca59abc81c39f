"""Edits of a site equal the same arithmetic done by hand through `model.edit`."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from headlight.model.generation.sampling import Sampling, TransformerWriter, generate
from headlight.model.interventions.head_ablation import HeadAblation
from headlight.model.interventions.intervene import intervene
from headlight.model.interventions.intervention import ImpossibleIntervention
from headlight.model.interventions.site_edit import SiteEdit, UnknownPosition
from headlight.model.sites import UnknownHead, UnknownSite
from headlight.model.tracing import ModelInput, pass_spec, run_batch, tokenize, trace

ATTENTION = "decoder.layers.0.self_attention"
CONTEXT, STREAM = f"{ATTENTION}.context", "decoder.layers.0.residual.after"
TEXT, OTHER = "The quick brown fox", "The lazy dog slept"
GREEDY = Sampling(temperature=0.0)


def read(model, ids, *edits, sites=("*",)):
    """Every tensor of a pass with these edits."""
    with torch.inference_mode(), intervene(model, edits), model.capture(sites) as captured:
        model(ids)
    return dict(captured)


def by_hand(model, ids, site, function):
    with torch.inference_mode(), model.edit(site, function), model.capture(["*"]) as captured:
        model(ids)
    return dict(captured)


def changed(part, function):
    """Return a function of a tensor that changes a part of a copy."""

    def edit(tensor):
        tensor = tensor.clone()
        tensor[part] = function(tensor)[part] if callable(function) else function
        return tensor

    return edit


HEAD_AND_PLACES = (slice(None), [[3], [1]], [2, 5])
PART = {"heads": (3, 1), "positions": (2, 5)}


@pytest.mark.parametrize(
    ("edit", "site", "function"),
    [
        ({"kind": "set", "value": 0.5}, CONTEXT, changed(HEAD_AND_PLACES, 0.5)),
        ({"kind": "add", "value": 2}, CONTEXT, changed(HEAD_AND_PLACES, lambda x: x + 2)),
        ({"kind": "scale", "value": -3}, CONTEXT, changed(HEAD_AND_PLACES, lambda x: x * -3)),
        (
            {"kind": "mean"},
            CONTEXT,
            changed(HEAD_AND_PLACES, lambda x: x.mean(dim=2, keepdim=True).expand_as(x)),
        ),
        (
            {"kind": "mean", "over": "heads"},
            CONTEXT,
            changed(HEAD_AND_PLACES, lambda x: x.mean(dim=1, keepdim=True).expand_as(x)),
        ),
        (
            {"kind": "scale", "value": 0.5},
            f"{ATTENTION}.weights",
            changed(HEAD_AND_PLACES, lambda x: x / 2),
        ),
        ({"kind": "set", "value": 1}, f"{ATTENTION}.keys", changed(HEAD_AND_PLACES, 1.0)),
    ],
)
def test_an_edit_equals_the_same_function_of_the_tensor(model, ids, edit, site, function):
    found = read(model, ids, SiteEdit(site=site, **PART, **edit))
    expected = by_hand(model, ids, site, function)
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():  # a copy may have another layout, and so another kernel
        torch.testing.assert_close(found[name], tensor, rtol=1e-5, atol=1e-5)
    assert not torch.equal(found["logits"], read(model, ids)["logits"])


def test_masked_scores_stay_masked_and_do_not_count(model, ids):
    site = f"{ATTENTION}.scores"
    plain = read(model, ids)[site]
    for edit in ({"kind": "scale", "value": 0}, {"kind": "add", "value": 1}, {"kind": "mean"}):
        found = read(model, ids, SiteEdit(site=site, **edit))
        assert torch.equal(found[site].isneginf(), plain.isneginf())
        assert not found["logits"].isnan().any()
    last = plain.shape[-1] - 1
    mean = read(model, ids, SiteEdit(kind="mean", site=site))[site]
    torch.testing.assert_close(mean[:, :, last, last], plain[:, :, last, last])


def test_the_edits_of_a_site_act_in_their_order_after_other_interventions(model, ids):
    add = SiteEdit(kind="add", site=CONTEXT, value=1)
    double = SiteEdit(kind="scale", site=CONTEXT, value=2)
    off = HeadAblation(heads=(0,), layer=0)
    assert (read(model, ids, add, double, off)[CONTEXT][:, 0] == 2).all()
    assert (read(model, ids, double, off, add)[CONTEXT][:, 0] == 1).all()


def test_values_are_broadcast_over_leading_axes(model, ids):
    d_model = model.config.d_model
    vector = np.arange(d_model, dtype=np.float32)
    found = read(model, ids, SiteEdit(kind="set", site=STREAM, value=vector, positions=(1,)))
    assert (found[STREAM][:, 1] == torch.from_numpy(vector)).all()


def test_patching_every_position_of_the_stream_restores_the_other_logits(checkpoint):
    other = trace(checkpoint, OTHER, capture=[STREAM, "logits"])
    tokens = tuple(replace(token, id=(token.id + 5) % 300) for token in other.tokens)
    edits = [SiteEdit.patch(other, STREAM)]
    spec = pass_spec(checkpoint.description, capture=["logits"], interventions=edits)
    (found,) = run_batch(checkpoint, spec, [ModelInput("", tokens)])
    (plain,) = run_batch(checkpoint, replace(spec, interventions=()), [ModelInput("", tokens)])
    np.testing.assert_array_equal(found["logits"], other["logits"])
    assert not np.allclose(plain["logits"], other["logits"], atol=1e-2)


def test_a_patch_reads_heads_and_positions_of_the_other_trace(checkpoint):
    other = trace(checkpoint, OTHER, capture=[CONTEXT], heads=[2, 1])
    patch = SiteEdit.patch(other, CONTEXT, heads=[1], positions=[2], source_positions=[3])
    found = trace(checkpoint, TEXT, capture=[CONTEXT], interventions=[patch])[CONTEXT]
    plain = trace(checkpoint, TEXT, capture=[CONTEXT])[CONTEXT]
    np.testing.assert_array_equal(found[1, 2], other[CONTEXT][1, 3])
    plain[1, 2] = found[1, 2]
    np.testing.assert_array_equal(found, plain)


def test_texts_with_edits_are_traced_as_each_is_alone(checkpoint):
    spec = pass_spec(
        checkpoint.description,
        capture=["logits"],
        interventions=[SiteEdit(kind="mean", site=STREAM)],
    )
    inputs = [tokenize(checkpoint, text) for text in ("The cat", "The quick brown fox jumps")]
    together = run_batch(checkpoint, spec, inputs)
    for read_alone, found in zip(inputs, together, strict=True):
        (alone,) = run_batch(checkpoint, spec, [read_alone])
        np.testing.assert_array_equal(found["logits"], alone["logits"])


@pytest.mark.parametrize(
    "edit",
    [
        {"kind": "add", "site": STREAM, "value": 0.3, "positions": (1, 4, 10, 12)},
        {"kind": "scale", "site": f"{ATTENTION}.weights", "value": 0.5, "heads": (0,)},
        {"kind": "set", "site": f"{ATTENTION}.keys", "value": 0.1, "positions": (0, 5)},
        {"kind": "mean", "site": CONTEXT, "over": "heads"},
        {"kind": "add", "site": "decoder.embedding.positional", "value": 1, "positions": (5,)},
    ],
)
def test_edits_of_generation_are_those_of_the_whole_text(model, ids, edit):
    edit = SiteEdit(**edit)
    options = {"n_tokens": 4, "sampling": GREEDY, "capture": [STREAM], "interventions": [edit]}
    written = list(generate(model, ids[0].tolist(), **options))
    text = [*ids[0].tolist(), *(token.id for token in written)]
    whole = read(model, torch.tensor([text]), edit, sites=[STREAM, "logits"])
    for index, token in enumerate(written):
        place = ids.shape[1] - 1 + index
        torch.testing.assert_close(token.row[STREAM], whole[STREAM][0, place], rtol=0, atol=1e-5)
        expected = whole["logits"][0, place].softmax(dim=-1)
        torch.testing.assert_close(token.model_distribution, expected, rtol=0, atol=1e-5)


def test_a_writer_with_edits_reads_one_text_at_a_time(model):
    writer = TransformerWriter(model, [SiteEdit(kind="set", site=STREAM, value=0)])
    caches = [writer.new_cache(), writer.new_cache()]
    with pytest.raises(ValueError, match="texts with edits of sites have a pass each"):
        writer.step(caches, [1, 2], [])


@pytest.mark.parametrize(
    ("edit", "error", "message"),
    [
        ({"site": "decoder.layers.9.residual.after"}, UnknownSite, "no site matches"),
        ({"site": "*.residual.after"}, ImpossibleIntervention, "acts at one site"),
        ({"site": STREAM, "heads": (0,)}, ImpossibleIntervention, "has no heads"),
        ({"site": CONTEXT, "heads": (4,)}, UnknownHead, "there is no head 4"),
        ({"site": CONTEXT, "heads": (1, 1)}, UnknownHead, "twice"),
        ({"site": CONTEXT, "positions": ()}, UnknownPosition, "positions is empty"),
        ({"site": CONTEXT, "positions": (2, 2)}, UnknownPosition, "twice"),
        ({"site": CONTEXT, "positions": (500,)}, UnknownPosition, "no position 500"),
        ({"site": CONTEXT, "value": np.zeros(3)}, ImpossibleIntervention, "does not fit"),
        (
            {"site": STREAM, "value": np.zeros((3, 32))},
            ImpossibleIntervention,
            r"those of 3 positions at .* and \d+ are to be edited; name as many positions",
        ),
        (
            {"site": "decoder.layers.1.experts.expert_indices"},
            ImpossibleIntervention,
            "the numbers of experts",
        ),
    ],
)
def test_an_edit_that_cannot_be_made_is_rejected(checkpoint, edit, error, message):
    edit = SiteEdit(**{"kind": "set", "value": 0, **edit})
    with pytest.raises(error, match=message):
        trace(checkpoint, TEXT, interventions=[edit])


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({"kind": "set"}, "needs a value"),
        ({"kind": "mean", "value": 1}, "takes no value"),
        ({"kind": "add", "value": float("nan")}, "not finite"),
    ],
)
def test_a_value_is_there_and_finite(edit, message):
    with pytest.raises(ValueError, match=message):
        SiteEdit(site=CONTEXT, **edit)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"site": STREAM}, ImpossibleIntervention, "does not hold"),
        ({"site": CONTEXT}, ImpossibleIntervention, "not all heads"),
        ({"site": CONTEXT, "heads": [0]}, ImpossibleIntervention, "not 0"),
        ({"site": CONTEXT, "heads": [1], "positions": [99]}, UnknownPosition, "99"),
        (
            {"site": CONTEXT, "heads": [1], "positions": [1], "source_positions": [1, 2]},
            ImpossibleIntervention,
            "as many of each",
        ),
        (
            {"site": CONTEXT, "heads": [1], "source_positions": [1]},
            ImpossibleIntervention,
            "give both",
        ),
    ],
)
def test_a_patch_of_what_the_other_trace_lacks_is_rejected(checkpoint, options, error, message):
    other = trace(checkpoint, OTHER, capture=[CONTEXT], heads=[2, 1])
    with pytest.raises(error, match=message):
        SiteEdit.patch(other, **options)


def test_masked_scores_cannot_be_patched(checkpoint):
    site = f"{ATTENTION}.scores"
    other = trace(checkpoint, OTHER, capture=[site])
    with pytest.raises(ImpossibleIntervention, match="masked numbers"):
        SiteEdit.patch(other, site)
